"""The janitor: days of finished jobs come and go without anybody waiting, whoever else is at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from build import Clock, a_job, a_running_job, a_session, by_hand, claim, completed, failed, partial, read
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import Job, State
from rota.stores.contract import JobFilter, Retention, Tidied, Wanted
from rota.stores.postgres import PostgresStore, retention, upkeep

DAY = 86_400.0


@pytest.fixture
async def store(fresh_database: str, clock: Clock) -> AsyncIterator[PostgresStore]:
    """A store whose days pass when the test says so."""
    store = PostgresStore(fresh_database, clock=clock)
    yield store
    await store.close()


async def rows(url: str, question: str) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(question)
        return await cursor.fetchall() if cursor.description else []


async def days(url: str) -> list[str]:
    """The days that finished jobs can go to."""
    found = await rows(
        url,
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'rota.finished_jobs'::regclass",
    )
    return sorted(name.removeprefix("rota.finished_jobs_") for (name,) in found)


async def tables(url: str) -> list[str]:
    """The tables of days, whether they still belong to the finished jobs or not."""
    found = await rows(
        url, "SELECT relname FROM pg_class WHERE relname ~ '^finished_jobs_[0-9]+$' AND relkind = 'r'"
    )
    return sorted(name.removeprefix("finished_jobs_") for (name,) in found)


def named(moment: datetime, first: int, last: int) -> list[str]:
    return [f"{moment + timedelta(days=step):%Y%m%d}" for step in range(first, last + 1)]


async def a_finished_job(store: PostgresStore) -> Job:
    job = await a_running_job(store)
    await store.settle([completed(job)])
    return job


# Days come and go


async def test_a_week_of_days_is_made_ahead(store, clock, fresh_database):
    clock.advance(100 * DAY)

    await store.tidy(Retention(finished=1000 * DAY))

    assert set(named(clock(), -1, 7)) <= set(await days(fresh_database))


async def test_days_that_are_wholly_older_than_the_retention_are_dropped_and_others_stay(
    store, clock, fresh_database
):
    today = clock()
    finished = []
    for _ in range(10):
        await store.tidy(Retention(finished=1000 * DAY))
        finished.append(await a_finished_job(store))
        clock.advance(DAY)

    tidied = await store.tidy(Retention())

    # Noon of the tenth day: seven days ago is noon of the third, so that day has not ended by then.
    assert {job.id for job in await store.find(JobFilter())} == {job.id for job in finished[3:]}
    assert await tables(fresh_database) == named(today, 3, 17)
    assert tidied == Tidied(finished=3, sessions=tidied.sessions, days=4)


async def test_a_day_is_a_day_of_utc_whatever_zone_the_server_is_set_to(fresh_database, clock):
    name = fresh_database.partition("?")[0].rpartition("/")[2]
    await rows(fresh_database, f"ALTER DATABASE {name} SET timezone = 'Pacific/Auckland'")
    store = PostgresStore(fresh_database, clock=clock)
    clock.now = clock.now.replace(hour=0, minute=0) + timedelta(days=30)
    last, first = clock.now - timedelta(microseconds=1), clock.now
    for moment in (last, first):
        clock.now = moment
        await a_finished_job(store)

    kept = await rows(
        fresh_database, "SELECT tableoid::regclass::text FROM rota.finished_jobs ORDER BY finished_at"
    )
    clock.now = first + timedelta(days=7) - timedelta(seconds=1)
    before = (await store.tidy(Retention())).days
    assert len(await store.find(JobFilter())) == 2
    clock.now = first + timedelta(days=7)
    await store.tidy(Retention())

    assert kept == [(f"rota.finished_jobs_{moment:%Y%m%d}",) for moment in (last, first)]
    assert [job.finished_at for job in await store.find(JobFilter())] == [first]
    assert before > 0
    await store.close()


@pytest.mark.parametrize("how", ["settle", "exchange", "operator", "partial"])
async def test_a_job_that_ends_on_a_day_that_nobody_made_makes_it(store, clock, fresh_database, how):
    job = await a_running_job(store)
    waiting = a_job()
    await store.enqueue([waiting])
    clock.advance(30 * DAY)
    assert f"{clock():%Y%m%d}" not in await days(fresh_database)

    if how == "operator":
        await by_hand(store, await read(store, waiting), Verb.CANCEL)
        assert (await read(store, waiting)).state is State.CANCELLED
    elif how == "exchange":
        await store.exchange([completed(job)], Wanted(1), session=await a_session(store))
    else:
        await store.settle([completed(job) if how == "settle" else partial(job)])

    assert f"{clock():%Y%m%d}" in await days(fresh_database)
    if how != "operator":
        assert (await read(store, job)).state.terminal


# A janitor that was stopped in the middle, and readers in the way


async def half_detach(url: str, day: str) -> None:
    """What a janitor leaves behind that was stopped while it waited for a reader."""
    async with await psycopg.AsyncConnection.connect(url) as reader:
        await reader.execute("SELECT count(*) FROM rota.finished_jobs")
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as stopped:
            await stopped.execute("SET lock_timeout = '100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await stopped.execute(
                    f"ALTER TABLE rota.finished_jobs DETACH PARTITION rota.finished_jobs_{day} CONCURRENTLY"
                )
    assert await rows(url, "SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == [(1,)]


async def test_a_day_that_a_stopped_janitor_left_half_detached_is_finished_by_the_next(
    store, clock, fresh_database
):
    today = clock()
    job = await a_finished_job(store)
    clock.advance(10 * DAY)
    await half_detach(fresh_database, f"{today:%Y%m%d}")

    tidied = await store.tidy(Retention())

    assert f"{today - timedelta(days=1):%Y%m%d}" not in await tables(fresh_database)
    assert f"{today:%Y%m%d}" not in await tables(fresh_database)
    assert tidied.days >= 2
    assert [job.id for job in await store.archived([job.id])] == [job.id]
    assert await store.find(JobFilter()) == []


async def test_a_half_detached_day_stops_no_other_even_if_it_should_be_kept_longer(
    store, clock, fresh_database
):
    today = clock()
    clock.advance(6 * DAY)
    await half_detach(fresh_database, f"{today + timedelta(days=5):%Y%m%d}")
    clock.advance(3 * DAY)

    await store.tidy(Retention())

    left = await tables(fresh_database)
    assert left[0] == f"{today + timedelta(days=2):%Y%m%d}"
    assert await rows(fresh_database, "SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == [(0,)]


async def test_a_day_that_was_detached_and_not_dropped_is_dropped_when_it_is_old(
    store, clock, fresh_database
):
    today = f"{clock():%Y%m%d}"
    await rows(fresh_database, f"ALTER TABLE rota.finished_jobs DETACH PARTITION rota.finished_jobs_{today}")
    clock.advance(7 * DAY)
    await store.tidy(Retention())
    assert today in await tables(fresh_database)

    clock.advance(DAY)
    await store.tidy(Retention())

    assert today not in await tables(fresh_database)


async def test_a_long_reader_delays_only_the_days_and_blocks_nobody(
    store, clock, fresh_database, monkeypatch
):
    monkeypatch.setattr(upkeep, "PATIENCE", 0.3)
    ended = await a_session(store, lease=1)
    await a_finished_job(store)
    clock.advance(10 * DAY)
    await store.end_expired()
    clock.advance(2 * DAY)
    async with await psycopg.AsyncConnection.connect(fresh_database) as reader:
        await reader.execute("SELECT count(*) FROM rota.finished_jobs")
        tidying = asyncio.create_task(store.tidy(Retention()))
        async with asyncio.timeout(5):
            await a_finished_job(store)
            tidied = await tidying
        assert tidied.days == 0
        assert tidied.sessions >= 1
        assert ended not in {session.id for session in await store.sessions()}

    later = await store.tidy(Retention())

    assert later.days >= 3
    assert len(await store.find(JobFilter())) == 1


async def test_four_janitors_at_once_do_each_others_work_without_harm(store, clock, fresh_database):
    today = clock()
    await a_finished_job(store)
    clock.advance(9 * DAY)
    stores = [PostgresStore(fresh_database, clock=clock) for _ in range(4)]

    async with await psycopg.AsyncConnection.connect(fresh_database) as reader:
        # All of them meet the same reader, and each finds what the others began.
        await reader.execute("SELECT count(*) FROM rota.finished_jobs")
        tidying = [asyncio.create_task(janitor.tidy(Retention())) for janitor in stores]
        await asyncio.sleep(0.3)
    await asyncio.gather(*tidying)
    await asyncio.gather(*[janitor.tidy(Retention()) for janitor in stores])

    assert await tables(fresh_database) == named(today, 2, 16)
    await asyncio.gather(*[janitor.close() for janitor in stores])


# Rows, in batches


@pytest.mark.parametrize("kept", [12 * 3600.0, 36 * 3600.0])
async def test_a_retention_that_ends_within_a_day_is_kept_by_deleting_in_batches(
    store, clock, fresh_database, monkeypatch, kept
):
    monkeypatch.setattr(retention, "BLOCKS", 1)
    await store.enqueue([a_job() for _ in range(35)])
    await store.settle([completed(job) for job in await claim(store)])
    clock.advance(kept - 1)
    young = await a_finished_job(store)
    await store.tidy(Retention(finished=kept))
    assert len(await store.find(JobFilter())) == 36

    clock.advance(2)
    await store.tidy(Retention(finished=kept))

    assert [job.id for job in await store.find(JobFilter())] == [young.id]


async def test_dead_jobs_their_attempts_and_their_keys_go_in_batches_too(
    store, clock, fresh_database, monkeypatch
):
    monkeypatch.setattr(upkeep, "BATCH", 10)
    monkeypatch.setattr(retention, "BATCH", 10)
    await store.enqueue([a_job(key=f"order:{number}") for number in range(35)])
    jobs = await claim(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE) for job in jobs])
    await rows(
        fresh_database,
        f"UPDATE rota.dead_jobs SET review = 'resolved', reviewed_at = '{clock().isoformat()}' RETURNING 1",
    )
    clock.advance(31 * DAY)

    tidied = await store.tidy(Retention())

    assert (tidied.dead, tidied.keys) == (35, 35)
    for table in ("dead_jobs", "failed_attempts", "keys"):
        assert await rows(fresh_database, f"SELECT count(*) FROM rota.{table}") == [(0,)]


async def test_attempts_of_a_day_that_was_dropped_go_with_it_and_those_of_living_jobs_stay(
    store, clock, fresh_database
):
    living = await a_running_job(store)
    await store.settle([failed(living, now=clock())])
    gone = await a_running_job(store)
    await store.settle([failed(gone, now=clock() - timedelta(days=1))])
    [again] = [job for job in await claim(store) if job.id == gone.id]
    await store.settle([completed(again)])
    clock.advance(9 * DAY)

    await store.tidy(Retention())

    assert len(await store.attempts(living.id)) == 1
    assert await store.attempts(gone.id) == []
