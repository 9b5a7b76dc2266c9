"""The janitor: removes what retention lets go, and prepares room for what comes."""

from __future__ import annotations

import asyncio
import logging
import random

from rota.stores.contract import Store
from rota.stores.retention_contract import Retention
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

EVERY = 3600.0


class Janitor(Service):
    """Tidies at start and about once an hour."""

    name = "janitor"

    def __init__(self, store: Store, retention: Retention | None = None) -> None:
        super().__init__()
        self._store, self._retention = store, retention or Retention()

    async def step(self) -> None:
        tidied = await self._store.tidy(self._retention)
        if any(tidied):
            log.info(
                "tidied: %s.",
                ", ".join(f"{count} {what}" for what, count in tidied._asdict().items() if count),
            )
        await asyncio.sleep(EVERY * random.uniform(0.9, 1.1))  # noqa: S311 - not all workers at once
