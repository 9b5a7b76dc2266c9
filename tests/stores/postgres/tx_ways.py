"""Each way in which a caller may hold a transaction that is given as tx=."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import sqlalchemy as sa
from psycopg.rows import class_row, dict_row, namedtuple_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from rota._core.job import NewJob
from rota.stores.contract import Enqueued
from rota.stores.postgres import PostgresStore

NOTE = "CREATE TABLE IF NOT EXISTS public.note (word text)"
WRITE = "INSERT INTO public.note VALUES ('written')"


class Tx:
    """A caller's transaction: what is given as tx=, and how the caller writes, commits and rolls back."""

    def __init__(self, given: Any, owner: Any, *, alchemy: bool = False, by_hand: bool = False) -> None:
        self.given, self._owner, self._alchemy, self._by_hand = given, owner, alchemy, by_hand

    async def begin(self) -> None:
        """Most connections begin by themselves."""
        if self._by_hand:
            await self._owner.execute("BEGIN")

    async def enqueue(self, store: PostgresStore, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers = store.enqueue_within(self.given, jobs)
        return await answers if inspect.isawaitable(answers) else answers

    async def write(self) -> None:
        await _awaited(self.given.execute(sa.text(WRITE) if self._alchemy else WRITE))

    async def commit(self) -> None:
        await _awaited(self._owner.execute("COMMIT") if self._by_hand else self._owner.commit())

    async def rollback(self) -> None:
        await _awaited(self._owner.execute("ROLLBACK") if self._by_hand else self._owner.rollback())


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


# Each way to hold a connection. The drivers' own context managers close what they open.


@asynccontextmanager
async def async_connection(url: str) -> AsyncIterator[Tx]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Tx(connection, connection)


@asynccontextmanager
async def async_cursor(url: str) -> AsyncIterator[Tx]:
    async with await psycopg.AsyncConnection.connect(url) as connection, connection.cursor() as cursor:
        yield Tx(cursor, connection)


@asynccontextmanager
async def async_dict_rows(url: str) -> AsyncIterator[Tx]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        yield Tx(connection, connection)


@asynccontextmanager
async def client_cursor(url: str) -> AsyncIterator[Tx]:
    async with await psycopg.AsyncConnection.connect(
        url, cursor_factory=psycopg.AsyncClientCursor
    ) as connection:
        yield Tx(connection.cursor(), connection)


@asynccontextmanager
async def raw_cursor(url: str) -> AsyncIterator[Tx]:
    """Its placeholders are $1, not ours."""
    async with await psycopg.AsyncConnection.connect(
        url, cursor_factory=psycopg.AsyncRawCursor
    ) as connection:
        yield Tx(connection.cursor(), connection)


@asynccontextmanager
async def autocommit_in_a_block(url: str) -> AsyncIterator[Tx]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield Tx(connection, connection, by_hand=True)


@asynccontextmanager
async def sync_connection(url: str) -> AsyncIterator[Tx]:
    with psycopg.connect(url) as connection:
        yield Tx(connection, connection)


@asynccontextmanager
async def sync_cursor(url: str) -> AsyncIterator[Tx]:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        yield Tx(cursor, connection)


@asynccontextmanager
async def sync_dict_rows(url: str) -> AsyncIterator[Tx]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield Tx(connection, connection)


@asynccontextmanager
async def sync_named_rows(url: str) -> AsyncIterator[Tx]:
    with psycopg.connect(url, row_factory=namedtuple_row) as connection:
        yield Tx(connection, connection)


class Anything:
    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)


@asynccontextmanager
async def sync_own_rows(url: str) -> AsyncIterator[Tx]:
    with psycopg.connect(url, row_factory=class_row(Anything)) as connection:
        yield Tx(connection, connection)


