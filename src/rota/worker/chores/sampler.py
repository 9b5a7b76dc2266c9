"""The sampler: looks how deep the queues are and what takes room, so that charts can show how it came to be so."""

from __future__ import annotations

import asyncio
import random
from time import time

from rota.stores.contract import Store
from rota.worker.service import Service

MINUTE = 60.0
ROOM_EVERY = 5
"""Minutes from one look at what takes room to the next."""
SPREAD = 10.0
"""Seconds over which workers come, so that one of them has looked before most others ask."""


class Sampler(Service):
    """Looks in every minute, the first time after the next one began: a worker that starts has better things to do.

    Of many workers one looks, and the others find it done.
    """

    name = "sampler"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def step(self) -> None:
        await asyncio.sleep(until_next())
        await self._store.note_depths()
        if time() // MINUTE % ROOM_EVERY == 0:
            await self._store.note_room()


def until_next() -> float:
    """Seconds until a moment of the next minute."""
    return MINUTE - time() % MINUTE + random.uniform(0.0, SPREAD)  # noqa: S311 - not all at once
