"""Back-pressure: a queue that is full takes no more jobs, or lets those who enqueue wait.

What waits is counted by the store, at most once a second for each queue and
process, and never further than the limit. In between this process adds what it
stores itself. So several processes together may run over a limit by what they
store within a second; a limit is a dam, not a scale.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from rota._core.durations import seconds
from rota._core.job import NewJob
from rota._core.queue import Overrun, Queue
from rota.errors import QueueFull
from rota.stores.contract import Store

FRESH = 1.0
"""Seconds for which a count is believed."""
LOOK_AGAIN = 0.25
"""Seconds between two looks of an enqueue that waits for room."""
WINDOW = 50_000
"""Jobs that are looked at where tenants are told apart."""


class Known(NamedTuple):
    """What waits in a queue, as this process knows it."""

    at: float
    waiting: Counter[str | None]


class Pressure:
    """The limits of an app's queues."""

    def __init__(self, queues: Iterable[Queue], store: Callable[[], Store]) -> None:
        self._queues = {queue.name: queue for queue in queues if queue.limited}
        self._store = store
        self._known: dict[str, Known] = {}

    def __contains__(self, queue: str) -> bool:
        return queue in self._queues

    async def admit(self, jobs: Sequence[NewJob], *, may_wait: bool = True) -> None:
        """Return when these jobs may be stored; QueueFull if they may not.

        `may_wait=False`: inside a transaction of the caller's nothing is asked
        and nothing is waited for; what this process knows already decides.
        """
        for name in {job.queue for job in jobs} & self._queues.keys():
            new = Counter(job.tenant for job in jobs if job.queue == name)
            await self._pass(self._queues[name], new, may_wait=may_wait)
            if name in self._known:
                self._known[name].waiting.update(new)

    async def _pass(self, queue: Queue, new: Mapping[str | None, int], *, may_wait: bool) -> None:
        waits = may_wait and queue.on_full == "delay"
        patience_ends = time.monotonic() + (seconds(queue.delay) if waits else 0.0)
        fresh = FRESH if may_wait else math.inf
        while True:
            overrun = queue.overrun(await self._waiting(queue, fresh), _told_apart(queue, new))
            if overrun is None:
                return
            left = patience_ends - time.monotonic()
            if left <= 0 or sum(new.values()) > overrun.limit:
                raise _full(queue, overrun, new, waited=waits)
            await asyncio.sleep(min(left, LOOK_AGAIN * random.uniform(0.8, 1.2)))  # noqa: S311
            fresh = LOOK_AGAIN / 2

    async def _waiting(self, queue: Queue, fresh: float) -> Mapping[str | None, int]:
        """What waits, as it was known at most `fresh` seconds ago."""
        known = self._known.get(queue.name)
        if fresh < math.inf and (known is None or time.monotonic() - known.at > fresh):
            if known is not None:  # one asks for all who are here
                self._known[queue.name] = known._replace(at=time.monotonic())
            by_tenant = queue.max_pending_per_tenant is not None
            cap = max(WINDOW, queue.max_pending or 0) if by_tenant else queue.max_pending or 0
            found = await self._store().backlog(queue.name, cap=cap, by_tenant=by_tenant)
            known = self._known[queue.name] = Known(time.monotonic(), Counter(found))
        return {} if known is None else known.waiting


def pressure_of(queues: Iterable[Queue], store: Callable[[], Store]) -> Pressure | None:
    """The limits of these queues; None where there are none, so that nobody pays for them."""
    given = list(queues)
    return Pressure(given, store) if any(queue.limited for queue in given) else None


def _told_apart(queue: Queue, new: Mapping[str | None, int]) -> Mapping[str | None, int]:
    return new if queue.max_pending_per_tenant is not None else {None: sum(new.values())}


def _full(queue: Queue, overrun: Overrun, new: Mapping[str | None, int], *, waited: bool) -> QueueFull:
    jobs = sum(new.values()) if overrun.tenant is None else new[overrun.tenant]
    time_spent = seconds(queue.delay) if waited and jobs <= overrun.limit else 0.0
    return QueueFull(queue.name, overrun.tenant, overrun.waiting, overrun.limit, jobs=jobs, waited=time_spent)
