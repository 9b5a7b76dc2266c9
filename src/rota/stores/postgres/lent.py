"""Connections that are lent to handlers: few, and apart from Rota's own, so that no handler keeps Rota waiting.

A handler may leave anything behind on its connection (settings, temporary
tables, listening): all of it is thrown away before the next one gets it.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

import psycopg
from psycopg_pool import ConnectionPool

from rota.stores.postgres.address import Address
from rota.stores.postgres.connections import KEEPALIVE, PerLoop
from rota.stores.postgres.faults import explained
from rota.stores.postgres.pool import EndingPool
from rota.stores.postgres.prompt import PromptConnection

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

SyncConnection: TypeAlias = "psycopg.Connection[TupleRow]"

MOST = 10
"""So many handlers of an event loop, and of a process's threads, are inside a transaction at once; others wait."""
CONNECT_SECONDS = 10.0
OPTIONS: dict[str, Any] = {
    "prepare_threshold": None,  # behind a pooler nothing may stay prepared
    "connect_timeout": 5,
    "application_name": "rota handler",
    **KEEPALIVE,
}
POOL: dict[str, Any] = {
    "min_size": 0,
    "max_size": MOST,
    "open": False,
    "kwargs": OPTIONS,
    "timeout": CONNECT_SECONDS,
    "reconnect_timeout": 2.0,
    "max_idle": 60.0,
}


class LoopLending:
    """What is lent to the coroutines of one event loop."""

    def __init__(self, server: Address) -> None:
        self._server = server
        self._turns, self._lock = asyncio.Semaphore(MOST), asyncio.Lock()
        self._pool: EndingPool | None = None
        self._made: WeakSet[PromptConnection] = WeakSet()

    async def take(self) -> PromptConnection:
        await self._turns.acquire()
        try:
            async with self._lock:
                if self._pool is None:
                    pool = EndingPool(
                        self._server.now,
                        connection_class=PromptConnection,
                        configure=self._configure,
                        reset=_clean,
                        **POOL,
                    )
                    await pool.open()
                    self._pool = pool
            return await self._pool.getconn()
        except BaseException as error:
            self._turns.release()
            if isinstance(error, (psycopg.Error, OSError)):
                raise explained(error, self._server.url) from error
            raise

    async def give_back(self, connection: PromptConnection) -> None:
        self._turns.release()
        if self._pool is None:
            connection.pgconn.finish()
        else:
            await self._pool.putconn(connection)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            with suppress(psycopg.Error):
                await pool.close(timeout=2.0)

    def abandon(self) -> None:
        """Their event loop is closed: let the server know that we are gone."""
        for connection in self._made:
            connection.pgconn.finish()

    async def _configure(self, connection: PromptConnection) -> None:
        self._made.add(connection)


class ThreadLending:
    """What is lent to the threads of this process."""

    def __init__(self, server: Address) -> None:
        self._server = server
        self._turns, self._lock = threading.Semaphore(MOST), threading.Lock()
        self._pool: ConnectionPool[SyncConnection] | None = None

    @property
    def used(self) -> bool:
        """Whether anything was lent: most apps never do."""
        return self._pool is not None

    def take(self) -> SyncConnection:
        self._turns.acquire()
        try:
            with self._lock:
                if self._pool is None:
                    self._pool = ConnectionPool(self._server.now, reset=_clean_sync, **POOL)
                    self._pool.open()
                pool = self._pool
            return pool.getconn()
        except BaseException as error:
            self._turns.release()
            if isinstance(error, (psycopg.Error, OSError)):
                raise explained(error, self._server.url) from error
            raise

    def give_back(self, connection: SyncConnection) -> None:
        self._turns.release()
        pool = self._pool
        if pool is None:
            connection.close()
        else:
            pool.putconn(connection)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=2.0)


class Lending:
    """All that one store lends."""

    def __init__(self, server: Address) -> None:
        self._server = server
        self.to_loop: PerLoop[LoopLending] = PerLoop(lambda: LoopLending(server))
        self.to_threads = ThreadLending(server)

    @property
    def url(self) -> str:
        return self._server.url

    async def close(self) -> None:
        await self.to_loop.close()
        if self.to_threads.used:
            await asyncio.to_thread(self.to_threads.close)


async def _clean(connection: PromptConnection) -> None:
    await connection.set_autocommit(True)
    await connection.execute("DISCARD ALL")
    await connection.set_autocommit(False)


def _clean_sync(connection: SyncConnection) -> None:
    connection.set_autocommit(True)
    connection.execute("DISCARD ALL")
    connection.set_autocommit(False)
