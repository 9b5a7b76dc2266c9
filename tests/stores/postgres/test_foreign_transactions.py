"""tx=, connection by connection: jobs stored by the caller's own driver, in the caller's own transaction."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import class_row, dict_row, namedtuple_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from build import Clock, a_job, claim, read
from rota._core.job import NewJob, State
from rota.errors import NotSupported
from rota.stores.contract import Enqueued, JobFilter, Stored
from rota.stores.postgres import PostgresStore

NOTE = "CREATE TABLE IF NOT EXISTS public.note (word text)"
WRITE = "INSERT INTO public.note VALUES ('written')"


class Tx:
    """A caller's transaction: what is given as tx=, and how the caller writes, commits and rolls back."""

    def __init__(self, given: Any, owner: Any, *, alchemy: bool = False) -> None:
        self.given, self._owner, self._alchemy = given, owner, alchemy

    async def enqueue(self, store: PostgresStore, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers = store.enqueue_within(self.given, jobs)
        return await answers if inspect.isawaitable(answers) else answers

    async def write(self) -> None:
        await _awaited(self.given.execute(sa.text(WRITE) if self._alchemy else WRITE))

    async def commit(self) -> None:
        await _awaited(self._owner.commit())

    async def rollback(self) -> None:
        await _awaited(self._owner.rollback())


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
        await connection.execute("BEGIN")
        yield Tx(connection, connection)


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


def async_engine_of(url: str, driver: str) -> Any:
    if driver == "asyncpg":
        # asyncpg knows a socket directory as host, and no other words of libpq.
        parts = psycopg.conninfo.conninfo_to_dict(url)
        address = sa.URL.create("postgresql+asyncpg", username=parts["user"], database=parts["dbname"])
        return create_async_engine(address, connect_args={"host": parts["host"], "port": int(parts["port"])})
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


@pytest.mark.scenario(11)
@pytest.mark.parametrize("way", WAYS)
async def test_jobs_live_and_die_with_the_callers_own_rows(store, fresh_database, way):
    """One connection, three transactions: rolled back, committed, and one with duplicates in it."""
    kept = [a_job("email", {"to": "änn", "colon": ":x %s", "quote": "it's \\"}), a_job(key="order:1")]
    async with await psycopg.AsyncConnection.connect(fresh_database) as setup:
        await setup.execute(NOTE)
    async with WAYS[way](fresh_database) as tx:
        await tx.enqueue(store, [a_job(), a_job(key="order:1")])
        await tx.write()
        await tx.rollback()

        if way.endswith("autocommit"):
            await tx.given.execute("BEGIN")
        answers = await tx.enqueue(store, kept)
        await tx.write()
        assert await store.find(JobFilter()) == []
        await tx.commit()
        assert answers == [Enqueued(job.id, Stored.CREATED) for job in kept]

        if way.endswith("autocommit"):
            await tx.given.execute("BEGIN")
        new = a_job()
        again = await tx.enqueue(store, [a_job(key="order:1"), new, a_job(key="order:1", payload={"n": 1})])
        await tx.write()
        await tx.commit()

    assert again == [
        Enqueued(kept[1].id, Stored.DUPLICATE),
        Enqueued(new.id, Stored.CREATED),
        Enqueued(kept[1].id, Stored.CONFLICT),
    ]
    async with await psycopg.AsyncConnection.connect(fresh_database) as reader:
        assert await (await reader.execute("SELECT count(*) FROM public.note")).fetchone() == (2,)
    assert {job.id for job in await claim(store)} == {kept[0].id, kept[1].id, new.id}
    assert (await read(store, kept[0])).payload == {"to": "änn", "colon": ":x %s", "quote": "it's \\"}


async def test_the_clock_of_the_store_counts_there_too(fresh_database):
    clock = Clock()
    clock.advance(86_400 * 400)
    store = PostgresStore(fresh_database, clock=clock)
    job = a_job(delay=60)
    async with alchemy_connection(fresh_database) as tx:
        await tx.enqueue(store, [job])
        await tx.commit()

    stored = await read(store, job)
    assert (stored.created_at, (stored.run_at - clock()).total_seconds()) == (clock(), 60)
    await store.close()


async def test_an_error_of_the_callers_transaction_stays_the_drivers(store, fresh_database):
    async with sync_connection(fresh_database) as tx:
        with pytest.raises(psycopg.errors.UndefinedTable):
            tx.given.execute("SELECT * FROM nowhere")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            await tx.enqueue(store, [a_job()])
        await tx.rollback()


async def test_a_savepoint_takes_its_jobs_back(store, fresh_database):
    outer, inner = a_job(), a_job()
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        await store.enqueue_within(connection, [outer])
        async with connection.transaction():
            await store.enqueue_within(connection, [inner])
            raise psycopg.Rollback

    assert [job.id for job in await store.find(JobFilter())] == [outer.id]
    assert (await read(store, outer)).state is State.PENDING


def test_whatever_else_is_given_is_named_with_what_would_do():
    store = PostgresStore("postgresql://nobody@nowhere/none")

    with closing(sqlite3.connect(":memory:")) as lite:
        for tx, named in ((lite, "sqlite3.Connection"), ("postgresql://here", "builtins.str")):
            with pytest.raises(NotSupported) as refused:
                store.enqueue_within(tx, [a_job()])

            assert str(refused.value) == (
                f"the PostgreSQL store cannot enqueue within a {named}. Pass a psycopg connection or cursor, or a "
                "SQLAlchemy connection or session (sync or async) as tx=."
            )
