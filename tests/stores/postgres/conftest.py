"""Two sides of a race, one held open while the other runs; and a server of its own for what would hurt others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import servers
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.connections import Connection


class Side:
    """One side of a race: a store of its own, and a transaction that stays open until `commit` or `rollback`."""

    def __init__(self, url: str) -> None:
        self.store = PostgresStore(url)
        self.connection: Connection

    async def begin(self) -> None:
        self.connection = await self.desk.connections.connect()
        await self.connection.execute("BEGIN")

    @property
    def desk(self) -> Any:
        return self.store._desks()

    async def settle(self, transition: Any) -> Any:
        """The store's own settle, on the open transaction."""
        return await self.desk.settler.change(self.connection, transition)

    async def execute(self, text: str, parameters: Any = None) -> list[Any]:
        cursor = await self.connection.execute(text, parameters)
        return await cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        await self.connection.execute("COMMIT")

    async def rollback(self) -> None:
        await self.connection.execute("ROLLBACK")


@pytest.fixture
async def store(fresh_database: str) -> AsyncIterator[PostgresStore]:
    """The other side: an ordinary store on the server's own clock."""
    store = PostgresStore(fresh_database)
    yield store
    await store.close()


@pytest.fixture
async def side(fresh_database: str) -> AsyncIterator[Side]:
    """A side whose transaction is open."""
    side = Side(fresh_database)
    await side.begin()
    yield side
    await side.connection.close()
    await side.store.close()


@pytest.fixture
def waits(store: PostgresStore) -> Callable[[Awaitable[Any]], Any]:
    """`async with waits(call) as task`: the call has begun and waits for a lock that somebody holds."""

    @asynccontextmanager
    async def waiting(call: Awaitable[Any]) -> AsyncIterator[asyncio.Task[Any]]:
        task = asyncio.ensure_future(call)
        watcher = await store._desks().connections.connect()
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        try:
            async with asyncio.timeout(5):
                while not (await (await watcher.execute(query)).fetchone())[0]:
                    assert not task.done(), f"it did not wait: {task}"
                    await asyncio.sleep(0.01)
            yield task
        finally:
            await watcher.close()
            if not task.done():
                task.cancel()

    return waiting


@pytest.fixture(scope="session")
def own_server() -> Iterator[servers.Server]:
    """A server with a port, where the role `locked` needs its password, `sesame`."""
    server = servers.Server(servers.chosen(), hba="host all locked 127.0.0.1/32 scram-sha-256\n")
    server.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'sesame'")
    yield server
    server.destroy()


@pytest.fixture
def own_database(own_server: servers.Server) -> Iterator[str]:
    """The address of a wholly empty database on that server."""
    name = f"own_{uuid4().hex[:12]}"
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield servers.with_database(own_server.url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
