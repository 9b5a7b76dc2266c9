"""The reviewer: what the end of a new job means for the dead letter whose work it did again."""

from __future__ import annotations

import asyncio
import logging
import random

from rota.stores.contract import Store
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

OFTEN = 3.0
SELDOM = 60.0


class Reviewer(Service):
    """Looks every 3 s while dead letters are being reprocessed, once a minute otherwise.

    A settle knows nothing of dead letters, so that ordinary jobs pay nothing
    for them.
    """

    name = "reviewer"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def step(self) -> None:
        moved, still = await self._store.settle_reviews()
        if moved:
            log.info("reviewed: %d dead letters, by the ends of their new jobs.", moved)
        await asyncio.sleep((OFTEN if moved or still else SELDOM) * random.uniform(0.8, 1.2))  # noqa: S311
