"""Migrations: each once, whoever runs them and how often, by Rota or by psql; and nobody is blocked behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import psycopg
import pytest

import servers
from rota._core.actions import Audit
from rota._core.worker_order import OrderVerb
from rota.errors import PermissionMissing, StoreUnavailable
from rota.stores.contract import Beat
from rota.stores.postgres import PostgresStore, migrate
from rota.stores.retention_contract import Retention

ALL = [migration.name for migration in migrate.migrations()]


@pytest.fixture
async def store(own_database: str) -> AsyncIterator[PostgresStore]:
    """A store on a database that has no schema."""
    store = PostgresStore(own_database)
    yield store
    await store.close()


@pytest.fixture
def psql(own_server: servers.Server) -> Callable[[str, str], str]:
    def run(url: str, script: str) -> str:
        return own_server.run(
            "psql",
            "--no-psqlrc",
            "--quiet",
            "-v",
            "ON_ERROR_STOP=1",
            url,
            text="SET client_min_messages=warning;" + script,
        )

    return run


@pytest.fixture
def another_database(own_server: servers.Server, own_database: str) -> str:
    url = own_database + "_twin"
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {url.rpartition('/')[2]}")
    return url


def schema_of(server: servers.Server, url: str) -> list[str]:
    """The whole schema as pg_dump writes it, without what changes from dump to dump."""
    lines = server.run("pg_dump", "--schema-only", url).splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("--", "\\"))]


async def versions(url: str) -> list[tuple[int, str]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("SELECT version, name FROM rota.migrations ORDER BY version")
        return await cursor.fetchall()


async def up_to(url: str, version: int) -> None:
    """Migrate only so far."""
    script = migrate.sql(0)
    for migration in migrate.migrations():
        if migration.version > version:
            script = script.replace(migration.sql.strip(), "").replace(migrate._record(migration), "")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(script.encode())


@pytest.mark.req("D32")
async def test_a_fresh_database_gets_everything_in_order(store, own_database):
    assert await store.pending_migrations() == ALL

    assert await store.migrate() == ALL
    assert await store.pending_migrations() == []
    assert await versions(own_database) == [(m.version, m.name) for m in migrate.migrations()]
    await store.open()


@pytest.mark.req("D32")
async def test_migrating_again_changes_nothing(store, own_server, own_database):
    await store.migrate()
    before = schema_of(own_server, own_database)

    assert await store.migrate() == []
    assert schema_of(own_server, own_database) == before


async def test_a_database_in_between_gets_what_it_lacks(store, own_database):
    await up_to(own_database, 1)

    assert await store.pending_migrations() == ALL[1:]
    assert await store.migrate() == ALL[1:]


async def test_five_that_migrate_at_once_apply_each_migration_once(own_database):
    stores = [PostgresStore(own_database) for _ in range(5)]

    applied = await asyncio.gather(*[store.migrate() for store in stores])

    assert sorted(name for names in applied for name in names) == ALL
    assert len(await versions(own_database)) == len(ALL)


async def test_the_script_for_psql_makes_the_same_schema(
    store, own_server, own_database, another_database, psql
):
    await store.migrate()

    psql(another_database, migrate.sql())

    assert schema_of(own_server, another_database) == schema_of(own_server, own_database)
    assert await versions(another_database) == await versions(own_database)


async def test_the_script_for_the_rest_makes_the_same_schema(
    store, own_server, own_database, another_database, psql
):
    await store.migrate()
    await up_to(another_database, 1)

    psql(another_database, migrate.sql(since=1))

    assert schema_of(own_server, another_database) == schema_of(own_server, own_database)
    assert await versions(another_database) == await versions(own_database)


async def test_a_script_that_fails_half_way_leaves_nothing(own_database, own_server, psql):
    broken = migrate.sql().replace("SELECT rota.make_days();", "SELECT 1 / 0;")
    assert "1 / 0" in broken

    with pytest.raises(AssertionError, match="division by zero"):
        psql(own_database, broken)

    assert not any("rota" in line for line in schema_of(own_server, own_database))


async def test_a_locked_table_makes_the_migrator_step_back_and_try_again(store, own_database):
    await up_to(own_database, 1)
    async with await psycopg.AsyncConnection.connect(own_database) as holder:
        await holder.execute("LOCK TABLE rota.finished_jobs IN ACCESS EXCLUSIVE MODE")
        migrating = asyncio.create_task(store.migrate())
        async with asyncio.timeout(20):
            await waiting(own_database, 1)
            await waiting(own_database, 0)
        assert not migrating.done()
        await holder.commit()

    assert await migrating == ALL[1:]


async def test_a_table_that_stays_locked_is_reported_and_nothing_is_changed(
    store, own_server, own_database, monkeypatch
):
    monkeypatch.setattr(migrate, "LOCK_TRIES", 1)
    await up_to(own_database, 1)
    async with await psycopg.AsyncConnection.connect(own_database) as holder:
        await holder.execute("LOCK TABLE rota.finished_jobs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable) as refused:
            await store.migrate()

    assert str(refused.value) == (
        f"PostgreSQL at 127.0.0.1:{own_server.port}, database '{own_database.rpartition('/')[2]}': migration {ALL[1]} "
        "found its tables locked by others 1 times. Nothing was changed. See pg_stat_activity for a transaction that "
        "was left open, end it, and run `rota migrate` again."
    )
    assert await store.pending_migrations() == ALL[1:]


DEATHS = """
INSERT INTO rota.dead_jobs (id, run_at, created_at, finished_at, version, snoozes, priority, attempt, max_attempts,
    losses, task, queue, payload)
