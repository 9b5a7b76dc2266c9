"""Parking: counts crashes, keeps in mind which tasks are parked, and tells people when one is."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from rota._core.alert import Alert
from rota._core.failure import Failure
from rota._core.suspects import Crash, ParkedTask
from rota.stores.contract import Store
from rota.worker.desk import Desk
from rota.worker.execution import Run
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

EVERY = 5.0
WITHIN = 3600.0
"""Seconds in which crashes of one task are counted together."""
HEARD_WITHIN = 10.0
"""Seconds that somebody has to hear an alert: while one hangs, nothing here learns what is parked."""


class Parking(Service):
    """Looks every 5 s which tasks are parked, and at once when a job of ours crashed."""

    name = "parking"

    def __init__(
        self,
        store: Store,
        desk: Desk,
        version: str,
        *,
        limit: int,
        alerts: Sequence[Callable[[Alert], Any]] = (),
    ) -> None:
        super().__init__()
        self._store, self._desk, self._version = store, desk, version
        self._limit, self._alerts = limit, alerts
        self._crashes: deque[Crash] = deque()
        self._stirred = asyncio.Event()

    def crashed(self, run: Run, failure: Failure) -> None:
        """This run killed a child process in which it was alone."""
        job = run.job
        self._crashes.append(Crash(job.task, self._version, job.id, job.version, failure.message))
        self._stirred.set()

    async def step(self) -> None:
        await self.look()
        with suppress(TimeoutError):
            async with asyncio.timeout(EVERY * random.uniform(0.8, 1.2)):  # noqa: S311 - not all workers at once
                await self._stirred.wait()
        self._stirred.clear()

    async def look(self) -> None:
        """Note what crashed, and learn which tasks are parked for this code."""
        while self._crashes:
            parked = await self._store.note_crash(self._crashes[0], limit=self._limit, within=WITHIN)
            self._crashes.popleft()
            if parked is not None:
                await self._tell(parked)
        rows = await self._store.parked_tasks()
        self._desk.parked = {row.task: row for row in rows if row.code_version == self._version}

    async def _tell(self, parked: ParkedTask) -> None:
        alert = Alert(
            "task_parked",
            parked.task,
            f"the task {parked.task} is parked: {parked.crashes} of its jobs killed their process under code version "
            f"{parked.code_version}, the last one so: {parked.what}",
            f"Deploy a repaired version, or `rota tasks release {parked.task}`.",
        )
        log.critical("%s. %s Its other jobs wait; nothing is lost.", alert.message, alert.fix)
        for hear in self._alerts:
            try:
                heard = hear(alert)
                if inspect.isawaitable(heard):
                    async with asyncio.timeout(HEARD_WITHIN):
                        await heard
            except Exception:
                log.exception("an alert could not be delivered by %r.", hear)
