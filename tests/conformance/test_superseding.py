"""One door into the list: a job that comes back must have its unique key again, or it is superseded."""

from __future__ import annotations

import asyncio

import pytest

from build import (
    Clock,
    a_job,
    applied,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    fenced,
    handed_back,
    lost,
    read,
    rescue,
    snoozed,
)
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import Job, NewJob, OnDuplicate, Scope, State
from rota._core.outcome import Transition
from rota.errors import NotUnique
from rota.stores.contract import Enqueued, JobFilter, Store, Stored


def unique(scope: Scope = Scope.STARTED, policy: OnDuplicate = OnDuplicate.KEEP, **options) -> NewJob:
    return a_job(
        options.pop("task", "index"), unique_key="site:7", unique_scope=scope, on_duplicate=policy, **options
    )


async def stored(store: Store, new: NewJob) -> Enqueued:
    [answer] = await store.enqueue([new])
    return answer


BACK = {
    "retry": failed,
    "snooze": snoozed,
    "hand back": handed_back,
    "rescue": lost,
}


@pytest.mark.parametrize("way", BACK)
async def test_a_job_that_comes_back_takes_its_key_again(store: Store, way: str):
    first = unique()
    await store.enqueue([first])
    [job] = await claim(store)

    assert await store.settle([BACK[way](job)]) == [applied(job, State.PENDING)]
    assert await stored(store, unique()) == Enqueued(first.id, Stored.DUPLICATE)


async def a_successor_that_ended(store: Store, scope: Scope = Scope.STARTED) -> None:
    """Another job that took the key, ran and is done."""
    second = unique(scope)
    assert (await stored(store, second)).created
    [job] = [job for job in await claim(store) if job.id == second.id]
    await store.settle([completed(job)])


@pytest.mark.parametrize("way", BACK)
async def test_a_job_that_comes_back_takes_its_key_from_a_successor_that_has_ended(store: Store, way: str):
    first = unique()
    await store.enqueue([first])
    [job] = await claim(store)
    await a_successor_that_ended(store)

    assert await store.settle([BACK[way](job)]) == [applied(job, State.PENDING)]
    assert await stored(store, unique()) == Enqueued(first.id, Stored.DUPLICATE)


@pytest.mark.scenario(10)
@pytest.mark.parametrize("way", BACK)
async def test_a_job_whose_key_a_newer_one_took_is_superseded_when_it_comes_back(
    store: Store, clock: Clock, way: str
):
    first, second = unique(), unique()
    await store.enqueue([first])
    [job] = await claim(store)
    await store.enqueue([second])
    clock.advance(3)

    assert await store.settle([BACK[way](job)]) == [applied(job, State.CANCELLED)]
    ended = await read(store, first)
    assert (ended.state, ended.reason, ended.superseded_by) == (State.CANCELLED, "superseded", second.id)
    assert (ended.version, ended.finished_at) == (job.version + 1, clock.now)
    assert [waiting.id for waiting in await claim(store)] == [second.id]


@pytest.mark.scenario(10)
async def test_a_superseded_retry_still_keeps_the_record_of_its_failure(store: Store):
    first = unique()
    await store.enqueue([first])
    [job] = await claim(store)
    await store.enqueue([unique()])
    await store.settle([failed(job, message="no route")])

    [attempt] = await store.attempts(first.id)
    ended = await read(store, first)
    assert (attempt.version, attempt.message) == (job.version, "no route")
    assert (ended.error_class, ended.error_message) == ("retryable", "no route")


@pytest.mark.scenario(10)
async def test_a_successor_that_runs_already_does_not_supersede_its_predecessor(store: Store):
    first, second = unique(), unique()
    await store.enqueue([first])
    [job] = await claim(store)
    await store.enqueue([second])
    [successor] = await claim(store)
    assert successor.id == second.id

    assert await store.settle([failed(job)]) == [applied(job, State.PENDING)]
    assert await stored(store, unique()) == Enqueued(first.id, Stored.DUPLICATE)
    assert await store.settle([failed(successor)]) == [applied(successor, State.CANCELLED)]
    assert (await read(store, second)).superseded_by == first.id


