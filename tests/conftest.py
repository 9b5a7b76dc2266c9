"""What every test can ask for: a clock, a real PostgreSQL, an empty database, and each store in turn."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

import servers
from build import NOON, Clock
from rota.stores.contract import Store
from rota.stores.memory import MemoryStore
from servers import with_database


def pytest_configure() -> None:
    """Nothing of how the tests were started may reach what they start.

    A shell that starts them in the background lets them ignore Ctrl-C, and several
    processes of them are told the width of a terminal that is not theirs.
    """
    os.environ.pop("COLUMNS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not walk over it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def clock() -> Clock:
    """Time that moves only when the test says so."""
    return Clock()


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A test that leaves Rota's log silent fails itself, not those after it that listen."""
    log = logging.getLogger("rota")
    before = (log.level, log.disabled, log.propagate)
    yield
    assert (log.level, log.disabled, log.propagate) == before


@pytest.fixture(scope="session")
def server() -> Iterator[object]:
    """A PostgreSQL server that lives as long as the test run: embedded, or as servers.py says."""
    from rota.stores.postgres.embedded import EmbeddedServer

    wanted = servers.chosen()
    own = wanted or servers.pooled()  # a pooler needs a port
    server = servers.Server(wanted) if own else EmbeddedServer(servers.new_home())
    server.start()
    yield server
    server.destroy()


@pytest.fixture(scope="session")
def cluster(server: object) -> str:
    """Its address."""
    return server.start() if not isinstance(server, servers.Server) else server.url  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def pooler_before(server: object) -> Iterator[servers.Pooler | None]:
    """The pooler between every test and that server, in a run that asks for one."""
    if not servers.pooled():
        yield None
        return
    assert isinstance(server, servers.Server)
    pooler = servers.Pooler(server, size=8)
    pooler.start()
    yield pooler
    pooler.stop()


@pytest.fixture(scope="session")
def administrator(cluster: str) -> Iterator[psycopg.Connection]:
    """A connection that makes and drops databases."""
    with psycopg.connect(cluster, autocommit=True) as connection:
        # Nothing here outlives the run, so the disk need not be waited for. Chaos tests have servers of their own.
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        # The role has the schema's name, so that the server would find our tables by a slip of ours.
        connection.execute("ALTER SYSTEM SET search_path = public")
        connection.execute("SELECT pg_reload_conf()")
        yield connection


@pytest.fixture(scope="session")
def template(cluster: str, administrator: psycopg.Connection) -> str:
    """A database that was migrated once; every test gets a copy of it."""
    from rota.stores.postgres import PostgresStore

    administrator.execute("CREATE DATABASE rota_template")

    async def migrate() -> None:
        store = PostgresStore(with_database(cluster, "rota_template"))
        await store.migrate()
        await store.close()

    in_a_thread(migrate)
    with psycopg.connect(with_database(cluster, "rota_template"), autocommit=True) as connection:
        # The days of the clock's today, not of the server's: a run may pass midnight.
        days = connection.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass",
            ["rota.finished_jobs"],
        )
        for (day,) in days.fetchall():
            connection.execute(f"DROP TABLE {day}")
        connection.execute("SELECT rota.open_days(%s)", [NOON])
    return "rota_template"


@pytest.fixture
def direct_database(cluster: str, administrator: psycopg.Connection, template: str) -> Iterator[str]:
    """The server's own address of an empty, migrated database of the test's own."""
    name = f"test_{uuid4().hex[:12]}"
    by_file = " STRATEGY file_copy" if administrator.info.server_version >= 150000 else ""  # in half the time
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}" + by_file)
    administrator.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
    yield with_database(cluster, name)
    administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def fresh_database(direct_database: str, pooler_before: servers.Pooler | None) -> str:
    """The same, as a user of it is told: by way of the pooler, if this run has one."""
    return direct_database if pooler_before is None else pooler_before.before(direct_database)


@pytest.fixture
def listen_url(direct_database: str, pooler_before: servers.Pooler | None) -> str | None:
    """Where hints can be heard, if that is another address: a pooler in transaction mode keeps them to itself."""
    return None if pooler_before is None else direct_database


# A run on another server, or behind a pooler, is about that.
@pytest.fixture(params=["postgres"] if servers.chosen() or servers.pooled() else ["memory", "postgres"])
async def store(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Store]:
    """Each store in turn, empty, moved by `clock`."""
    if request.param == "memory":
        yield MemoryStore(clock=clock)
        return
    from rota.stores.postgres import PostgresStore

    url, listen_url = (request.getfixturevalue(name) for name in ("fresh_database", "listen_url"))
    store = PostgresStore(url, clock=clock, listen_url=listen_url)
    yield store
    await store.close()


def in_a_thread(work: object) -> None:
    """Run a coroutine function on an event loop of its own, whatever loop the test has."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
