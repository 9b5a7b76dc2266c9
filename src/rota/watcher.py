"""Watcher: waits for many jobs with one query a round. One for each store and event loop."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from typing import NamedTuple
from uuid import UUID

from rota._core.job import Job
from rota._core.retention import ArchivedJob
from rota.errors import JobArchived, JobNotFound, StoreUnavailable
from rota.stores.contract import Store

log = logging.getLogger("rota.handle")

FIRST, SHORTEST, LONGEST = 0.002, 0.02, 1.0
PER_AGE = 10.0  # a wait of one second is looked at every tenth of a second
ROUND_LIMIT = 2000


class _Wait(NamedTuple):
    due: float
    number: int
    """Breaks ties, so that nothing else is compared."""
    job_id: UUID
    since: float
    patience: float
    """Seconds for which a job that is not there is waited for."""
    future: asyncio.Future[Job]


class Watcher:
    """Looks at all awaited jobs of a store together; the longer a wait lasts, the rarer the look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._waits: list[_Wait] = []
        self._number = itertools.count()
        self._earlier = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def ended(self, job_id: UUID, *, patience: float) -> Job:
        future: asyncio.Future[Job] = self._loop.create_future()
        now = self._loop.time()
        # The first look waits a moment, so that handles awaited together travel together.
        self._push(_Wait(now + FIRST, next(self._number), job_id, now, patience, future))
        return await future

    def _push(self, wait: _Wait) -> None:
        heapq.heappush(self._waits, wait)
        if self._waits[0] is wait:
            self._earlier.set()
        if self._task is None:
            self._task = self._loop.create_task(self._run(), name="rota-watcher")
            # A task that is cancelled before its first step never comes to its own `finally`.
            self._task.add_done_callback(lambda _: self._leave())

    async def _run(self) -> None:
        """Look until nobody waits any more."""
        try:
            while self._waits:
                await self._pause()
                await self._look(self._due())
        except Exception as error:  # whoever waits must hear of it
            self._give_up(error)
        except asyncio.CancelledError:
            self._give_up(None)
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        key = (id(self._loop), id(self._store))
        if _watchers.get(key) is self:
            del _watchers[key]

    def _give_up(self, error: Exception | None) -> None:
        for wait in self._waits:
            if wait.future.done():
                continue
            if error is None:
                wait.future.cancel()
            else:
                wait.future.set_exception(error)
        self._waits.clear()

    async def _pause(self) -> None:
        self._earlier.clear()
        pause = self._waits[0].due - self._loop.time()
        if pause > 0:
            try:
                async with asyncio.timeout(pause):
                    await self._earlier.wait()
            except TimeoutError:
                return

    def _due(self) -> list[_Wait]:
        """What to look at in this round; waits that were given up are dropped on the way."""
        # What comes due within the shortest interval goes along: one query instead of two.
        horizon = self._loop.time() + SHORTEST / 2
        due: list[_Wait] = []
        while self._waits and self._waits[0].due <= horizon and len(due) < ROUND_LIMIT:
            wait = heapq.heappop(self._waits)
            if not wait.future.done():
                due.append(wait)
        return due

    async def _look(self, due: list[_Wait]) -> None:
        if not due:
            return
        try:
            found = {job.id: job for job in await self._store.get(list({wait.job_id for wait in due}))}
            lacking = [wait.job_id for wait in due if wait.job_id not in found]
            gone = {row.id: row for row in await self._store.archived(lacking)} if lacking else {}
        except StoreUnavailable as error:
            log.info("waiting for %d jobs: %s", len(due), error)
            now = self._loop.time()
            for wait in due:
                self._again(wait, now, LONGEST)
            return
        except BaseException:
            for wait in due:
                heapq.heappush(self._waits, wait)
            raise
        now = self._loop.time()  # one for all: who was looked at together stays together
        for wait in due:
            self._answer(wait, now, found.get(wait.job_id), gone.get(wait.job_id))

    def _answer(self, wait: _Wait, now: float, job: Job | None, summary: ArchivedJob | None) -> None:
        age = now - wait.since
        if wait.future.done():
            return
        if summary is not None:
            wait.future.set_exception(JobArchived(summary))
            return
        if job is not None and job.state.terminal:
            wait.future.set_result(job)
        elif job is None and age >= wait.patience:
            wait.future.set_exception(JobNotFound(wait.job_id))
        else:
            self._again(wait, now, min(max(age / PER_AGE, SHORTEST), LONGEST))

    def _again(self, wait: _Wait, now: float, pause: float) -> None:
        heapq.heappush(self._waits, wait._replace(due=now + pause))


_watchers: dict[tuple[int, int], Watcher] = {}
"""Those at work, by event loop and store; a watcher leaves when nobody waits any more."""


async def ended(store: Store, job_id: UUID, *, patience: float = 0.0) -> Job:
    """The job, once it has ended. A job that is not there is waited for as long as `patience` says."""
    here = id(asyncio.get_running_loop()), id(store)
    watcher = _watchers.get(here)
    if watcher is None:
        watcher = _watchers[here] = Watcher(store)
    return await watcher.ended(job_id, patience=patience)
