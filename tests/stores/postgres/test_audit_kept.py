"""The audit is append-only: by trigger for everybody, by grant for the role of an app; removing is its own deed."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors as pg

from build import NOON, a_job, a_running_job, a_session, by_hand, claim, completed, failed, read
from rota._core.actions import AuditFilter, Verb
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.scratch import empty
from rota.stores.postgres.sqlfiles import statement

CHANGES = ("UPDATE rota.audit SET actor = 'nobody'", "DELETE FROM rota.audit", "TRUNCATE rota.audit")


async def ask(url: str, text: str, *values: object) -> list[tuple]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(text, values or None)
        return await cursor.fetchall() if cursor.description else []


@pytest.fixture
async def killed(store):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.KILL, reason="stuck")
    return job


@pytest.fixture
def app_role(administrator: psycopg.Connection) -> Iterator[str]:
    """A role that owns nothing."""
    name = f"app_{uuid4().hex[:8]}"
    administrator.execute(f"CREATE ROLE {name}")
    yield name
    administrator.execute(f"DROP ROLE IF EXISTS {name}")


@pytest.mark.parametrize("change", CHANGES)
async def test_not_even_the_owner_changes_the_audit(store, fresh_database, killed, change):
    with pytest.raises(pg.InsufficientPrivilege) as refused:
        await ask(fresh_database, change)

    assert f"the audit is append-only; {change.split()[0].lower()} is refused" in str(refused.value)
    assert "rota.remove_audit(before, actor, reason)" in str(refused.value)
    [row] = await store.audit_trail(AuditFilter())
    assert (row.actor, row.job_id) == ("ada", killed.id)


async def test_the_role_of_an_app_works_and_adds_to_the_audit_but_may_not_touch_it(
    store, fresh_database, app_role, killed
):
    await ask(fresh_database, "SELECT rota.grant_to(%s)", app_role)
    try:
        async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
            await connection.execute(f"SET ROLE {app_role}")
            for change in CHANGES:
                with pytest.raises(pg.InsufficientPrivilege, match="permission denied for table audit"):
                    await connection.execute(change)
            with pytest.raises(pg.InsufficientPrivilege, match="permission denied for table audit"):
                await connection.execute("SELECT rota.remove_audit(now(), 'me', 'to hide something')")
        separator = "&" if "?" in fresh_database else "?"
        theirs = PostgresStore(f"{fresh_database}{separator}options=-crole%3D{app_role}")
        await theirs.enqueue([a_job(key="k"), a_job()])
        one, two = await claim(theirs, await a_session(theirs))
        await theirs.settle([completed(one), failed(two, ErrorClass.NON_RETRYABLE)])
        await by_hand(theirs, await read(theirs, two), Verb.RETRY)
        assert (await read(theirs, two)).state is State.PENDING
        assert [row.action for row in await theirs.audit_trail(AuditFilter())] == ["retry", "kill"]
        await theirs.close()
    finally:
        await ask(fresh_database, f"DROP OWNED BY {app_role}")


async def test_old_rows_are_removed_on_purpose_and_that_is_in_the_audit(store, fresh_database, killed):
    deleted = a_job()
    await store.enqueue([deleted])
    await by_hand(store, await read(store, deleted), Verb.DELETE)
    [(removed,)] = await ask(fresh_database, "SELECT rota.remove_audit(now(), 'ann', 'ten years')")
    rows = await store.audit_trail(AuditFilter())

    assert removed == 1
    assert [(row.actor, row.action, row.reason, row.before) for row in rows] == [
        ("ann", "audit_removed", "ten years", "1 rows"),
        ("ada", "delete", None, "pending"),  # it keeps a repeated enqueue from bringing the job back
    ]


async def test_removing_leaves_the_audit_as_closed_as_it_was(store, fresh_database, killed):
    """Also in the transaction that has just removed something."""
    refusals = []
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        await connection.execute("SELECT rota.remove_audit(now() - interval '1 year', 'ann', 'ten years')")
        await connection.execute(
            "SET CONSTRAINTS ALL IMMEDIATE"
        )  # the row about it is sealed; else TRUNCATE is busy
        for change in CHANGES:
            try:
                async with connection.transaction():
                    await connection.execute(change)
            except pg.InsufficientPrivilege as refused:
                refusals.append(str(refused).splitlines()[0])

    assert refusals == [
        f"rota: the audit is append-only; {verb} is refused" for verb in ("update", "delete", "truncate")
    ]
    assert len(await store.audit_trail(AuditFilter())) == 2


@pytest.mark.parametrize(("actor", "reason"), [("", "why"), ("ann", ""), (None, "why")])
async def test_removing_needs_who_and_why(fresh_database, actor, reason):
    with pytest.raises(pg.InvalidParameterValue, match="needs who and why"):
        await ask(fresh_database, "SELECT rota.remove_audit(now(), %s, %s)", actor, reason)


async def test_a_database_of_tests_can_still_be_emptied(store, direct_database, killed):
    empty(direct_database)

    assert await store.audit_trail(AuditFilter()) == []


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"actor": "op3"},
        {"action": "a7"},
        {"job_id": uuid4()},
        {"about": "schedule:nightly"},
        {"correlation_id": "c-1"},
        {"since": NOON},
    ],
    ids=lambda asked: next(iter(asked), "all"),
)
async def test_no_question_to_a_long_audit_walks_it_from_end_to_end(store, fresh_database, asked):
    await ask(
        fresh_database,
        "INSERT INTO rota.audit (at, actor, action, job_id, correlation_id)"
        " SELECT now() - make_interval(days => n), 'op' || n %% 50, 'a' || n %% 20, gen_random_uuid(), 'c-' || n"
        " FROM generate_series(1, %s) AS n",
        20_000,
    )
    await ask(fresh_database, "ANALYZE rota.audit")
    wanted = AuditFilter(**asked)._asdict()
    async with store._desks().connections.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        cursor = await connection.execute("EXPLAIN " + statement("audit_list"), wanted, prepare=False)
        plan = "\n".join(row[0] for row in await cursor.fetchall())

    assert "Seq Scan" not in plan
