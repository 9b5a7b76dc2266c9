"""Running what is due with a real worker, until nothing is left that could run now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import nullcontext
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

from rota._core.job import Job, State
from rota.errors import RotaError
from rota.stores.contract import JobFilter, Store
from rota.testing.bench import Bench, Errors
from rota.testing.burial import dying
from rota.testing.drained import Ran
from rota.testing.line import Line
from rota.worker.worker import Worker

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.testing.crash import Trap
    from rota.testing.tracing import Scope

LOOK = 0.02
MANY = 100_000


class StillRunning(RotaError, TimeoutError):
    """Jobs did not come to an end in the time that the test gives them."""


class TooManyRuns(RotaError):
    """More attempts than a test would want: most likely a task that enqueues itself."""


async def waiting(store: Store, *states: State) -> list[Job]:
    """Every job in these states, the oldest first."""
    return await store.find(JobFilter(states=states, oldest_first=True, limit=MANY))


class Shift:
    """One worker's life: it opens resources, runs what is due, and goes when nothing is left."""

    def __init__(
        self,
        app: Rota,
        store: Store,
        *,
        hear: Callable[[Ran], None],
        check: Callable[[], None],
        slots: int,
        patience: float,
        lost: set[UUID],
        trap: Trap | None = None,
        scope: Scope | None = None,
    ) -> None:
        self._errors = errors = Errors()
        self._check = check
        """Raises when the test has seen enough."""
        self.line = Line(store, hear, errors, trap)
        self._trapped = trap is not None
        self._app, self._store, self._patience, self._slots, self._lost = app, store, patience, slots, lost
        self._bench = Bench(app, self.line, errors, trap=trap, scope=scope)

    async def work(self, ids: Collection[UUID] = ()) -> bool:
        """Run until nothing is due and these jobs do not run. False: the worker crashed, as it was told to."""
        with dying(self._errors) if self._trapped else nullcontext():
            await self._work(ids)
        if self.line.crashed:
            self._lost |= self.line.sessions
        return not self.line.crashed

    async def _work(self, ids: Collection[UUID]) -> None:
        worker = Worker(self._bench, lanes={"test": f"{self._slots}:*"})
        life = asyncio.create_task(worker.run(), name="rota-testing")
        try:
            await self._until_quiet(life, ids)
        finally:
            worker.stop(now=True)
            await asyncio.wait([life])
        life.result()

    async def _until_quiet(self, life: asyncio.Task[int], ids: Collection[UUID]) -> None:
        end = monotonic() + self._patience
        while not life.done():
            self.line.stirred.clear()
            if self.line.crashed or await self._quiet(ids):
                return
            self._check()
            if monotonic() > end:
                raise StillRunning(await self._complaint())
            stirred = asyncio.ensure_future(self.line.stirred.wait())
            await asyncio.wait([life, stirred], timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
            stirred.cancel()

    async def _quiet(self, ids: Collection[UUID]) -> bool:
        now = await self._store.now()
        return not any(
            self._runs(job, ids) if job.state is State.RUNNING else self._due(job, now)
            for job in await waiting(self._store, State.PENDING, State.RUNNING)
        )

    def _due(self, job: Job, now: datetime) -> bool:
        return job.parked is None and job.run_at <= now and job.task in self._app.tasks

    def _runs(self, job: Job, ids: Collection[UUID]) -> bool:
        """Whether a running job is ours to wait for: our own, one that was asked for, or a lost one to be rescued."""
        return job.session_id in self.line.sessions or job.id in ids or job.session_id in self._lost

    async def _complaint(self) -> str:
        running = await waiting(self._store, State.RUNNING)
        names = ", ".join(f"{job.task} (job {job.id})" for job in running) or "nothing is running"
        return (
            f"jobs did not come to an end within {self._patience:g} s: {names}. A handler may wait for something that "
            "never comes. One that waits for another job needs a second slot: give the kit slots=2 or more; one that "
            "is only slow needs a longer timeout=."
        )
