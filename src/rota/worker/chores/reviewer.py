"""The reviewer: what the end of a new job means for the dead letter whose work it did again."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress

from rota.stores.contract import Store
from rota.worker.desk import Desk
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

OFTEN = 3.0
SELDOM = 60.0


class Reviewer(Service):
    """Looks every 3 s while dead letters are being reprocessed, else once a minute or when a job with a parent comes.

    A settle knows nothing of dead letters, so that ordinary jobs pay nothing
    for them.
    """

    name = "reviewer"

    def __init__(self, store: Store, desk: Desk) -> None:
        super().__init__()
        self._store, self._desk = store, desk

    async def step(self) -> None:
        moved, still = await self._store.settle_reviews()
        if moved:
            log.info("reviewed: %d dead letters, by the ends of their new jobs.", moved)
        await asyncio.sleep(OFTEN * random.uniform(0.8, 1.2))  # noqa: S311 - many workers must not look at once
        if not (moved or still):
            with suppress(TimeoutError):
                async with asyncio.timeout(SELDOM * random.uniform(0.8, 1.2)):  # noqa: S311
                    await self._desk.kin_came.wait()
        self._desk.kin_came.clear()
