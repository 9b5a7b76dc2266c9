"""Opening and closing: resources in order, then the store, and the other way round at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rota.errors import RotaError
from rota.worker.host import Host, Opened
from rota.worker.service import Service

log = logging.getLogger("rota.worker")


class Opening(Service):
    """Reaches the store and makes the tasks known. Waits for a store that cannot be reached; any other no is final."""

    name = "start"

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host

    async def step(self) -> None:
        await self._host.store.open()
        await self._host.store.publish([task.spec() for task in self._host.tasks.values()])


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
    """Close in reverse order; one that fails does not keep the others open."""
    for resource in reversed(opened):
        try:
            await resource.close()
        except Exception:
            log.exception("the resource %r could not be closed cleanly.", resource.name)
