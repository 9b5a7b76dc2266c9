"""tx= with something that cannot carry a job: a clear word before anything is stored or any transaction aborted."""

from __future__ import annotations

import inspect
import logging
import sqlite3
from contextlib import closing
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import psycopg_pool
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session
from tx_ways import asyncpg_words

from build import a_job
from rota.errors import NotSupported, PermissionMissing, SchemaOutdated, TransactionUnusable
from rota.stores.contract import JobFilter
from rota.stores.postgres import PostgresStore
from servers import with_database

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
OUTSIDE = (
    " in autocommit mode and outside a transaction: the job would be stored at once, whatever becomes of your work. "
    "Nothing was stored. "
)
CLOSED = " Nothing was stored. Enqueue inside your transaction, or without tx=."


async def enqueue(store: PostgresStore, tx: Any) -> Any:
    answers = store.enqueue_within(tx, [a_job()])
    return await answers if inspect.isawaitable(answers) else answers


async def refused(store: PostgresStore, tx: Any) -> str:
    with pytest.raises(TransactionUnusable) as error:
        await enqueue(store, tx)
    assert await store.find(JobFilter()) == []
    return str(error.value)


def alchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


async def asyncpg_at(url: str) -> Any:
    return await asyncpg.connect(**asyncpg_words(url))


# Outside a transaction


async def test_psycopg_in_autocommit_mode_is_refused_outside_a_transaction(store, fresh_database):
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
        assert await refused(store, connection) == (
            f"tx= got a psycopg.AsyncConnection{OUTSIDE}"
            "Enqueue inside `async with connection.transaction():`, or leave tx= out."
        )
        async with connection.transaction():
            await enqueue(store, connection)
    with psycopg.connect(fresh_database, autocommit=True) as connection, connection.cursor() as cursor:
        with pytest.raises(TransactionUnusable, match=r"psycopg.Cursor.*Enqueue inside `with connection"):
            await enqueue(store, cursor)
        with connection.transaction():
            await enqueue(store, cursor)

    assert len(await store.find(JobFilter())) == 2


async def test_a_transaction_begun_in_a_pipeline_is_one_although_the_server_has_not_said_so(
    store, fresh_database
):
    async with (
        await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection,
        connection.pipeline(),
        connection.transaction(),
    ):
        await enqueue(store, connection)

    assert len(await store.find(JobFilter())) == 1


async def test_asyncpg_is_refused_outside_a_transaction(store, fresh_database):
    connection = await asyncpg_at(fresh_database)

    assert await refused(store, connection) == (
        f"tx= got an asyncpg.connection.Connection{OUTSIDE}"
        "Enqueue inside `async with connection.transaction():`, or leave tx= out."
    )
    await connection.close()


async def test_sqlalchemy_in_autocommit_mode_is_refused(store, fresh_database):
    engine = sa.create_engine(alchemy(fresh_database))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert await refused(store, connection) == (
            f"tx= got a sqlalchemy.engine.base.Connection{OUTSIDE}"
            "Use an isolation level with transactions, such as READ COMMITTED, or leave tx= out."
        )
    engine.dispose()
    whole = create_async_engine(alchemy(fresh_database), isolation_level="AUTOCOMMIT")
    async with AsyncSession(whole) as session:
        assert "AsyncSession in autocommit mode" in await refused(store, session)
    await whole.dispose()


# Closed


async def test_a_closed_connection_is_refused_in_one_sentence(store, fresh_database):
    connection = psycopg.connect(fresh_database)
    connection.close()
    assert await refused(store, connection) == f"tx= got a psycopg.Connection that is closed.{CLOSED}"

    connection = await asyncpg_at(fresh_database)
    await connection.close()
    assert (
        await refused(store, connection)
        == f"tx= got an asyncpg.connection.Connection that is closed.{CLOSED}"
    )

    engine = sa.create_engine(alchemy(fresh_database))
    connection = engine.connect()
    connection.close()
    assert "sqlalchemy.engine.base.Connection that is closed" in await refused(store, connection)
    engine.dispose()


async def test_a_connection_that_went_back_to_its_pool_is_refused(store, fresh_database):
    async with asyncpg.create_pool(**asyncpg_words(fresh_database), min_size=0) as pool:
        async with pool.acquire() as connection:
            pass
        assert await refused(store, connection) == (
            f"tx= got an asyncpg.pool.PoolConnectionProxy that was given back to its pool.{CLOSED}"
        )


async def test_an_async_connection_that_nobody_began_is_refused(store, fresh_database):
    engine = create_async_engine(alchemy(fresh_database))

    assert "was not begun (no `async with`, no await)" in await refused(store, engine.connect())
    await engine.dispose()


# Another database


@pytest.fixture
async def elsewhere(store, cluster, administrator, template):
    """Another database of the same server, with Rota's schema."""
    name = f"elsewhere_{uuid4().hex[:8]}"
    administrator.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield with_database(cluster, name)
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_another_database_is_refused_although_it_has_a_rota_schema_too(store, elsewhere):
    name = psycopg.conninfo.conninfo_to_dict(elsewhere)["dbname"]
    async with await psycopg.AsyncConnection.connect(elsewhere) as connection:
        said = await refused(store, connection)
        assert said.startswith(f"tx= leads to database '{name}', and the jobs of this app are in ")
        assert said.endswith(
            ": no worker would find the job there. Nothing was stored. Point ROTA_URL at the database of your "
            "transaction, or enqueue after your commit, without tx=."
        )
        # It is still usable, and has seen nothing.
        row = await (await connection.execute("SELECT count(*) FROM rota.jobs")).fetchone()
        assert row == (0,)
    connection = await asyncpg_at(elsewhere)
    async with connection.transaction():
        assert f"tx= leads to database '{name}'" in await refused(store, connection)
    await connection.close()


