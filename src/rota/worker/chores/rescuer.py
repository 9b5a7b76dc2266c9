"""The rescuer: takes jobs back from sessions that stopped beating."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any

from rota._core.outcome import Lost, decide
from rota._core.retry import Retry
from rota.stores.contract import Answer, Store
from rota.worker.desk import Desk
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

BATCH = 500
SHORTEST_PAUSE = 1.0


class Rescuer(Service):
    """Sleeps until the earliest lease ends. A rescue is a settle like any other: the fence decides every race."""

    name = "rescuer"

    def __init__(self, store: Store, desk: Desk, tasks: Mapping[str, Any], *, lease: float) -> None:
        super().__init__()
        self._store, self._desk, self._tasks, self._lease = store, desk, tasks, lease
        self._published: dict[str, Retry] = {}

    async def step(self) -> None:
        next_end = await self._store.end_expired()
        if await self.rescue() < BATCH:
            await asyncio.sleep(self.pause(next_end))

    async def rescue(self) -> int:
        """Decide what becomes of lost jobs; how many there were that could be decided now."""
        jobs = await self._store.lost(limit=BATCH)
        if not jobs:
            return 0
        now = await self._store.now()
        policies = {name: await self._policy(name) for name in {job.task for job in jobs}}
        ends = [decide(job, Lost(), retry=policies[job.task], now=now) for job in jobs]
        settled = await self._store.settle(ends)
        written = [end for end, answer in zip(ends, settled, strict=True) if answer.answer is Answer.APPLIED]
        self._desk.tally.lost(written, now)
        rescued = len(written)
        if rescued:
            log.warning("rescued %d jobs whose worker had stopped beating.", rescued)
            self._desk.wake()
        return sum(answer.answer is not Answer.BUSY for answer in settled)

    def pause(self, next_end: float | None) -> float:
        """Seconds until the next look: when the earliest lease ends. A session begun meanwhile outlives that."""
        longest = max(SHORTEST_PAUSE, self._lease) * random.uniform(0.8, 1.0)  # noqa: S311
        if next_end is None:
            return longest
        just_after = max(SHORTEST_PAUSE, next_end) + random.uniform(0.0, 0.3)  # noqa: S311 - not all workers at once
        return min(longest, just_after)

    async def _policy(self, name: str) -> Retry:
        """The retry policy of a task, also of one that only other workers know."""
        if name in self._tasks:
            policy: Retry = self._tasks[name].retry
            return policy
        if name not in self._published:
            self._published = {spec.name: spec.retry for spec in await self._store.tasks()}
        return self._published.get(name, Retry())
