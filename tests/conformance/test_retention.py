"""Tidy: "remove what retention lets go and prepare room for what comes"."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from build import (
    Clock,
    a_job,
    a_running_job,
    a_session,
    applied,
    cancelled,
    claim,
    completed,
    failed,
    partial,
    read,
)
from rota._core.failure import ErrorClass
from rota._core.job import Job, State
from rota.stores.contract import Retention, Store, Stored
from rota.stores.memory import MemoryStore

DAY = 86_400.0
ENDS = {"completed": completed, "partial": partial, "cancelled": cancelled}


async def reviewed(store: Store, job: Job, review: str, clock: Clock) -> None:
    """A person closes the review of a dead job; the verb for it comes with the dead-letter pages."""
    if isinstance(store, MemoryStore):
        store._book.put(store._book.jobs[job.id]._replace(review=review))
        store._book.reviewed_at[job.id] = clock.now
        return
    async with await psycopg.AsyncConnection.connect(store.url, autocommit=True) as connection:
        await connection.execute(
            "UPDATE rota.dead_jobs SET review = %s, reviewed_at = %s WHERE id = %s",
            [review, clock.now, job.id],
        )


async def a_dead_job(store: Store) -> Job:
    job = await a_running_job(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    return await read(store, job)


@pytest.mark.parametrize("end", ENDS)
async def test_finished_jobs_go_after_seven_days_and_not_before(store: Store, clock: Clock, end: str):
    job = await a_running_job(store)
    await store.settle([ENDS[end](job)])
    clock.advance(6.9 * DAY)
    await store.tidy(Retention())
    assert len(await store.get([job.id])) == 1
    clock.advance(1.1 * DAY)
    await store.tidy(Retention())

    assert await store.get([job.id]) == []


async def test_a_finished_job_goes_with_its_failed_attempts(store: Store, clock: Clock):
    new = a_job()
    await store.enqueue([new])
    for end in (failed, completed):
        [job] = await claim(store)
        await store.settle([end(job)])
        clock.advance(10)
    clock.advance(9 * DAY)
    await store.tidy(Retention())

    assert await store.get([new.id]) == []
    assert await store.attempts(new.id) == []


async def test_a_retention_of_hours_is_kept_too(store: Store, clock: Clock):
    old = await a_running_job(store)
    await store.settle([completed(old)])
    clock.advance(3600)
    new = await a_running_job(store)
    await store.settle([completed(new)])
    clock.advance(1800)
    await store.tidy(Retention(finished=3600.0))

    assert [job.id for job in await store.get([old.id, new.id])] == [new.id]


async def test_unfinished_jobs_never_go(store: Store, clock: Clock):
    jobs = [a_job(), a_job(held=True), a_job(delay=500 * DAY)]
    await store.enqueue(jobs)
    await claim(store)
    clock.advance(400 * DAY)
    await store.tidy(Retention())

    assert len(await store.get([job.id for job in jobs])) == 3


async def test_a_dead_job_that_nobody_reviewed_stays(store: Store, clock: Clock):
    dead = await a_dead_job(store)
    clock.advance(400 * DAY)
    await store.tidy(Retention())

    assert (await read(store, dead)).review == "pending_review"


@pytest.mark.parametrize("review", ["acknowledged", "discarded", "resolved"])
async def test_a_dead_job_goes_thirty_days_after_its_review(store: Store, clock: Clock, review: str):
    dead = await a_dead_job(store)
    clock.advance(100 * DAY)
    await reviewed(store, dead, review, clock)
    clock.advance(30 * DAY - 1)
    await store.tidy(Retention())
    assert (await read(store, dead)).review == review
    clock.advance(1)
    tidied = await store.tidy(Retention())

    assert tidied.dead == 1
    assert await store.get([dead.id]) == []
    assert await store.attempts(dead.id) == []


async def test_a_dead_job_that_is_being_reprocessed_stays(store: Store, clock: Clock):
    dead = await a_dead_job(store)
    await reviewed(store, dead, "reprocessing", clock)
    clock.advance(400 * DAY)
    await store.tidy(Retention())

    assert len(await store.get([dead.id])) == 1


async def test_keys_go_when_they_hold_nothing_any_more(store: Store, clock: Clock):
    job = await a_running_job(store, key="short", key_window=60.0)
    await store.settle([completed(job)])
    await store.enqueue(
        [a_job(key="kept", key_window=10.0, delay=DAY), a_job(key="long", key_window=10 * DAY)]
    )
    clock.advance(61)

    assert (await store.tidy(Retention())).keys == 1
    assert (await store.tidy(Retention())).keys == 0
    again = await store.enqueue([a_job(key="kept"), a_job(key="long"), a_job(key="short")])
    assert [answer.stored for answer in again] == [Stored.DUPLICATE, Stored.DUPLICATE, Stored.CREATED]


async def test_sessions_that_ended_go_after_a_day(store: Store, clock: Clock):
    ended, living = await a_session(store), await a_session(store, lease=10 * DAY)
    await store.end_session(ended)
    clock.advance(DAY - 1)
    assert (await store.tidy(Retention())).sessions == 0
    clock.advance(1)

    assert (await store.tidy(Retention())).sessions == 1
    assert [record.id for record in await store.sessions()] == [living]


async def test_an_ended_session_that_still_owns_a_job_stays_until_the_job_is_rescued(
    store: Store, clock: Clock
):
    job = await a_running_job(store)
    assert job.session_id is not None
    await store.end_session(job.session_id)
    clock.advance(2 * DAY)

    assert (await store.tidy(Retention())).sessions == 0
    await store.settle([failed(job)])
    assert (await store.tidy(Retention())).sessions == 1


async def test_tidying_prepares_room_for_what_ends_later(store: Store, clock: Clock):
    for _ in range(5):
        clock.advance(5 * DAY)
        await store.tidy(Retention())
        job = await a_running_job(store)
        assert await store.settle([completed(job)]) == [applied(job, State.COMPLETED)]


async def test_a_job_can_end_on_a_day_that_nobody_prepared(store: Store, clock: Clock):
    clock.advance(90 * DAY)
    done, stopped = await a_running_job(store), await a_running_job(store)

    assert await store.settle([completed(done), cancelled(stopped)]) == [
        applied(done, State.COMPLETED),
        applied(stopped, State.CANCELLED),
    ]
    assert (await read(store, done)).finished_at == clock.now


async def test_two_janitors_at_once_do_no_harm(store: Store, clock: Clock):
    job = await a_running_job(store, key="a", key_window=60.0)
    await store.settle([completed(job)])
    clock.advance(9 * DAY)

    tidied = await asyncio.gather(*(store.tidy(Retention()) for _ in range(3)))

    assert sum(each.keys for each in tidied) == 1
    assert await store.get([job.id]) == []
