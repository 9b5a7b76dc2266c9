"""The roller: merges the minutes of many sessions into one, so that numbers do not grow with the number of workers."""

from __future__ import annotations

import asyncio
import random

from rota.stores.contract import Store
from rota.worker.service import Service

EVERY = 600.0


class Roller(Service):
    """Rolls about every ten minutes. Several rollers at once are harmless."""

    name = "roller"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def step(self) -> None:
        await asyncio.sleep(EVERY * random.uniform(0.5, 1.0))  # noqa: S311 - not all workers at once
        await self._store.roll()
