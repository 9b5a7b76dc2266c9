"""What a caller hears when the server cannot be used: what, which value, what to do next; and nothing is lost."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import servers
from build import Clock, a_job, a_session, applied, claim, completed, read
from rota._core.job import State
from rota.errors import PermissionMissing, SchemaOutdated, StoreError, StoreUnavailable
from rota.stores.contract import JobFilter, PrivateFinding, Retention, Wanted
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.faults import address
from rota.stores.postgres.migrate import LATEST

GRANTS = (
    "Let the owner of schema rota give this role its rights (SELECT rota.grant_to('role'), after each `rota migrate`), "
    "or use another role."
)


@asynccontextmanager
async def a_store(url: str, clock: Clock | None = None) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, clock=clock)
    yield store
    await store.close()


async def refusal(call: Callable[[], Awaitable[Any]], kind: type[StoreError]) -> str:
    with pytest.raises(kind) as refused:
        await call()
    assert type(refused.value) is kind
    return str(refused.value)


async def refusals(store: PostgresStore, kind: type[StoreError]) -> set[str]:
    """What opening, storing, claiming and migrating say, each within a breath."""
    session = a_job().id
    calls: list[Callable[[], Awaitable[Any]]] = [
        store.open,
        lambda: store.enqueue([a_job()]),
        lambda: store.claim(Wanted(1), session=session),
        store.migrate,
    ]
    async with asyncio.timeout(5):
        return {await refusal(call, kind) for call in calls}


# No server


async def test_a_server_that_is_not_there_is_named_with_its_port():
    port = servers.free_port()

    async with a_store(f"postgresql://rota:secret@127.0.0.1:{port}/jobs") as store:
        message = await refusal(store.open, StoreUnavailable)

    assert message == (
        f"cannot reach PostgreSQL at 127.0.0.1:{port}, database 'jobs': Connection refused. "
        "Is it running? `rota doctor` looks closer."
    )


async def test_whatever_the_doctor_says_of_where_a_server_is_is_for_those_who_look_after_it(fresh_database):
    port = servers.free_port()
    async with a_store(f"postgresql://rota:secret@127.0.0.1:{port}/jobs") as away:
        found = await away.diagnose()
    deaf = PostgresStore(fresh_database, listen_url=f"postgresql://rota@127.0.0.1:{port}/jobs")
    try:
        found += await deaf.diagnose()
    finally:
        await deaf.close()

    telling = [one for one in found if str(port) in one.what or address(fresh_database) in one.what]
    assert {one.what.partition(":")[0] for one in telling} == {"connection", "hints"}
    assert all(isinstance(one, PrivateFinding) for one in telling)


@pytest.mark.slow
async def test_an_enqueue_is_repeated_for_a_while_and_then_answers():
    """A restart of the server is ridden out; a caller is not kept waiting for ever."""
    async with a_store(f"postgresql://rota@127.0.0.1:{servers.free_port()}/jobs") as store:
        began = asyncio.get_running_loop().time()
        message = await refusal(lambda: store.enqueue([a_job()]), StoreUnavailable)
        lasted = asyncio.get_running_loop().time() - began

    assert 3 < lasted < 8
    assert message.endswith("Connection refused. Is it running? `rota doctor` looks closer.")


@pytest.mark.slow
async def test_a_store_goes_on_when_its_server_has_started():
    server = servers.Server(servers.chosen())
    try:
        async with a_store(server.url) as store:
            await refusal(store.open, StoreUnavailable)
            server.start()
            await store.migrate()
            job = a_job()
            await store.enqueue([job])

            assert (await read(store, job)).state is State.PENDING
    finally:
        server.destroy()


async def test_a_host_that_nobody_knows_is_named():
    async with a_store("postgresql://rota@no-such-host.invalid/jobs") as store:
        message = await refusal(store.open, StoreUnavailable)

    assert message.startswith(
        "cannot reach PostgreSQL at no-such-host.invalid, database 'jobs': failed to resolve host"
    )
    assert message.endswith("Check the host name and port in the URL.")


# Not let in


async def test_a_wrong_password_is_told_at_once_and_not_shown(own_server):
    async with a_store(f"postgresql://locked:opensaysme@127.0.0.1:{own_server.port}/postgres") as store:
        messages = await refusals(store, StoreUnavailable)

    [message] = messages
    assert message == (
        f"PostgreSQL at 127.0.0.1:{own_server.port}, database 'postgres' refused the login: "
        'password authentication failed for user "locked". Check user and password in the URL.'
    )


async def test_the_right_password_opens(own_server, own_database):
    async with a_store(own_database.replace("rota@", "locked:sesame@")) as store:
        message = await refusal(store.open, SchemaOutdated)

    assert message.startswith("the database has no Rota schema yet")


@pytest.mark.parametrize(
    ("user", "reason"),
    [("locked", "no password supplied"), ("stranger", 'role "stranger" does not exist')],
)
async def test_a_login_that_cannot_succeed_is_not_repeated(own_server, user, reason):
    async with a_store(f"postgresql://{user}@127.0.0.1:{own_server.port}/postgres") as store:
        [message] = await refusals(store, StoreUnavailable)

    assert "refused the login: " in message
    assert f"{reason}. Check user and password in the URL." in message


async def test_a_missing_database_is_told_at_once(own_server):
    async with a_store(servers.with_database(own_server.url, "nowhere")) as store:
        messages = await refusals(store, StoreUnavailable)

    [message] = messages
    assert message == (
        f"PostgreSQL at 127.0.0.1:{own_server.port}, database 'nowhere': "
        'database "nowhere" does not exist. Create it (`createdb`), or correct the URL.'
    )


async def test_a_crowded_server_is_no_riddle(own_server):
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 0")

    async with a_store(f"postgresql://few@127.0.0.1:{own_server.port}/postgres") as store:
        message = await refusal(store.open, StoreUnavailable)

    assert "takes no more connections: too many connections for role" in message
    assert message.endswith("Raise max_connections, or put a pooler before it.")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://rota:secret@[bad/jobs", "postgresql://rota:***@[bad/jobs"),
        ("postgresql://rota:secret@here/jobs?colour=red", "postgresql://rota:***@here/jobs?colour=red"),
        ("host=here nonsense", "host=here nonsense"),
    ],
)
async def test_an_address_that_is_none_is_shown_without_its_password(url, shown):
    async with a_store(url) as store:
        messages = await refusals(store, StoreError)
        with pytest.raises(StoreError) as refused:
            await store.open()

    [message] = messages
    assert message == (
        f"the address {shown!r} is not one that PostgreSQL understands. "
        "Write postgresql://user:password@host:5432/database, with special characters percent-encoded."
    )
    assert "secret" not in "".join(traceback.format_exception(refused.value))


# The schema


async def execute(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement)


async def schema_refusals(store: PostgresStore) -> set[str]:
    calls: list[Callable[[], Awaitable[Any]]] = [
        store.open,
        lambda: store.enqueue([a_job()]),
        lambda: store.find(JobFilter()),
    ]
    return {await refusal(call, SchemaOutdated) for call in calls}


async def test_a_database_without_a_schema_names_the_command(own_database):
    async with a_store(own_database) as store:
        messages = await schema_refusals(store)

    [message] = messages
    assert message == (
        f"the database has no Rota schema yet (this code needs version {LATEST}). Run `rota migrate`."
    )


async def test_an_old_schema_is_refused_until_it_is_migrated(fresh_database):
    job = a_job()
    async with a_store(fresh_database) as before:
        await before.enqueue([job])
    await execute(fresh_database, f"DELETE FROM rota.migrations WHERE version = {LATEST}")

    async with a_store(fresh_database) as store:
        messages = await schema_refusals(store)
        # The migration itself is undone here by hand only; its record is what a store looks at.
        await execute(
            fresh_database, f"INSERT INTO rota.migrations (version, name) VALUES ({LATEST}, 'again')"
        )
        assert (await read(store, job)).state is State.PENDING

    [message] = messages
    assert message == (
        f"the database has Rota schema version {LATEST - 1}, this code needs {LATEST}. Run `rota migrate`."
    )


async def test_a_newer_schema_is_left_alone(fresh_database):
    await execute(fresh_database, "INSERT INTO rota.migrations (version, name) VALUES (99, 'of the future')")

    async with a_store(fresh_database) as store:
        messages = await schema_refusals(store)

    [message] = messages
    assert message == (
        f"the database has Rota schema version 99, this code knows only {LATEST}. Upgrade the rota package here."
    )


# Rights


@pytest.fixture
def clerk(administrator: psycopg.Connection, fresh_database: str) -> str:
    """The address of the same database for a role without any rights."""
    administrator.execute(
        "DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    parts = urlsplit(fresh_database)
    return parts._replace(netloc=parts.netloc.replace("rota@", "clerk@")).geturl()


async def test_a_role_without_any_right_learns_which_to_ask_for(clerk):
    async with a_store(clerk) as store:
        message = await refusal(store.open, PermissionMissing)

    assert "refused: permission denied for schema rota. " in message
    assert message.endswith(GRANTS)


async def test_a_role_that_may_only_read_cannot_store_and_learns_why(clerk, fresh_database):
    await execute(
        fresh_database,
        "GRANT USAGE ON SCHEMA rota TO clerk",
        "GRANT SELECT ON ALL TABLES IN SCHEMA rota TO clerk",
    )
    async with a_store(clerk) as store:
        messages = {
            await refusal(lambda jobs=jobs: store.enqueue(jobs), PermissionMissing)
            for jobs in ([a_job()], [a_job() for _ in range(300)])
        }
        keyed = await refusal(lambda: store.enqueue([a_job(key="order:1")]), PermissionMissing)

        assert await store.find(JobFilter()) == []
    [message] = messages
    assert "refused: permission denied for table jobs. " in message
    assert message.endswith(GRANTS)
    assert "refused: permission denied for table keys. " in keyed


async def test_the_rights_that_the_message_names_are_enough_for_work(clerk, fresh_database, clock):
    await execute(fresh_database, "SELECT rota.grant_to('clerk')")
    async with a_store(clerk, clock) as store:
        await store.enqueue([a_job(key="order:1"), a_job(gate="account:1"), *[a_job() for _ in range(300)]])
        session = await a_session(store)
        jobs = await claim(store, session, Wanted(400))
        settled = await store.settle([completed(job) for job in jobs])
        clock.advance(9 * 86_400.0)
        later = clock().isoformat()
        await execute(fresh_database, f"SELECT rota.open_days('{later}'), rota.make_months('{later}')")
        janitor = await refusal(lambda: store.tidy(Retention()), PermissionMissing)
        clock.advance(86_400.0)
        tomorrow = await refusal(lambda: store.tidy(Retention()), PermissionMissing)

    assert settled == [applied(job, State.COMPLETED) for job in jobs]
    assert len(jobs) == 302
    assert "must be owner of table finished_jobs" in janitor
    assert "permission denied for schema rota" in tomorrow
    for message in (janitor, tomorrow):
        assert (
            "let workers connect as that role, or make theirs a member of it (GRANT owner TO role)."
            in message
        )


async def test_the_doctor_says_which_rights_are_missing(clerk, fresh_database):
    await execute(
        fresh_database,
        "GRANT USAGE ON SCHEMA rota TO clerk",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO clerk",
        "REVOKE DELETE ON rota.jobs FROM clerk",
    )
    async with a_store(clerk) as store:
        [lacking] = [finding for finding in await store.diagnose() if finding.what.startswith("rights")]
        await execute(fresh_database, "GRANT DELETE ON rota.jobs TO clerk")
        [enough] = [finding for finding in await store.diagnose() if finding.what.startswith("rights")]

    assert lacking == (
        "bad",
        "rights: role clerk lacks jobs DELETE",
        "GRANT them, or connect as the owner of schema rota.",
    )
    assert enough == (
        "warn",
        "rights: role clerk may do its work, but not make and drop the days of finished jobs",
        "Let one worker connect as the owner of schema rota, or GRANT rota TO clerk.",
    )


# A server that only reads


async def test_a_read_only_server_is_named_as_such_and_takes_jobs_again_later(direct_database):
    fresh_database = (
        direct_database  # what a database says by default holds for new connections, not for a pooler's
    )
    name = urlsplit(fresh_database).path.strip("/")
    await execute(fresh_database, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    job = a_job()
    async with a_store(fresh_database) as store:
        message = await refusal(lambda: store.enqueue([job]), StoreUnavailable)

        assert await store.find(JobFilter()) == []
        await execute(
            fresh_database,
            "SET default_transaction_read_only = off",
            f"ALTER DATABASE {name} RESET default_transaction_read_only",
        )
        await store.close()
        await store.enqueue([job])
        assert [found.id for found in await store.find(JobFilter())] == [job.id]
    assert message.endswith(f"database '{name}' is read-only (a standby?). Point the address at the primary.")


# What the server says of a statement


async def test_whatever_else_the_server_refuses_is_quoted(fresh_database):
    async with a_store(fresh_database) as store:
        await store.open()
        await execute(fresh_database, "ALTER TABLE rota.sessions RENAME COLUMN host TO place")
        message = await refusal(lambda: a_session(store), StoreError)

    assert 'refused a statement: column "host" of relation "sessions" does not exist' in message
    assert message.endswith(". `rota doctor` checks the schema and the rights.")
