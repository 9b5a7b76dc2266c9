"""The reporter: tells the store every so often what this worker's jobs did. Outside of every settle."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from time import monotonic

from rota.new_ids import new_id
from rota.stores.contract import Store
from rota.worker.desk import Desk
from rota.worker.service import Service

LOOK_EVERY = 2.0
"""Seconds between two looks at how full the lanes are."""
TELL_EVERY = 10.0
SET_CLOCK_EVERY = 600.0


class Reporter(Service):
    """Looks at the lanes every 2 s, and writes what has changed every 10 s; while nothing happens, once a minute."""

    name = "reporter"

    def __init__(self, store: Store, desk: Desk) -> None:
        super().__init__()
        self._store, self._desk = store, desk
        self._id = new_id()  # its own, for a worker's whole life: a new session must not count minutes anew
        self._set_at = float("-inf")
        self._store_time = datetime.min.replace(tzinfo=UTC)
        self._tell_at = 0.0

    async def step(self) -> None:
        await asyncio.sleep(LOOK_EVERY)
        await self.look()

    async def look(self) -> None:
        """Note how full the lanes are, and tell the store if it is time."""
        now = await self._now()
        self._desk.tally.look(self._desk.lanes, now)
        if monotonic() >= self._tell_at:
            self._tell_at = monotonic() + TELL_EVERY * random.uniform(0.8, 1.2)  # noqa: S311 - not all at once
            await self.tell(now)

    async def tell(self, now: datetime | None = None) -> None:
        """Write what the store does not know yet."""
        moment = now or await self._now()
        told = self._desk.tally.unwritten(moment)
        if not told:
            return
        await self._store.note_minutes(self._id, [minute for minute, _ in told])
        for minute, state in told:
            self._desk.tally.written(minute, state, moment)

    async def _now(self) -> datetime:
        """The store's time, asked seldom and reckoned on by our own clock."""
        if monotonic() - self._set_at > SET_CLOCK_EVERY:
            self._store_time = await self._store.now()
            self._set_at = monotonic()
        return self._store_time + timedelta(seconds=monotonic() - self._set_at)
