"""Which pooler stands before the server, in which mode, and what that means: seen by Rota, said by the doctor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest

import servers
from build import a_job, claim
from rota.errors import StoreError, StoreUnavailable
from rota.stores.contract import WorkHint
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.pooling import Pooling, pooling

# `make test` fetches the pooler; `make check` wants nothing but Python packages.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def poolers(own_server: servers.Server) -> Iterator[Callable[..., servers.Pooler]]:
    """PgBouncers by mode, each started once."""
    made: dict[tuple[object, ...], servers.Pooler] = {}

    def in_mode(mode: str, more: str = "", size: int = 3) -> servers.Pooler:
        if (mode, more, size) not in made:
            made[mode, more, size] = servers.Pooler(own_server, mode=mode, more=more, size=size)
            made[mode, more, size].start()
        return made[mode, more, size]

    yield in_mode
    for pooler in made.values():
        pooler.stop()


@pytest.fixture
async def migrated(own_database: str) -> str:
    store = PostgresStore(own_database)
    await store.migrate()
    await store.close()
    return own_database


@asynccontextmanager
async def opened(url: str, listen_url: str | None = None) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, listen_url=listen_url)
    yield store
    await store.close()


@asynccontextmanager
async def hearing(store: PostgresStore) -> AsyncIterator[asyncio.Queue[object]]:
    heard: asyncio.Queue[object] = asyncio.Queue()
    listening = asyncio.create_task(store.listen(heard.put_nowait))
    yield heard
    listening.cancel()
    await asyncio.wait([listening])


async def said(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async with asyncio.timeout(10):
        while words not in caplog.text:
            await asyncio.sleep(0.01)


async def found(store: PostgresStore) -> dict[str, tuple[str, str, str]]:
    return {finding.what.partition(":")[0]: tuple(finding) for finding in await store.diagnose()}


@pytest.mark.parametrize(
    ("mode", "more"),
    [("transaction", ""), ("transaction", "server_round_robin = 1"), ("session", ""), ("statement", "")],
)
async def test_the_mode_is_seen_from_outside(migrated, poolers, mode, more):
    url = poolers(mode, more).before(migrated)
    async with opened(url) as store:
        connect = store._desks().connections.connect
        # Several servers are open, so that nobody gets the same one by chance.
        others = [await connect() for _ in range(2)]
        await asyncio.gather(*[other.execute("SELECT pg_sleep(0.05)") for other in others])
        for other in others:
            await other.close()

        assert {await pooling(connect) for _ in range(3)} == {Pooling(mode)}
    async with opened(migrated) as store:
        assert await pooling(store._desks().connections.connect) is Pooling.DIRECT


async def test_a_busy_pool_does_not_look_as_if_it_kept_its_servers(migrated, poolers):
    url = poolers("transaction").before(migrated)
    done = False

    async def busy() -> None:
        async with await psycopg.AsyncConnection.connect(
            url, autocommit=True, prepare_threshold=None
        ) as mine:
            while not done:
                await mine.execute("SELECT 1")

    crowd = [asyncio.create_task(busy()) for _ in range(4)]
    async with opened(url) as store:
        ways = [await pooling(store._desks().connections.connect) for _ in range(10)]
    done = True
    await asyncio.gather(*crowd)

    assert set(ways) == {Pooling.TRANSACTION}


async def test_a_pooler_without_a_second_connection_for_us_is_taken_for_the_careful_case(
    migrated, poolers, monkeypatch
):
    monkeypatch.setattr("rota.stores.postgres.pooling.PATIENCE", 0.3)
    url = poolers("session", size=1).before(migrated)
    async with opened(url) as store:
        assert await pooling(store._desks().connections.connect) is Pooling.TRANSACTION


# Session mode


async def test_hints_come_through_a_pooler_in_session_mode(migrated, poolers):
    async with (
        opened(poolers("session", size=10).before(migrated)) as store,
        hearing(store) as heard,
        opened(migrated) as other,
        asyncio.timeout(10),
    ):
        await heard.get()  # it listens now
        await other.enqueue([a_job(queue="mail", priority=7)])

        assert await heard.get() == WorkHint("mail", 7)
        assert store.hearing
        assert not store._desks().connections.direct  # nothing is kept prepared there
        what = await found(store)
        assert what["pooler"][:2] == (
            "ok",
            "pooler: one in session mode stands between; it lets hints through",
        )
        assert what["hints"][0] == "ok"


async def test_a_listen_url_by_way_of_a_pooler_in_session_mode_will_do(migrated, poolers):
    session = poolers("session", size=10).before(migrated)
    async with opened(poolers("transaction").before(migrated), session) as store, hearing(store) as heard:
        async with asyncio.timeout(10):
            await heard.get()
            await store.enqueue([a_job(queue="mail", priority=7)])
            assert await heard.get() == WorkHint("mail", 7)


# Statement mode


async def test_statement_mode_is_refused_at_once_with_what_to_change(migrated, poolers):
    async with opened(poolers("statement").before(migrated)) as store:
        for verb in (store.open, store.migrate, lambda: store.enqueue([a_job()]), lambda: claim(store)):
            with pytest.raises(StoreError) as refused:
                await verb()
            assert "is in statement mode, which allows no transactions" in str(refused.value)
            assert str(refused.value).endswith(
                "Set pool_mode = transaction in its configuration, or give the server's own address."
            )
        assert (await found(store))["pooler"] == (
            "bad",
            "pooler: one in statement mode stands between, which allows no transactions",
            "Set pool_mode = transaction in its configuration, or give the server's own address.",
        )


# Oddities of PgBouncer


async def test_its_console_is_not_taken_for_a_database(poolers):
    async with opened(poolers("transaction").url("pgbouncer")) as store:
        for verb in (store.open, store.migrate):
            with pytest.raises(StoreError) as refused:
                await verb()
            assert "leads to the console of a PgBouncer, not to a database" in str(refused.value)
            assert str(refused.value).endswith("Put the name of your database at its end.")
            assert not isinstance(refused.value, StoreUnavailable)  # nobody repeats it


async def test_a_setting_in_the_address_that_it_does_not_take_is_named(migrated, poolers):
    url = poolers("transaction").before(migrated) + "?options=-c%20statement_timeout%3D5s"
    async with opened(url) as store:
        with pytest.raises(StoreError) as refused:
            await store.open()
    assert "does not take the setting 'options' of the address" in str(refused.value)
    assert "name it in the pooler's ignore_startup_parameters" in str(refused.value)


async def test_a_pooler_that_knows_no_such_database_is_named_like_a_server_that_does_not(poolers):
    async with opened(poolers("transaction").url("nowhere")) as store:
        with pytest.raises(StoreUnavailable, match=r"nowhere.*Create it \(`createdb`\), or correct the URL"):
            await store.open()


# listen_url


async def test_a_listen_url_of_another_database_is_noticed_because_nothing_is_heard_there(
    migrated, own_server, poolers, caplog, monkeypatch
):
    monkeypatch.setattr("rota.stores.postgres.listen.ANSWER_WITHIN", 0.3)
    async with opened(poolers("transaction").before(migrated), own_server.url) as store:
        async with hearing(store) as heard:
            await said(caplog, "does not hear what is said at the address of the jobs")
            assert (store.hearing, heard.qsize()) == (False, 0)
        what = await found(store)

    assert "Let it lead to the same database of the same server." in caplog.text
    assert what["hints"][0] == "warn"
    assert "does not hear what is said at" in what["hints"][1]


async def test_a_listen_url_that_cannot_be_reached_is_said_once_and_polling_goes_on(migrated, caplog):
    caplog.set_level(logging.WARNING, "rota.listen")
    nowhere = f"postgresql://rota@127.0.0.1:{servers.free_port()}/none"
    async with opened(migrated, nowhere) as store:
        async with hearing(store):
            await said(
                caplog,
                "listening at listen_url failed, so new jobs are found by polling for now: cannot reach",
            )
            await asyncio.sleep(0.5)
            await store.enqueue([a_job()])
            assert len(await claim(store)) == 1
        what = await found(store)

    assert caplog.text.count("listening at listen_url failed") == 1
    assert what["hints"][0] == "warn"
    assert nowhere.partition("@")[2].partition("/")[0] in what["hints"][1]
    assert "listen_url" in what["hints"][2]
