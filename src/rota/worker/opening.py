"""Opening and closing: resources in order, then the store, and the other way round at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from rota._core.actions import Audit
from rota.errors import RotaError
from rota.worker.code import code_version
from rota.worker.host import Host, Opened
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

CLOSE_WITHIN = 10.0
"""Seconds that each resource has to close before the worker ends without it."""


class Opening(Service):
    """Reaches the store and makes the tasks known. Waits for a store that cannot be reached; any other no is final."""

    name = "start"

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host

    async def step(self) -> None:
        await self._host.store.open()
        version = code_version(self._host)
        specs = [task.spec()._replace(code_version=version) for task in self._host.tasks.values()]
        await self._host.store.publish(specs)
        if self._host.queues:
            await self._host.store.publish_queues(list(self._host.queues.values()))
        await self._release_older(version)
        windows = self._host.settings.maintenance
        schedules = [schedule.spec(windows) for schedule in self._host.schedules.values()]
        if schedules and self._host.settings.schedules:
            await self._host.store.publish_schedules(schedules)

    async def _release_older(self, version: str) -> None:
        """What crashed under other code gets a new chance under this, if this is the newest."""
        store = self._host.store
        older = [row for row in await store.parked_tasks() if row.code_version != version]
        if not older:
            return
        newest = {spec.name for spec in await store.tasks() if spec.code_version == version}
        for row in older:
            if row.task in newest:
                reason = f"parked under code version {row.code_version}, and {version} is deployed"
                audit = Audit(f"worker of {version}", "release", None, reason, about=f"task:{row.task}")
                freed = await store.release_task(row.task, audit, code_version=row.code_version)
                log.warning("the task %s is released: %s. Its jobs go on: %d.", row.task, reason, freed or 0)


async def open_all(resources: Sequence[Opened]) -> list[Opened]:
    """Open resources in order. If one fails, those before it are closed again and the worker does not start."""
    opened: list[Opened] = []
    for resource in resources:
        try:
            await resource.open()
        except BaseException as error:
            await close_all(opened)
            if not isinstance(error, Exception):
                raise
            raise RotaError(
                f"the worker did not start: its resource {resource.name!r} could not be opened "
                f"({type(error).__name__}: {error}). Correct that, and start it again."
            ) from error
        opened.append(resource)
    return opened


async def close_all(opened: Sequence[Opened]) -> None:
    """Close in reverse order; one that fails or hangs does not keep the others open."""
    for resource in reversed(opened):
        limit = asyncio.timeout(CLOSE_WITHIN)
        try:
            async with limit:
                await resource.close()
        except Exception:
            if limit.expired():
                log.exception(
                    "the resource %r has not closed within %g s: the worker ends without it.",
                    resource.name,
                    CLOSE_WITHIN,
                )
            else:
                log.exception("the resource %r could not be closed cleanly.", resource.name)
