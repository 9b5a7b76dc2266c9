"""A business process: writes an order and enqueues a job in one transaction. `python -m chaos.business '{…}'`.

`end` says how each transaction ends: commit, rollback, mixed, or with a crash of
the process just before or just after the commit.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from chaos.journal import Journal
from chaos.tasks import app, reads_order, work

ORDER = "INSERT INTO orders (key) VALUES ('{}')"
URL = os.environ["ROTA_URL"]
ALCHEMY = URL.replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def by_psycopg() -> Iterator[Any]:
    with psycopg.connect(URL) as connection:
        yield connection


@contextmanager
def by_alchemy() -> Iterator[Any]:
    engine = create_engine(ALCHEMY)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@contextmanager
def by_alchemy_session() -> Iterator[Any]:
    engine = create_engine(ALCHEMY)
    with Session(engine) as session:
        yield session
    engine.dispose()


@asynccontextmanager
async def by_async_psycopg() -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(URL) as connection:
        yield connection


@asynccontextmanager
async def by_async_alchemy() -> AsyncIterator[Any]:
    engine = create_async_engine(ALCHEMY)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


@asynccontextmanager
async def by_async_alchemy_session() -> AsyncIterator[Any]:
    engine = create_async_engine(ALCHEMY)
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


class Business:
    def __init__(self, name: str, kind: str, count: int, end: str, seed: int = 0, hold: float = 0.03) -> None:
        """`hold`: at most so many seconds pass between the enqueue and the end of its transaction."""
        self._name, self._kind, self._count, self._end, self._hold = name, kind, count, end, hold
        self._dice = random.Random(f"{seed}/{name}")
        self._journal = Journal(Path(os.environ["CHAOS_JOURNAL"]))

    def run(self) -> None:
        if self._kind == "unhinted":
            self._unhinted()
        elif "async" in self._kind:
            asyncio.run(self._awaited(globals()[f"by_{self._kind}"]))
        else:
            self._plain(globals()[f"by_{self._kind}"])
        self._journal.close()

    def _plain(self, connect: Callable[[], Any]) -> None:
        for key in self._keys():
            with connect() as tx:
                tx.execute(self._order(key))
                handle = reads_order.using(tx=tx).enqueue_sync(key)
                time.sleep(self._dice.uniform(0.0, self._hold))
                commits = self._decided(key)
                tx.commit() if commits else tx.rollback()
                self._ended(key, handle, commits)

    async def _awaited(self, connect: Callable[[], Any]) -> None:
        for key in self._keys():
            async with connect() as tx:
                await tx.execute(self._order(key))
                handle = await reads_order.using(tx=tx).enqueue(key)
                await asyncio.sleep(self._dice.uniform(0.0, self._hold))
                commits = self._decided(key)
                await (tx.commit() if commits else tx.rollback())
                self._ended(key, handle, commits)

    def _unhinted(self) -> None:
        """The last job of a burst is hinted at a little later. Crash before that."""
        from rota.stores.postgres import enqueue

        enqueue.HINT_PAUSE = 600.0
        for number, key in enumerate(self._keys()):
            if number:
                time.sleep(3.0)  # the worker has long gone idle again
            self._journal.ack({key: str(work.enqueue_sync(key, 1).id)})
        os._exit(0)

    def _keys(self) -> list[str]:
        keys = [f"{self._name}-{number}" for number in range(self._count)]
        self._journal.intend(keys)
        return keys

    def _order(self, key: str) -> Any:
        return text(ORDER.format(key)) if "alchemy" in self._kind else ORDER.format(key)

    def _decided(self, key: str) -> bool:
        """Whether to commit; a withdrawal is written down before it is carried out."""
        commits = self._end in ("commit", "crash_after") or (
            self._end == "mixed" and self._dice.random() < 0.5
        )
        if not commits:
            self._journal.withdraw([key])
        if self._end == "crash_before":
            os._exit(0)
        return commits

    def _ended(self, key: str, handle: Any, commits: bool) -> None:
        if commits:
            self._journal.ack({key: str(handle.id)})
        if self._end == "crash_after":
            os._exit(0)


if __name__ == "__main__":
    Business(**json.loads(sys.argv[1])).run()
    app.close_sync()
