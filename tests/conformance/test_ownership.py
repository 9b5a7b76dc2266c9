"""One owner: a worker that lost its job can change nothing of it."""

from __future__ import annotations

import asyncio

import pytest

from build import (
    LEASE,
    Clock,
    a_job,
    a_running_job,
    a_session,
    applied,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    fenced,
    lost,
    partial,
    read,
    rescue,
    snoozed,
)
from rota._core.actions import Verb
from rota._core.job import State
from rota._core.retry import Retry
from rota.stores.contract import Answer, Store

WAYS = {"complete": completed, "partial": partial, "fail": failed, "snooze": snoozed, "cancel": cancelled}


@pytest.mark.req("D16")
@pytest.mark.scenario(4)
@pytest.mark.parametrize("way", WAYS)
async def test_a_worker_that_lost_its_job_cannot_settle_it(store: Store, clock: Clock, way: str):
    await store.enqueue([a_job()])
    [slow] = await claim(store, await a_session(store, "slow"))
    clock.advance(LEASE + 1)
    await rescue(store)
    [fast] = await claim(store, await a_session(store, "fast"))
    before = await read(store, fast)

    assert await store.settle([WAYS[way](slow)]) == [fenced(slow, State.RUNNING)]
    assert await read(store, fast) == before
    assert await store.settle([completed(fast, "mine")]) == [applied(fast, State.COMPLETED)]
    assert await store.settle([WAYS[way](slow)]) == [fenced(slow, State.COMPLETED)]
    assert (await read(store, fast)).result == "mine"


@pytest.mark.scenario(4)
@pytest.mark.parametrize("way", WAYS)
async def test_a_worker_whose_job_was_rescued_but_not_yet_taken_cannot_settle_it(
    store: Store, clock: Clock, way: str
):
    job = await a_running_job(store)
    clock.advance(LEASE + 1)
    await rescue(store)
    before = await read(store, job)

    assert await store.settle([WAYS[way](job)]) == [fenced(job, State.PENDING)]
    assert await read(store, job) == before
    assert [attempt.error_class for attempt in await store.attempts(job.id)] == ["lost"]


@pytest.mark.scenario(4)
async def test_a_worker_that_lost_its_job_hears_so_from_its_heartbeat(store: Store, clock: Clock):
    await store.enqueue([a_job()])
    slow = await a_session(store, "slow")
    [job] = await claim(store, slow)
    clock.advance(LEASE + 1)
    await rescue(store)
    await claim(store)

    beat = await store.beat(slow, lease=LEASE, holding={job.id: job.version})

    assert not beat.alive
    clock.advance(-LEASE)
    assert not (await store.beat(slow, lease=LEASE, holding={})).alive


@pytest.mark.scenario(3)
async def test_a_killed_workers_job_is_given_to_another_once_with_the_loss_on_record(
    store: Store, clock: Clock
):
    await store.enqueue([a_job()])
    [job] = await claim(store)
    clock.advance(LEASE)

    await store.end_expired()
    orphans = await store.lost(limit=10)
    now = clock.now
    first, second = await asyncio.gather(
        store.settle([lost(orphan, now=now) for orphan in orphans]),
        store.settle([lost(orphan, now=now) for orphan in orphans]),
    )

    assert [orphan.id for orphan in orphans] == [job.id]
    assert sorted(answer.answer for answer in first + second) == [Answer.ALREADY, Answer.APPLIED]
    [again] = await claim(store)
    assert (again.id, again.attempt, again.losses, again.version) == (job.id, 2, 1, job.version + 2)
    [attempt] = await store.attempts(job.id)
    assert (attempt.error_class, attempt.message, attempt.attempt) == (
        "lost",
        "its worker stopped beating",
        1,
    )
    assert attempt.session_id == job.session_id


@pytest.mark.scenario(3)
async def test_the_first_loss_is_repeated_at_once(store: Store, clock: Clock):
    job = await a_running_job(store)
    clock.advance(LEASE)
    await rescue(store)

    assert (await read(store, job)).run_at == clock.now
    assert [again.id for again in await claim(store)] == [job.id]


