"""Failpoints: named moments in a worker's life at which a test lets it die, hang or lose its store.

They live in a wrapper around the store, put there by `chaos_worker` when
CHAOS_FAIL says so: the engine itself knows nothing of them and pays nothing.

    after_claim     the store has given jobs away, and none has begun
    before_settle   handlers have ended, and the store does not know yet
    after_settle    the store has written the ends, and the worker does not know yet
    before_beat     a heartbeat is about to be sent
    after_beat      a heartbeat was answered
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from rota.errors import StoreUnavailable
from rota.stores.contract import Store

FELL = 137
"""The exit code of a worker that died at a failpoint: what a shell says of one that was killed."""


class Failpoint(NamedTuple):
    """What happens at one moment, and how often."""

    at: str
    do: str
    """die, stall (this call waits), block (the whole loop stands still) or refuse."""
    chance: float = 1.0
    seconds: float = 0.0
    skip: int = 0
    """So many times it passes first."""

    def as_json(self) -> str:
        return json.dumps([self._asdict()])


class Failing:
    """A store with failpoints around its verbs."""

    def __init__(self, store: Store, points: Sequence[Failpoint], dice: random.Random) -> None:
        self.name = store.name
        self._store, self._points, self._dice = store, points, dice
        self._passed = dict.fromkeys(points, 0)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def claim(self, *given: Any, **options: Any) -> Any:
        jobs = await self._store.claim(*given, **options)
        if jobs:
            await self._at("after_claim")
        return jobs

    async def settle(self, transitions: Any) -> Any:
        await self._at("before_settle")
        answers = await self._store.settle(transitions)
        await self._at("after_settle")
        return answers

    async def exchange(self, transitions: Any, *given: Any, **options: Any) -> Any:
        await self._at("before_settle")
        answers, jobs = await self._store.exchange(transitions, *given, **options)
        await self._at("after_settle")
        if jobs:
            await self._at("after_claim")
        return answers, jobs

    async def beat(self, *given: Any, **options: Any) -> Any:
        await self._at("before_beat")
        answer = await self._store.beat(*given, **options)
        await self._at("after_beat")
        return answer

    async def _at(self, moment: str) -> None:
        for point in self._points:
            if point.at == moment and self._dice.random() < point.chance:
                self._passed[point] += 1
                if self._passed[point] > point.skip:
                    await fail(point)


async def fail(point: Failpoint) -> None:
    """Do what this failpoint is for."""
    print(f"failpoint {point.at}: {point.do}", file=sys.stderr, flush=True)
    if point.do == "die":
        os._exit(FELL)
    elif point.do == "stall":
        await asyncio.sleep(point.seconds)
    elif point.do == "block":
        time.sleep(point.seconds)
    else:
        raise StoreUnavailable(f"failpoint {point.at}")


def armed(store: Store, told: str) -> Store:
    """The store, with the failpoints that a test has written into the environment."""
    points = [Failpoint(**point) for point in json.loads(told)]
    return cast("Store", Failing(store, points, random.Random(os.getpid())))