async def test_the_same_database_name_on_another_server_is_another_database(
    store, own_database, fresh_database
):
    name = own_database.rpartition("/")[2]
    other = PostgresStore(own_database)
    await other.migrate()
    async with await psycopg.AsyncConnection.connect(own_database) as connection:
        assert f"tx= leads to database '{name}'" in await refused(store, connection)
        await enqueue(other, connection)
    await other.close()


async def test_a_database_without_the_schema_says_so_and_aborts_nothing(own_database):
    store = PostgresStore(own_database)
    async with await psycopg.AsyncConnection.connect(own_database) as connection:
        with pytest.raises(SchemaOutdated, match="has no Rota schema yet"):
            await enqueue(store, connection)
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)

        await store.migrate()
        await connection.rollback()
        await enqueue(store, connection)
        await connection.commit()
    assert len(await store.find(JobFilter())) == 1
    await store.close()


async def test_a_role_that_may_not_store_is_named_and_nothing_is_aborted(own_database):
    store = PostgresStore(own_database)
    await store.migrate()
    async with await psycopg.AsyncConnection.connect(own_database) as connection:
        await connection.execute("CREATE ROLE stranger")
        await connection.execute("SET ROLE stranger")
        with pytest.raises(PermissionMissing, match="as role 'stranger', which may not store jobs"):
            await enqueue(store, connection)
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
        await connection.rollback()
    await store.close()


async def test_a_database_that_was_made_anew_meanwhile_is_known_again(own_server, own_database):
    store = PostgresStore(own_database)
    await store.migrate()
    async with await psycopg.AsyncConnection.connect(own_database) as connection:
        await enqueue(store, connection)
    await store.close()
    name = own_database.rpartition("/")[2]
    with psycopg.connect(own_server.url, autocommit=True) as administrator:
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
        administrator.execute(f"CREATE DATABASE {name}")
    await store.migrate()
    # By another address, so that it is asked again.
    async with await psycopg.AsyncConnection.connect(
        own_database.replace("127.0.0.1", "localhost")
    ) as connection:
        await enqueue(store, connection)

    assert len(await store.find(JobFilter())) == 1
    await store.close()


async def test_where_it_leads_is_asked_once_for_each_address(store, fresh_database):
    asked = []
    flow = store._foreign._check

    def noted(where):
        asked.append(where)
        return flow(where)

    store._foreign._check = noted
    for _ in range(3):
        async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
            await enqueue(store, connection)
            await enqueue(store, connection)

    assert len(asked) == 1


@pytest.mark.parametrize("sync", [True, False])
async def test_a_store_that_cannot_be_reached_costs_nobody_the_job(fresh_database, caplog, sync):
    """The caller's own connection works, and the job lives there."""
    caplog.set_level(logging.WARNING, "rota.enqueue")
    cut_off = PostgresStore(NOWHERE)
    if sync:
        with psycopg.connect(fresh_database) as connection:
            cut_off.enqueue_within(connection, [a_job()])
            cut_off.enqueue_within(connection, [a_job()])
    else:
        async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
            await cut_off.enqueue_within(connection, [a_job()])
            await cut_off.enqueue_within(connection, [a_job()])
    store = PostgresStore(fresh_database)

    assert len(await store.find(JobFilter())) == 2
    assert caplog.text.count("whether tx= leads to the database of the jobs could not be checked") == 1
    await store.close()


# Something else altogether


def test_whatever_else_is_given_is_named_with_what_would_do():
    store = PostgresStore(NOWHERE)

    with closing(sqlite3.connect(":memory:")) as lite:
        for tx, named in ((lite, "a sqlite3.Connection"), (7, "a builtins.int")):
            with pytest.raises(NotSupported) as error:
                store.enqueue_within(tx, [a_job()])

            assert str(error.value) == (
                f"the PostgreSQL store cannot enqueue within {named}. Pass a connection or session of psycopg, asyncpg "
                "or SQLAlchemy, or django.db.transaction (or the name of one of Django's databases) as tx=."
            )


async def test_what_only_makes_connections_is_refused_with_how_to_take_one():
    store = PostgresStore(NOWHERE)
    pool = psycopg_pool.AsyncConnectionPool(NOWHERE, open=False)
    engine = sa.create_engine("postgresql+psycopg://")
    for tx, hint in (
        (pool, "async with pool.connection()"),
        (psycopg_pool.ConnectionPool(NOWHERE, open=False), "with pool.connection()"),
        (asyncpg.create_pool(NOWHERE), "async with pool.acquire()"),
        (engine, "with engine.begin()"),
        (create_async_engine("postgresql+psycopg://"), "async with engine.begin()"),
        (async_sessionmaker(), "Make a session with it"),
    ):
        with pytest.raises(NotSupported) as error:
            store.enqueue_within(tx, [a_job()])

        assert hint in str(error.value)


async def test_sqlalchemy_on_another_kind_of_database_is_refused_by_its_name():
    engine = sa.create_engine("sqlite://")
    with Session(engine) as session, pytest.raises(NotSupported) as error:
        PostgresStore(NOWHERE).enqueue_within(session, [a_job()])

    assert str(error.value) == (
        "the PostgreSQL store cannot enqueue within a sqlalchemy.orm.session.Session of sqlite. "
        "Jobs live in PostgreSQL: enqueue after your commit, without tx=."
    )
    engine.dispose()