@pytest.mark.scenario(7)
async def test_a_job_that_loses_every_worker_ends_as_dead_and_lets_its_neighbours_run(
    store: Store, clock: Clock
):
    poison = a_job(max_attempts=3)
    await store.enqueue([poison])
    for _ in range(3):
        assert [job.id for job in await claim(store)] == [poison.id]
        clock.advance(600)
        await rescue(store)
        clock.advance(600)

    dead = await read(store, poison)
    assert (dead.state, dead.error_class, dead.losses, dead.attempt) == (State.DEAD, "lost", 3, 3)
    assert [attempt.error_class for attempt in await store.attempts(poison.id)] == ["lost"] * 3
    neighbour = a_job()
    await store.enqueue([neighbour])
    assert [job.id for job in await claim(store)] == [neighbour.id]


async def test_work_that_must_not_happen_twice_is_dead_after_its_worker(store: Store, clock: Clock):
    job = await a_running_job(store)
    clock.advance(LEASE)
    await rescue(store, retry=Retry.never())

    assert (await read(store, job)).state is State.DEAD


@pytest.mark.scenario(3)
async def test_a_late_owner_and_a_rescuer_at_the_same_time_have_one_winner(store: Store, clock: Clock):
    for _ in range(10):
        job = await a_running_job(store)
        clock.advance(LEASE)
        await store.end_expired()
        [orphan] = await store.lost(limit=10)

        [[own], [taken]] = await asyncio.gather(
            store.settle([completed(job)]), store.settle([lost(orphan, now=clock.now)])
        )

        after = await read(store, job)
        assert {own.answer, taken.answer} == {Answer.APPLIED, Answer.FENCED}
        assert after.state is (State.COMPLETED if own.answer is Answer.APPLIED else State.PENDING)
        assert after.version == job.version + 1
        await store.settle([completed(again) for again in await claim(store)])


@pytest.mark.scenario(6)
async def test_a_claim_whose_answer_was_lost_is_found_again_by_the_heartbeat(store: Store, clock: Clock):
    await store.enqueue([a_job(), a_job()])
    session = await a_session(store)
    known, forgotten = await claim(store, session)
    clock.advance(5)

    beat = await store.beat(session, lease=LEASE, holding={known.id: known.version}, strays=True)

    assert beat.alive
    assert [(stray.id, stray.version) for stray in beat.strays] == [(forgotten.id, forgotten.version)]
    assert await claim(store) == []
    assert await store.settle([completed(beat.strays[0])]) == [applied(forgotten, State.COMPLETED)]


async def test_strays_are_told_only_when_asked_for_and_never_those_just_claimed(store: Store, clock: Clock):
    await store.enqueue([a_job()])
    session = await a_session(store)
    [job] = await claim(store, session)

    assert (await store.beat(session, lease=LEASE, holding={}, strays=True)).strays == ()
    clock.advance(5)
    assert (await store.beat(session, lease=LEASE, holding={})).strays == ()
    assert (await store.beat(session, lease=LEASE, holding={job.id: job.version}, strays=True)).strays == ()


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.KILL])
async def test_a_worker_whose_job_was_taken_by_hand_is_fenced(store: Store, verb: Verb):
    job = await a_running_job(store)
    await by_hand(store, job, verb)
    after = await read(store, job)

    assert await store.settle([completed(job, "too late")]) == [fenced(job, after.state)]
    assert await read(store, job) == after
    assert job.session_id is not None
    beat = await store.beat(job.session_id, lease=LEASE, holding={job.id: job.version})
    assert (beat.alive, beat.lost) == (True, (job.id,))


async def test_a_forced_cancel_wins_over_a_late_success(store: Store):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL, force=True, reason="stop")

    assert await store.settle([completed(job)]) == [fenced(job, State.CANCELLED)]
    assert (await read(store, job)).reason == "stop"
