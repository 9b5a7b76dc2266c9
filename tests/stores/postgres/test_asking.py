"""Asking: our statements, sent with little ceremony, behave as psycopg's own do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest

from rota.stores.postgres.address import Address
from rota.stores.postgres.connections import Connections
from rota.stores.postgres.prompt import form
from rota.stores.postgres.sqlfiles import statement


@pytest.fixture
async def connection(direct_database):
    connections = Connections(Address(direct_database))
    await connections.pool()
    connection = await connections.connect()
    yield connection
    await connection.close()
    await connections.close()


@pytest.fixture
def written(monkeypatch):
    """Statements of this test's own, by verb."""
    texts: dict[str, str] = {}
    monkeypatch.setattr("rota.stores.postgres.prompt.statement", texts.__getitem__)
    form.cache_clear()
    yield texts
    form.cache_clear()


async def test_every_kind_of_value_arrives_as_what_it_is(connection, written):
    id_, now = uuid4(), datetime(2026, 3, 1, 12, 30, 0, 250_000, UTC)
    written["kinds"] = (
        "SELECT %(text)s::text, %(number)s::int, %(id)s::uuid, %(at)s::timestamptz, %(yes)s::boolean, "
        "%(none)s::text, %(text)s::text, 7 %% 4"
    )
    values = {"text": "Grüße, 'quoted' \\ %s", "number": -3, "id": id_, "at": now, "yes": True, "none": None}

    rows = await connection.ask("kinds", values)

    assert rows == [(values["text"], -3, id_, now, True, None, values["text"], 3)]
    assert await connection.ask("kinds", values | {"number": 4}) == [(values["text"], 4, *rows[0][2:])]


async def test_without_prepared_statements_the_answer_is_the_same(connection, written):
    """As behind a pooler: the next statement may meet another process of the server."""
    written["sum"] = "SELECT %(a)s::int + %(b)s::int"
    connection.keeps_statements = False

    assert await connection.ask("sum", {"a": 2, "b": 3}) == [(5,)]
    prepared = await (await connection.execute("SELECT count(*) FROM pg_prepared_statements")).fetchone()
    assert prepared == (0,)


async def test_statements_stay_prepared_after_a_transaction_that_was_rolled_back(connection, written):
    """psycopg would throw all away then, as it does for its own."""
    written["sum"] = "SELECT %(a)s::int + %(b)s::int"
    await connection.ask("sum", {"a": 1, "b": 2})
    for _ in range(3):
        with suppress(ZeroDivisionError):
            async with connection.transaction():
                await connection.execute("SELECT %s::int", [1])
                raise ZeroDivisionError
        await connection.execute("SELECT %s::int", [2])

    assert await connection.ask("sum", {"a": 2, "b": 3}) == [(5,)]


async def test_an_error_of_the_server_is_psycopgs_and_the_connection_goes_on(connection, written):
    written["divide"] = "SELECT 1 / %(by)s::int"
    written["wrong"] = "SELECT nothing FROM nowhere WHERE a = %(by)s"

    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
            await connection.ask("divide", {"by": 0})
        with pytest.raises(psycopg.errors.UndefinedTable, match="nowhere"):
            await connection.ask("wrong", {"by": 1})
    assert await connection.ask("divide", {"by": 1}) == [(1,)]


async def test_what_cannot_be_sent_is_refused_before_anything_is(connection, written):
    written["say"] = "SELECT %(word)s::text"

    with pytest.raises(psycopg.DataError, match="NUL"):
        await connection.ask("say", {"word": "a\0b"})
    with pytest.raises(TypeError, match=r"a list: \['a'\]"):
        await connection.ask("say", {"word": ["a"]})
    assert await connection.ask("say", {"word": "ab"}) == [("ab",)]


async def test_a_statement_that_is_given_up_is_cancelled_and_the_connection_serves_the_next(
    connection, written
):
    written["sleep"] = "SELECT pg_sleep(%(seconds)s)"
    written["one"] = "SELECT 1"

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await connection.ask("sleep", {"seconds": 60})
    assert await connection.ask("one", {}) == [(1,)]


async def test_a_connection_that_the_server_ended_says_so(connection, written):
    written["who"] = "SELECT pg_backend_pid()"
    await connection.ask("who", {})
    other = await psycopg.AsyncConnection.connect(connection.info.dsn, autocommit=True)
    async with other:
        await other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])

    with pytest.raises(psycopg.OperationalError):
        await connection.ask("who", {})
    assert connection.closed


@pytest.mark.parametrize("verb", ["claim", "enqueue", "exchange", "settle_dead", "settle_waiting"])
def test_every_name_of_a_statement_gets_one_number(verb):
    known = form(verb)

    assert all(f"%({name})s" in statement(verb) for name in known.values)
    assert b"%(" not in known.text
    assert f"${len(known.values)}".encode() in known.text
