"""The unparker: puts parked jobs back on the list when what kept them is gone, where the event was missed."""

from __future__ import annotations

import asyncio
import random

from rota.stores.contract import Store
from rota.worker.desk import Desk
from rota.worker.service import Service

OFTEN = 5.0
SELDOM = 30.0


class Unparker(Service):
    """Looks every 5 s while there is gated or parked work, every 30 s otherwise."""

    name = "unparker"

    def __init__(self, store: Store, desk: Desk) -> None:
        super().__init__()
        self._store, self._desk = store, desk

    async def step(self) -> None:
        self._desk.gates_seen = False
        unparked = await self._store.unpark()
        if unparked:
            self._desk.wake()
        await self._rest(OFTEN if unparked else SELDOM)

    async def _rest(self, seconds: float) -> None:
        """Rest, but only 5 s once a gated job came along."""
        jitter = random.uniform(0.8, 1.2)  # noqa: S311
        rested = 0.0
        while rested < seconds and not (self._desk.gates_seen and rested >= OFTEN):
            await asyncio.sleep(OFTEN * jitter)
            rested += OFTEN