SELECT gen_random_uuid(), now(), now(), now(), 1, 0, 100, 1, 1, 0, 'ping', 'default', '{}' FROM generate_series(1, %s)
"""


async def dead_indexes(url: str) -> set[str]:
    """Those of migration 12 that can be used."""
    question = """SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'rota.dead_jobs'::regclass AND i.indisvalid"""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        found = {name for (name,) in await (await connection.execute(question)).fetchall()}
    return found & {f"dead_jobs_{name}" for name in ("task", "queue", "class", "tenant", "tags")}


async def test_many_dead_letters_get_their_new_indexes_from_the_janitor_while_others_go_on_dying(
    store, own_database
):
    await up_to(own_database, 11)
    async with (
        await psycopg.AsyncConnection.connect(own_database, autocommit=True) as other,
        await psycopg.AsyncConnection.connect(own_database) as holder,
    ):
        await other.execute(DEATHS, [10_001])
        await store.migrate()
        assert await dead_indexes(own_database) == set()

        await holder.execute(DEATHS, [1])
        tidying = asyncio.create_task(store.tidy(Retention()))
        async with asyncio.timeout(20):
            await waiting(own_database, 1)  # for him who dies just now, and nobody waits behind it
            await other.execute(DEATHS, [1])
        await holder.commit()
        await tidying

    assert len(await dead_indexes(own_database)) == 5


async def test_few_dead_letters_are_indexed_by_the_migration_and_a_broken_index_is_made_again(
    store, own_database
):
    await up_to(own_database, 11)
    async with await psycopg.AsyncConnection.connect(own_database, autocommit=True) as connection:
        await connection.execute(DEATHS, [10])
        await store.migrate()
        assert len(await dead_indexes(own_database)) == 5

        # As it is left by a janitor that was killed.
        broken = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'rota.dead_jobs_tags'::regclass"
        await connection.execute(broken)
        await asyncio.gather(store.tidy(Retention()), store.tidy(Retention()))

    assert len(await dead_indexes(own_database)) == 5


async def test_a_role_that_was_granted_its_rights_before_samples_and_tidies_as_it_did(store, own_database):
    role = f"Shop.{uuid4().hex[:8]}"  # a name that has to be quoted
    async with await psycopg.AsyncConnection.connect(own_database, autocommit=True) as connection:
        await up_to(own_database, 13)
        await connection.execute(f'CREATE ROLE "{role}"')
        await connection.execute("SELECT rota.grant_to(%s)", [role])
        await store.migrate()
        await connection.execute("SELECT rota.open_days(now()), rota.make_months(now())")
    theirs = PostgresStore(f"{own_database}?options=-crole%3D{role}")
    sampled = [await theirs.note_depths(), await theirs.note_room()]
    await theirs.tidy(Retention())
    await theirs.note(Audit("ann", "looked", None, about="all"))
    await theirs.close()

    assert sampled == [True, True]
    assert [one.audit and one.audit.actor for one in await store.seals(0, limit=9)] == ["ann"]


async def test_a_worker_of_the_code_before_goes_on_and_is_given_no_orders(store, own_database):
    await up_to(own_database, 13)
    session, beat = uuid4(), "UPDATE rota.sessions SET lease_until = now() + interval '15 s' WHERE id = %s"
    async with await psycopg.AsyncConnection.connect(own_database, autocommit=True) as older:
        await older.execute(
            "INSERT INTO rota.sessions (id, host, pid, os_user, lanes, tasks, started_at, lease_until) "
            "VALUES (%s, 'old', 7, 'ann', '{}', '{email}', now(), now() + interval '15 s')",
            [session],
        )
        await store.migrate()
        await older.execute(beat, [session])

    assert not await store.order_worker(session, OrderVerb.DRAIN, Audit("ann", "drain", None))
    [record] = await store.sessions()
    assert (record.memory, record.hears, record.order) == (None, False, None)
    assert (await store.beat(session, lease=15, holding={})) == Beat(alive=True)


@pytest.mark.parametrize("verb", ["migrate", "pending_migrations"])
async def test_a_role_that_may_not_make_a_schema_learns_which_right_it_needs(own_database, verb):
    store = PostgresStore(own_database.replace("rota@", "locked:sesame@"))
    if verb == "pending_migrations":
        owner = PostgresStore(own_database)
        await owner.migrate()

    with pytest.raises(PermissionMissing) as refused:
        await getattr(store, verb)()

    rights = {
        "migrate": "GRANT CREATE ON DATABASE): run `rota migrate` as such a role.",
        "pending_migrations": "SELECT rota.grant_to('role')",
    }
    assert rights[verb] in str(refused.value)


async def waiting(url: str, how_many: int) -> None:
    """Until exactly so many wait for a lock."""
    question = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while (await (await connection.execute(question)).fetchone()) != (how_many,):
            await asyncio.sleep(0.02)