@pytest.mark.scenario(10)
async def test_one_superseded_job_in_a_batch_does_not_stop_the_others(store: Store, clock: Clock):
    first, others = unique(), [a_job(), a_job()]
    await store.enqueue([first, *others])
    jobs = {job.id: job for job in await claim(store)}
    await store.enqueue([unique()])
    clock.advance(60)
    rescued = await rescue(store)

    assert {job.id for job in rescued} == set(jobs)
    assert (await read(store, first)).state is State.CANCELLED
    assert [(await read(store, other)).state for other in others] == [State.PENDING] * 2


async def test_a_job_that_ends_does_not_mind_its_successor(store: Store):
    first, second = unique(), unique()
    await store.enqueue([first])
    [job] = await claim(store)
    await store.enqueue([second])

    assert await store.settle([completed(job)]) == [applied(job, State.COMPLETED)]
    assert (await read(store, second)).state is State.PENDING


@pytest.mark.scenario(10)
async def test_a_running_job_failed_by_hand_is_superseded_like_any_other(store: Store):
    first, second = unique(), unique()
    await store.enqueue([first])
    await claim(store)
    await store.enqueue([second])

    settled = await by_hand(store, await read(store, first), Verb.FAIL)

    ended = await read(store, first)
    assert settled.state is State.CANCELLED
    assert (ended.state, ended.superseded_by) == (State.CANCELLED, second.id)


@pytest.mark.parametrize("scope", [Scope.STARTED, Scope.FINISHED])
async def test_an_ended_job_cannot_be_retried_beside_the_one_that_took_its_place(store: Store, scope: Scope):
    first, second = unique(scope), unique(scope)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    await store.enqueue([second])
    dead = await read(store, first)

    with pytest.raises(NotUnique, match=str(second.id)):
        await by_hand(store, dead, Verb.RETRY)
    assert await read(store, first) == dead
    assert await store.audit(first.id) == []


@pytest.mark.parametrize("scope", Scope)
async def test_an_ended_job_that_is_retried_has_its_key_again(store: Store, scope: Scope):
    first = unique(scope, unique_window=3600.0)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([cancelled(job)])
    settled = await by_hand(store, await read(store, first), Verb.RETRY)

    assert settled == applied(job, State.PENDING)
    assert await stored(store, unique(scope)) == Enqueued(first.id, Stored.DUPLICATE)


@pytest.mark.parametrize("scope", [Scope.STARTED, Scope.FINISHED])
async def test_an_ended_job_that_is_retried_takes_its_key_from_a_successor_that_has_ended(
    store: Store, scope: Scope
):
    first = unique(scope)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([cancelled(job)])
    await a_successor_that_ended(store, scope)
    await by_hand(store, await read(store, first), Verb.RETRY)

    assert await stored(store, unique(scope)) == Enqueued(first.id, Stored.DUPLICATE)


async def test_a_stale_owner_cannot_take_the_key_of_its_successor(store: Store, clock: Clock):
    first = unique()
    await store.enqueue([first])
    [zombie] = await claim(store)
    clock.advance(60)
    await rescue(store)
    [owner] = await claim(store)
    second = unique()
    await store.enqueue([second])
    await store.settle([completed(owner)])

    assert await store.settle([failed(zombie)]) == [fenced(zombie, State.COMPLETED)]
    assert await stored(store, unique()) == Enqueued(second.id, Stored.DUPLICATE)


@pytest.mark.scenario(10)
async def test_a_newcomer_racing_with_a_retry_never_leaves_two_waiting_jobs(store: Store):
    for _ in range(10):
        await store.enqueue([unique()])
        [job] = await claim(store)
        newcomer = unique()

        await asyncio.gather(store.settle([failed(job)]), stored(store, newcomer))

        waiting = await store.find(JobFilter(states=(State.PENDING,)))
        assert len(waiting) == 1
        await _end(store, waiting)


async def _end(store: Store, jobs: list[Job]) -> None:
    for job in jobs:
        await by_hand(store, job, Verb.CANCEL)


def test_the_ways_back_are_all_moves_to_pending():
    from build import a_stored_job

    moves: list[Transition] = [way(a_stored_job()) for way in BACK.values()]

    assert {move.to for move in moves} == {State.PENDING}
