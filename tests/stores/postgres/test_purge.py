"""The purge on PostgreSQL: in batches, by one at a time, beside operators, and days that go when they are empty."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from build import Clock, a_job, a_running_job, by_hand, cancelled, claim, completed, read
from letters import a_letter, change_of, reviewed
from rota._core.actions import Audit, Verb
from rota._core.dead_letter import follower
from rota._core.job import State
from rota._core.retention import EVERYTHING, Policy, Pruned, Pruning, let_go_at
from rota._core.review import ReviewVerb
from rota.stores.contract import JobFilter
from rota.stores.postgres import PostgresStore, retention
from rota.stores.postgres.sqlfiles import statement
from rota.stores.retention_contract import Retention

DAY = 86_400.0
DEFAULT = Retention()
MANY = """
INSERT INTO rota.finished_jobs (id, run_at, created_at, claimed_at, finished_at, version, state, task, queue, payload,
                                priority, attempt, max_attempts, snoozes, losses)
SELECT rota.new_id(), at, at, at, at, 3, 'completed', 'email', 'default', '{}', 100, 1, 5, 0, 0
FROM generate_series(1, 10000), (SELECT %s::timestamptz AS at) AS moment
"""


@pytest.fixture
async def store(fresh_database: str, clock: Clock) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(fresh_database, clock=clock)
    yield store
    await store.close()


async def rows(url: str, question: str, *values: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(question, values or None)
        return await cursor.fetchall() if cursor.description else []


async def some_ended_jobs(store: PostgresStore, count: int = 3, end=completed, **options):
    await store.enqueue([a_job(**options) for _ in range(count)])
    jobs = await claim(store)
    await store.settle([end(job) for job in jobs])
    return jobs


async def tables(url: str, like: str) -> list[str]:
    found = await rows(url, "SELECT relname FROM pg_class WHERE relname ~ %s AND relkind = 'r'", like)
    return sorted(name for (name,) in found)


def day(moment: datetime) -> str:
    return f"finished_jobs_{moment:%Y%m%d}"


async def policy(store: PostgresStore, keep: float | None, **about: Any) -> None:
    await store.set_policy(Policy(keep, **about, set_by="ann"), Audit("ann", "retention_set", None))


# Batches and turns


async def test_a_day_is_gone_through_in_small_batches_each_complete_in_itself(
    store, clock, fresh_database, monkeypatch
):
    monkeypatch.setattr(retention, "BLOCKS", 1)
    jobs = await some_ended_jobs(store, 80, payload={"text": "x" * 500})
    clock.advance(9 * DAY)
    heard: list[int] = []

    def stop_after_three(gone: int) -> None:
        heard.append(gone)
        if len(heard) == 3:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await store.prune(EVERYTHING, DEFAULT, progress=stop_after_three)

    left, archived = await store.find(JobFilter(limit=100)), await store.archived([job.id for job in jobs])
    assert heard == sorted(set(heard))
    assert len(archived) == heard[-1] < 80
    assert {job.id for job in left} | {row.id for row in archived} == {job.id for job in jobs}
    assert (await store.prune(EVERYTHING, DEFAULT)).finished == 80 - heard[-1], "who stops it leaves the turn"
    assert len(await store.archived([job.id for job in jobs])) == 80


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
async def test_a_batch_reads_its_blocks_and_nothing_else_of_the_day(store, clock, fresh_database, mode):
    await rows(fresh_database, MANY, clock.now)
    text = SQL("EXPLAIN " + statement("prune_day")).format(day=Identifier(day(clock.now)))
    purge = retention.Purge(EVERYTHING, DEFAULT, clock.now, [])
    asked = purge.asked("") | {"first": "(2,0)", "last": "(4,0)"}
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        await connection.execute(f"SET plan_cache_mode = {mode}")
        plan = "\n".join(row[0] for row in await (await connection.execute(text, asked)).fetchall())

    assert "Tid Range Scan on" in plan, plan
    assert "Tid Scan on" in plan, plan
    assert f"Seq Scan on {day(clock.now)}" not in plan
    assert plan.count("Seq Scan on retention") == 1, "asked once a job"


async def test_one_purges_at_a_time_and_a_turn_that_was_left_behind_ends_by_itself(store, clock):
    await some_ended_jobs(store)
    clock.advance(9 * DAY)
    assert await store._pruner()._take_turn(uuid4())

    assert await store.prune(EVERYTHING, DEFAULT) == Pruned(busy=True)
    assert len(await store.find(JobFilter())) == 3
    clock.advance(retention.LEASE)
    assert await store.prune(EVERYTHING, DEFAULT) == Pruned(finished=3)


async def test_a_purge_whose_turn_was_taken_stops(store, clock, fresh_database, monkeypatch):
    monkeypatch.setattr(retention, "BLOCKS", 1)
    monkeypatch.setattr(retention, "LEASE", 0.0)
    await some_ended_jobs(store, 60, payload={"text": "x" * 500})
    clock.advance(9 * DAY)

    def taken(_: int) -> None:
        with psycopg.connect(fresh_database, autocommit=True) as other:
            other.execute("UPDATE rota.turns SET holder = gen_random_uuid(), until = 'infinity'")

    pruned = await store.prune(EVERYTHING, DEFAULT, progress=taken)

    assert pruned.busy
    assert 0 < pruned.finished < 60
    assert len(await store.find(JobFilter(limit=100))) == 60 - pruned.finished


# Days


async def test_a_day_is_dropped_when_nothing_in_it_is_kept_longer(store, clock, fresh_database):
    await policy(store, 20 * DAY, tenant="acme")
    first = clock.now
    [kept] = await some_ended_jobs(store, 1, tenant="acme")
    await some_ended_jobs(store)
    clock.advance(DAY)
    await some_ended_jobs(store)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)

    left = await tables(fresh_database, "^finished_jobs_[0-9]+$")
    assert day(first) in left
    assert day(first + timedelta(days=1)) not in left
    assert [job.id for job in await store.find(JobFilter())] == [kept.id]
    clock.advance(11 * DAY)
    await store.tidy(DEFAULT)
    assert day(first) not in await tables(fresh_database, "^finished_jobs_[0-9]+$")
    assert await rows(fresh_database, "SELECT count(*) FROM rota.retention_days WHERE day < %s", first) == [
        (0,)
    ]


async def test_a_day_that_holds_nothing_due_is_not_read_again_until_something_is(
    store, clock, fresh_database, monkeypatch
):
    await policy(store, 20 * DAY, tenant="acme")
    await some_ended_jobs(store, 1, tenant="acme")
    first = clock.now
    clock.advance(9 * DAY)
    seen: list[str] = []
    through = retention.Pruner._through

    async def noted(self, one, purge):
        seen.append(one.name)
        return await through(self, one, purge)

    monkeypatch.setattr(retention.Pruner, "_through", noted)
    for _ in range(3):
        await store.tidy(DEFAULT)
    assert seen.count(day(first)) == 1

    await store.tidy(Retention(finished=6 * DAY))
    assert seen.count(day(first)) == 2, "another default"
    await policy(store, 30 * DAY, tenant="acme")
    await store.tidy(DEFAULT)
    assert seen.count(day(first)) == 3, "another policy"
    clock.advance(22 * DAY)
    await store.tidy(DEFAULT)
    assert seen.count(day(first)) == 4, "its time has come"
    assert await store.find(JobFilter()) == []


async def test_a_detached_day_with_jobs_in_it_is_put_back_and_archived_before_it_is_dropped(
    store, clock, fresh_database
):
    name = day(clock.now)
    jobs = await some_ended_jobs(store)
    await rows(fresh_database, f"ALTER TABLE rota.finished_jobs DETACH PARTITION rota.{name}")
    clock.advance(9 * DAY)
    tidied = await store.tidy(DEFAULT)

    assert len(await store.archived([job.id for job in jobs])) == 3
    assert tidied.finished == 3
    assert name not in await tables(fresh_database, "^finished_jobs_[0-9]+$")


async def test_months_of_the_archive_come_and_go_whole(store, clock, fresh_database):
    clock.now = clock.now.replace(year=2031, month=1, day=20)
    await some_ended_jobs(store)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)
    assert {"archived_jobs_203101", "archived_jobs_203102"} <= set(
        await tables(fresh_database, "^archived_jobs_[0-9]+$")
    )
    clock.now = clock.now.replace(year=2032, day=31, hour=23)
    await store.tidy(DEFAULT)
    assert "archived_jobs_203101" in await tables(fresh_database, "^archived_jobs_[0-9]+$")

    clock.now = clock.now.replace(month=2, day=1)
    assert (await store.tidy(DEFAULT)).archive >= 1
    left = await tables(fresh_database, "^archived_jobs_[0-9]+$")
    assert "archived_jobs_203101" not in left
    assert "archived_jobs_203102" in left


async def test_a_reader_of_the_archive_delays_the_months_only(store, clock, fresh_database):
    await some_ended_jobs(store)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)
    clock.advance(500 * DAY)
    async with await psycopg.AsyncConnection.connect(fresh_database) as reader:
        await reader.execute("SELECT count(*) FROM rota.archived_jobs")
        assert (await store.tidy(DEFAULT)).archive == 0

    assert (await store.tidy(DEFAULT)).archive >= 1


# The same job wanted by others


async def test_a_job_that_somebody_revives_just_then_is_left_alone(store, clock, fresh_database):
    [job] = await some_ended_jobs(store, 1, cancelled)
    clock.advance(9 * DAY)
    async with await psycopg.AsyncConnection.connect(fresh_database) as holder:
        await holder.execute("SELECT FROM rota.finished_jobs WHERE id = %s FOR UPDATE", [job.id])
        assert await store.prune(EVERYTHING, DEFAULT) == Pruned()
    await by_hand(store, await read(store, job), Verb.RETRY)

    assert await store.prune(EVERYTHING, DEFAULT) == Pruned()
    assert (await read(store, job)).state is State.PENDING


async def test_a_dead_letter_that_is_reprocessed_just_then_is_left_alone(store, clock, fresh_database):
    """The reprocess is not committed when the purge looks: it must not take the row from under it."""
    letter = await a_letter(store)
    await reviewed(store, letter.job, ReviewVerb.ACKNOWLEDGE)
    clock.advance(31 * DAY)
    async with await psycopg.AsyncConnection.connect(fresh_database) as holder:
        await holder.execute(
            "UPDATE rota.dead_jobs SET review = 'reprocessing', version = version + 1 WHERE id = %s",
            [letter.job.id],
        )
        assert await store.prune(EVERYTHING, DEFAULT) == Pruned()
        await holder.commit()

    assert await store.prune(EVERYTHING, DEFAULT) == Pruned()
    assert (await read(store, letter.job)).review == "reprocessing"


async def test_a_reprocess_that_comes_after_the_purge_is_fenced_off(store, clock):
    letter = await a_letter(store)
    await reviewed(store, letter.job, ReviewVerb.ACKNOWLEDGE)
    clock.advance(31 * DAY)
    job = await read(store, letter.job)
    await store.prune(EVERYTHING, DEFAULT)
    new = follower(job, uuid4(), by="ann")
    answer = await store.reprocess(change_of(job, ReviewVerb.REPROCESS), new, [])

    assert (answer.landed, answer.review) == ("fenced", None)
    assert await store.get([new.id]) == []


# SQL


@pytest.mark.req("V37")
async def test_the_view_of_known_jobs_says_archived_and_how_the_job_ended(store, clock, fresh_database):
    [old] = await some_ended_jobs(store, 1, tenant="acme")
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)
    waiting, [young] = a_job(delay=DAY), await some_ended_jobs(store, 1)
    await store.enqueue([waiting])
    letter = await a_letter(store)

    found = await rows(fresh_database, "SELECT id, state, ended, tenant, archived_at FROM rota.known_jobs")
    assert set(found) == {
        (old.id, "archived", "completed", "acme", clock.now),
        (young.id, "completed", "completed", None, None),
        (waiting.id, "pending", None, None, None),
        (letter.job.id, "dead", "dead", None, None),
    }


async def test_rules_about_time_are_the_same_in_sql_and_in_python(store, clock, fresh_database):
    for keep in (60.0, 3600.0, 0.5 * DAY, DAY, 1.5 * DAY, 7 * DAY, 365 * DAY):
        for exact in (True, False):
            [(answer,)] = await rows(
                fresh_database, "SELECT rota.let_go_at(%s, %s, %s)", clock.now, keep, exact
            )
            assert answer == let_go_at(clock.now, keep, exact=exact), (keep, exact)


async def test_each_tenant_can_have_a_policy_of_its_own(store, clock):
    for number in range(30):
        await policy(store, (number + 1) * DAY, tenant=f"t{number}")
    jobs = [await a_running_job(store, tenant=f"t{number}") for number in range(30)]
    await store.settle([completed(job) for job in jobs])
    clock.advance(10.5 * DAY)
    await store.prune(Pruning(states=("completed",)), DEFAULT)

    assert {row.tenant for row in await store.archived([job.id for job in jobs])} == {
        f"t{number}" for number in range(10)
    }
