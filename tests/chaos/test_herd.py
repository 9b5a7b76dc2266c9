"""F45: many idle workers, and one job at a time, or very many at once: nobody may ask much more often than needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rota import Rota
from rota.config import Settings
from rota.stores.postgres import PostgresStore
from rota.worker import Worker

WORKERS = 50


class Counting:
    """A store that counts the claims which brought nothing."""

    def __init__(self, store: PostgresStore, counts: dict[str, int]) -> None:
        self.name, self._store, self._counts = store.name, store, counts

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def claim(self, *given: Any, **options: Any) -> Any:
        jobs = await self._store.claim(*given, **options)
        self._counts["full" if jobs else "empty"] += 1
        return jobs

    async def next_due(self, *given: Any) -> Any:
        self._counts["polls"] += 1
        return await self._store.next_due(*given)


@asynccontextmanager
async def herd(url: str, counts: dict[str, int], begun: asyncio.Queue[int]) -> AsyncIterator[Rota]:
    """Fifty workers, each with a store and connections of its own as in fifty processes."""
    workers, running, stores = [], [], []
    for _ in range(WORKERS):
        stores.append(PostgresStore(url))
        app = Rota(store=Counting(stores[-1], counts), settings=Settings.load(url="memory://"))

        @app.task
        async def arrive(number: int) -> None:
            begun.put_nowait(number)

        workers.append(Worker(app, lanes={"general": 4}))
        running.append(asyncio.create_task(workers[-1].run()))
    await asyncio.gather(*(worker.ready() for worker in workers))
    await asyncio.sleep(3.0)  # until all have looked for work, found none, and listen
    try:
        yield app
    finally:
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
        for store in stores:
            await store.close()


@pytest.mark.chaos
async def test_fifty_idle_workers_ask_once_each_for_one_job_and_no_more(own_server):
    """All hear of it, and nobody knows that another was faster: one asks in vain for each that does not get it."""
    counts = dict.fromkeys(("full", "empty", "polls"), 0)
    begun: asyncio.Queue[int] = asyncio.Queue()
    async with asyncio.timeout(60), herd(own_server.url, counts, begun) as app:
        counts.update(full=0, empty=0, polls=0)
        began = time.monotonic()
        for number in range(20):
            await app.enqueue("arrive", {"number": number})
            assert await begun.get() == number
            await asyncio.sleep(0.1)
        trickled, took = dict(counts), time.monotonic() - began

    print(f"for 20 jobs, one at a time, in {took:.1f} s: {trickled}")
    assert trickled["full"] == 20
    # Whoever is idle also looks around by itself, every five seconds where hints arrive: a busy machine takes longer.
    assert trickled["empty"] <= WORKERS * (20 + took / 5 + 1)
    assert trickled["polls"] <= WORKERS * (20 + took / 5 + 1)