@contextmanager
def engine(url: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()


@asynccontextmanager
async def alchemy_connection(url: str) -> AsyncIterator[Tx]:
    with engine(url) as made, made.connect() as connection:
        yield Tx(connection, connection, alchemy=True)


@asynccontextmanager
async def alchemy_session(url: str) -> AsyncIterator[Tx]:
    with engine(url) as made, Session(made) as session:
        yield Tx(session, session, alchemy=True)


@asynccontextmanager
async def alchemy_scoped_session(url: str) -> AsyncIterator[Tx]:
    with engine(url) as made:
        session = scoped_session(sessionmaker(made))
        yield Tx(session, session, alchemy=True)
        session.remove()


def asyncpg_words(url: str) -> dict[str, Any]:
    """asyncpg knows a socket directory as host, and no other words of libpq. Behind a pooler it may prepare nothing."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return {
        "host": parts["host"],
        "port": int(parts["port"]),
        "user": parts["user"],
        "database": parts["dbname"],
        "statement_cache_size": 0,
    }


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Tx]:
    connection = await asyncpg.connect(**asyncpg_words(url))
    yield Tx(connection, connection, by_hand=True)
    await connection.close()


@asynccontextmanager
async def asyncpg_from_a_pool(url: str) -> AsyncIterator[Tx]:
    async with (
        asyncpg.create_pool(**asyncpg_words(url), min_size=0, max_size=2) as pool,
        pool.acquire() as connection,
    ):
        yield Tx(connection, connection, by_hand=True)


@asynccontextmanager
async def asyncpg_with_own_codecs(url: str) -> AsyncIterator[Tx]:
    """Its ids come as text, and its JSON as objects."""
    async with asyncpg_connection(url) as tx:
        await tx.given.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")
        await tx.given.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        yield tx


def async_engine_of(url: str, driver: str) -> Any:
    if driver == "asyncpg":
        words = asyncpg_words(url)
        address = sa.URL.create(
            "postgresql+asyncpg", username=words.pop("user"), database=words.pop("database")
        )
        words |= {"prepared_statement_name_func": lambda: f"s{uuid4().hex}"}
        return create_async_engine(address, connect_args=words)
    return create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def alchemy_async_connection(driver: str) -> Callable[[str], Any]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Tx]:
        made = async_engine_of(url, driver)
        async with made.connect() as connection:
            yield Tx(connection, connection, alchemy=True)
        await made.dispose()

    return opened


def alchemy_async_session(driver: str) -> Callable[[str], Any]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Tx]:
        made = async_engine_of(url, driver)
        async with AsyncSession(made) as session:
            yield Tx(session, session, alchemy=True)
        await made.dispose()

    return opened


WAYS = {
    "psycopg-async": async_connection,
    "psycopg-async-cursor": async_cursor,
    "psycopg-async-dict_row": async_dict_rows,
    "psycopg-async-client-cursor": client_cursor,
    "psycopg-async-raw-cursor": raw_cursor,
    "psycopg-async-autocommit": autocommit_in_a_block,
    "asyncpg": asyncpg_connection,
    "asyncpg-pool": asyncpg_from_a_pool,
    "asyncpg-own-codecs": asyncpg_with_own_codecs,
    "psycopg": sync_connection,
    "psycopg-cursor": sync_cursor,
    "psycopg-dict_row": sync_dict_rows,
    "psycopg-namedtuple_row": sync_named_rows,
    "psycopg-class_row": sync_own_rows,
    "sqlalchemy-connection": alchemy_connection,
    "sqlalchemy-session": alchemy_session,
    "sqlalchemy-scoped_session": alchemy_scoped_session,
    "sqlalchemy-async-connection-psycopg": alchemy_async_connection("psycopg"),
    "sqlalchemy-async-session-psycopg": alchemy_async_session("psycopg"),
    "sqlalchemy-async-connection-asyncpg": alchemy_async_connection("asyncpg"),
    "sqlalchemy-async-session-asyncpg": alchemy_async_session("asyncpg"),
}
