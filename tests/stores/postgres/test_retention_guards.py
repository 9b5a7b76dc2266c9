"""Retention beside those who do not know it, may not do all of it, or come in while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors as pg

from build import Clock, a_job, a_session, claim, completed, read
from rota._core.actions import Audit
from rota._core.job import Job, State
from rota._core.retention import ARCHIVED, EVERYTHING, Policy, Pruned, Pruning
from rota.errors import PermissionMissing
from rota.stores.contract import JobFilter
from rota.stores.postgres import PostgresStore, retention
from rota.stores.postgres.sqlfiles import statement
from rota.stores.retention_contract import Retention

DAY = 86_400.0
DEFAULT = Retention()
OLD_MAKE_DAYS = "SELECT rota.make_days(coalesce(%s::timestamptz, now()))"
"""What a worker of the release before asks first in each round of its janitor, and when a job finds no day."""
ENDED = """
INSERT INTO rota.finished_jobs (id, run_at, created_at, claimed_at, finished_at, version, state, task, queue, payload,
                                priority, attempt, max_attempts, snoozes, losses)
SELECT rota.new_id(), at, at, at, at, 3, 'completed', 'email', 'default', '{}', 100, 1, 5, 0, 0
FROM (SELECT %s::timestamptz AS at) AS moment
"""
CHILD = (
    "SELECT rota.enqueue_jobs(jsonb_build_array(jsonb_build_object('task', 'email', 'parent_id', %s::text)))"
)


@pytest.fixture
async def store(fresh_database: str, clock: Clock) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(fresh_database, clock=clock)
    yield store
    await store.close()


@pytest.fixture
async def app_store(
    fresh_database: str, clock: Clock, administrator: psycopg.Connection
) -> AsyncIterator[PostgresStore]:
    """A store under a role that owns nothing and has what rota.grant_to() gave it, once."""
    role = f"app_{uuid4().hex[:8]}"
    administrator.execute(f"CREATE ROLE {role}")
    await rows(fresh_database, "SELECT rota.grant_to(%s)", role)
    separator = "&" if "?" in fresh_database else "?"
    store = PostgresStore(f"{fresh_database}{separator}options=-crole%3D{role}", clock=clock)
    yield store
    await store.close()
    await rows(fresh_database, f"DROP OWNED BY {role}")
    administrator.execute(f"DROP ROLE {role}")


async def rows(url: str, question: str, *values: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(question, values or None)
        return await cursor.fetchall() if cursor.description else []


async def some_ended_jobs(store: PostgresStore, count: int = 3, **options: Any) -> list[Job]:
    await store.enqueue([a_job(**options) for _ in range(count)])
    jobs = await claim(store, await a_session(store))
    await store.settle([completed(job) for job in jobs])
    return jobs


async def policy(store: PostgresStore, keep: float | None, **about: Any) -> None:
    await store.set_policy(Policy(keep, **about, set_by="ann"), Audit("ann", "retention_set", None))


# Workers of the release before


async def test_the_janitor_of_an_older_worker_stops_before_it_drops_what_a_policy_keeps(
    store, clock, fresh_database
):
    assert await rows(fresh_database, OLD_MAKE_DAYS, clock.now) == [(0,)], "without policies it goes on"
    await policy(store, None, tenant="acme")
    [kept] = await some_ended_jobs(store, 1, tenant="acme")
    clock.advance(6 * DAY)

    with pytest.raises(pg.ObjectNotInPrerequisiteState, match="restart it with the new release"):
        await rows(fresh_database, OLD_MAKE_DAYS, clock.now)
    clock.advance(6 * DAY)
    await store.tidy(DEFAULT)  # and ours goes on
    assert (await read(store, kept)).state is State.COMPLETED


async def test_an_older_worker_whose_job_finds_no_day_still_makes_it(store, clock, fresh_database):
    await policy(store, None, tenant="acme")
    clock.advance(40 * DAY)

    assert await rows(fresh_database, OLD_MAKE_DAYS, clock.now) == [(9,)]


# The role of an app


async def test_the_role_of_an_app_purges_days_that_were_made_after_it_got_its_rights(
    store, app_store, clock, fresh_database
):
    await policy(store, 3600.0, task="email")
    clock.advance(40 * DAY)
    await rows(fresh_database, "SELECT rota.open_days(%s), rota.make_months(%s)", clock.now, clock.now)
    jobs = await some_ended_jobs(app_store)
    clock.advance(DAY)

    assert [(one.state, one.jobs) for one in await app_store.foresee(EVERYTHING, DEFAULT)] == [
        ("completed", 3)
    ]
    assert await app_store.prune(EVERYTHING, DEFAULT) == Pruned(finished=3)
    assert len(await app_store.archived([job.id for job in jobs])) == 3
    assert await rows(
        fresh_database,
        "SELECT next_due::text FROM rota.retention_days WHERE day = %s",
        clock.now.date() - timedelta(days=1),
    ) == [("infinity",)]


async def test_the_role_of_an_app_leaves_the_months_of_the_archive_to_the_owner(
    store, app_store, clock, fresh_database
):
    clock.advance(500 * DAY)
    with pytest.raises(PermissionMissing, match="months of the archive are made and dropped by the owner"):
        await app_store.prune(EVERYTHING, DEFAULT)

    assert await app_store._pruner().drop_months(DAY) == 0
    assert await store._pruner().drop_months(DAY) > 0


# What comes in while a purge runs


async def test_a_policy_that_is_set_during_a_long_purge_keeps_the_months_of_the_archive(
    store, clock, fresh_database, monkeypatch
):
    jobs = await some_ended_jobs(store)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)
    clock.advance(500 * DAY)
    prune = retention.Pruner.prune

    async def long_purge(self, *asked):
        done = await prune(self, *asked)
        await policy(store, None, state=ARCHIVED)
        return done

    monkeypatch.setattr(retention.Pruner, "prune", long_purge)

    assert (await store.tidy(DEFAULT)).archive == 0
    assert len(await store.archived([job.id for job in jobs])) == 3


async def test_a_day_is_not_done_with_while_somebody_may_still_settle_into_it(store, clock, fresh_database):
    """A settle that began before midnight commits after the purge has gone through its day."""
    await policy(store, 60.0, task="email")
    clock.now = clock.now.replace(hour=23, minute=59)
    async with await psycopg.AsyncConnection.connect(fresh_database) as settling:
        await settling.execute(ENDED, [clock.now])
        clock.advance(300)
        assert await store.prune(EVERYTHING, DEFAULT) == Pruned()
    clock.advance(600)

    assert await store.prune(EVERYTHING, DEFAULT) == Pruned(finished=1)


async def test_a_child_that_comes_while_its_parents_day_is_gone_through_keeps_the_parent(
    store, clock, fresh_database, monkeypatch
):
    monkeypatch.setattr(retention, "BLOCKS", 1)
    monkeypatch.setattr(retention, "LEASE", 0.0)
    jobs = await some_ended_jobs(store, 80, payload={"text": "x" * 500})
    clock.advance(9 * DAY)
    [(last,)] = await rows(fresh_database, "SELECT id FROM rota.finished_jobs ORDER BY ctid DESC LIMIT 1")
    heard: list[int] = []

    def child_comes(gone: int) -> None:
        if not heard:
            with psycopg.connect(fresh_database, autocommit=True) as other:
                other.execute(CHILD, [str(last)])
        heard.append(gone)

    pruned = await store.prune(Pruning(states=("completed",)), DEFAULT, progress=child_comes)

    assert heard[0] < 79, "the parent was in a later batch"
    assert pruned == Pruned(finished=len(jobs) - 1)
    assert [job.id for job in await store.find(JobFilter(states=(State.COMPLETED,)))] == [last]


async def test_a_day_that_is_dropped_while_its_size_is_looked_up_has_none(fresh_database, clock):
    later = clock() + timedelta(days=9)
    asked = {"now": later, "least": 0.0, "every": True, "keep": DAY}
    looking = await psycopg.AsyncConnection.connect(fresh_database)
    async with looking:
        await looking.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await looking.execute("SELECT 1")  # what it sees from here on is of this moment
        [[day]] = await rows(
            fresh_database,
            "SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = "
            "'rota.finished_jobs'::regclass",
        )
        await rows(fresh_database, f"DROP TABLE {day}")
        found = await (await looking.execute(statement("prune_days"), asked)).fetchall()

    assert (day.removeprefix("rota."), 0) in [(row[0], row[3]) for row in found]
