"""`unique_key`: dedup by scope (started, finished, window) and policy (keep, replace, reschedule, merge, reject)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from build import (
    Clock,
    a_job,
    by_hand,
    claim,
    completed,
    failed,
    read,
)
from rota._core.actions import Verb
from rota._core.job import NewJob, OnDuplicate, Scope, State
from rota.stores.contract import Enqueued, JobFilter, Store, Stored


def unique(scope: Scope = Scope.STARTED, policy: OnDuplicate = OnDuplicate.KEEP, **options) -> NewJob:
    return a_job(
        options.pop("task", "index"), unique_key="site:7", unique_scope=scope, on_duplicate=policy, **options
    )


async def stored(store: Store, new: NewJob) -> Enqueued:
    [answer] = await store.enqueue([new])
    return answer


@pytest.mark.req("L12")
@pytest.mark.parametrize("scope", [Scope.STARTED, Scope.FINISHED])
async def test_a_second_job_with_the_same_key_is_suppressed_while_the_first_waits(store: Store, scope: Scope):
    first = unique(scope, payload={"n": 1})
    await store.enqueue([first])
    before = await read(store, first)

    assert await stored(store, unique(scope, payload={"n": 2})) == Enqueued(first.id, Stored.DUPLICATE)
    assert await read(store, first) == before
    assert before.unique_key == "site:7"
    assert before.unique_scope == scope


@pytest.mark.req("L12")
async def test_a_unique_key_belongs_to_one_task_and_one_tenant(store: Store):
    jobs = [unique(), unique(task="email"), unique(tenant="acme"), unique(tenant="umbrella")]

    assert [(await stored(store, job)).stored for job in jobs] == [Stored.CREATED] * 4
    assert await stored(store, unique(tenant="acme")) == Enqueued(jobs[2].id, Stored.DUPLICATE)


async def test_task_and_key_are_not_confused_by_the_letters_between_them(store: Store):
    jobs = [a_job("a", unique_key="b:c"), a_job("a:b", unique_key="c")]

    assert [(await stored(store, job)).stored for job in jobs] == [Stored.CREATED] * 2


async def test_until_started_lets_a_change_made_while_it_runs_have_a_job_of_its_own(store: Store):
    first, second = unique(), unique()
    await store.enqueue([first])
    await claim(store)

    assert await stored(store, second) == Enqueued(second.id, Stored.CREATED)
    assert await stored(store, unique()) == Enqueued(second.id, Stored.DUPLICATE)


async def test_until_finished_keeps_others_out_while_it_runs_and_no_longer(store: Store):
    first = unique(Scope.FINISHED)
    await store.enqueue([first])
    [job] = await claim(store)
    assert await stored(store, unique(Scope.FINISHED)) == Enqueued(first.id, Stored.DUPLICATE)
    await store.settle([completed(job)])
    second = unique(Scope.FINISHED)

    assert await stored(store, second) == Enqueued(second.id, Stored.CREATED)


async def test_until_finished_holds_through_a_retry(store: Store):
    first = unique(Scope.FINISHED)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([failed(job)])

    assert await stored(store, unique(Scope.FINISHED)) == Enqueued(first.id, Stored.DUPLICATE)


async def test_a_window_holds_until_its_moment_whatever_the_job_does(store: Store, clock: Clock):
    first = unique(Scope.WINDOW, unique_window=60.0)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([completed(job)])
    clock.advance(59)
    assert await stored(store, unique(Scope.WINDOW, unique_window=60.0)) == Enqueued(
        first.id, Stored.DUPLICATE
    )
    clock.advance(1)
    second = unique(Scope.WINDOW, unique_window=60.0)

    assert await stored(store, second) == Enqueued(second.id, Stored.CREATED)


async def test_a_window_ends_even_when_its_job_still_waits(store: Store, clock: Clock):
    await store.enqueue([unique(Scope.WINDOW, unique_window=60.0, delay=3600.0)])
    clock.advance(60)

    assert (await stored(store, unique(Scope.WINDOW, unique_window=60.0))).stored is Stored.CREATED


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.KILL])
async def test_a_job_that_was_stopped_before_it_started_frees_its_key(store: Store, verb: Verb):
    first, second = unique(Scope.FINISHED), unique(Scope.FINISHED)
    await store.enqueue([first])
    await by_hand(store, await read(store, first), verb)

    assert await stored(store, second) == Enqueued(second.id, Stored.CREATED)


async def test_a_held_job_keeps_its_key(store: Store):
    first = unique(held=True)
    await store.enqueue([first])

    assert await stored(store, unique()) == Enqueued(first.id, Stored.DUPLICATE)


async def test_replace_gives_the_waiting_job_the_new_arguments(store: Store, clock: Clock):
    first = unique(payload={"n": 1, "old": True}, delay=60.0)
    await store.enqueue([first])
    before = await read(store, first)
    clock.advance(5)

    answer = await stored(store, unique(policy=OnDuplicate.REPLACE, payload={"n": 2}))

    after = await read(store, first)
    assert answer == Enqueued(first.id, Stored.REPLACED)
    assert after.payload == {"n": 2}
    assert (after.version, after.updated_at, after.run_at) == (before.version + 1, clock.now, before.run_at)


async def test_merge_lays_the_new_arguments_over_the_old(store: Store):
    first = unique(payload={"a": 1, "b": {"x": 1}})
    await store.enqueue([first])

    answer = await stored(store, unique(policy=OnDuplicate.MERGE, payload={"b": {"y": 2}, "c": 3}))

    after = await read(store, first)
    assert answer == Enqueued(first.id, Stored.MERGED)
    assert (after.payload, after.version) == ({"a": 1, "b": {"y": 2}, "c": 3}, 2)


async def test_reschedule_moves_the_waiting_job_to_the_new_time(store: Store, clock: Clock):
    first = unique(payload={"n": 1})
    await store.enqueue([first])

    answer = await stored(store, unique(policy=OnDuplicate.RESCHEDULE, payload={"n": 2}, delay=30.0))

    after = await read(store, first)
    assert answer == Enqueued(first.id, Stored.RESCHEDULED)
    assert (after.run_at, after.payload, after.version) == (clock.now + timedelta(seconds=30), {"n": 1}, 2)


async def test_a_held_job_can_be_replaced_and_stays_held(store: Store):
    first = unique(held=True, payload={"n": 1})
    await store.enqueue([first])

    assert (
        await stored(store, unique(policy=OnDuplicate.REPLACE, payload={"n": 2}))
    ).stored is Stored.REPLACED
    after = await read(store, first)
    assert (after.state, after.payload) == (State.HELD, {"n": 2})


async def test_reject_refuses_the_second_job_whether_the_first_waits_or_runs(store: Store):
    first = unique(Scope.FINISHED)
    await store.enqueue([first])
    refused = Enqueued(first.id, Stored.REJECTED)

    assert await stored(store, unique(Scope.FINISHED, OnDuplicate.REJECT)) == refused
    await claim(store)
    assert await stored(store, unique(Scope.FINISHED, OnDuplicate.REJECT)) == refused


@pytest.mark.parametrize("policy", [OnDuplicate.REPLACE, OnDuplicate.MERGE, OnDuplicate.RESCHEDULE])
async def test_a_job_that_has_started_is_not_changed_by_a_newcomer(store: Store, policy: OnDuplicate):
    first = unique(Scope.FINISHED, payload={"n": 1})
    await store.enqueue([first])
    await claim(store)
    before = await read(store, first)

    answer = await stored(store, unique(Scope.FINISHED, policy, payload={"n": 2}, delay=9.0))

    assert answer == Enqueued(first.id, Stored.DUPLICATE)
    assert await read(store, first) == before


async def test_several_jobs_with_one_key_in_one_batch_are_judged_in_order(store: Store):
    batch = [
        unique(payload={"n": 1}),
        unique(policy=OnDuplicate.REPLACE, payload={"n": 2}),
        unique(payload={"n": 3}),
    ]

    answers = await store.enqueue(batch)

    assert [answer.stored for answer in answers] == [Stored.CREATED, Stored.REPLACED, Stored.DUPLICATE]
    assert {answer.id for answer in answers} == {batch[0].id}
    assert (await read(store, batch[0])).payload == {"n": 2}


@pytest.mark.req("L12")
async def test_parallel_enqueues_with_one_unique_key_make_one_job(store: Store):
    jobs = [unique(payload={"n": number}) for number in range(50)]

    answers = await asyncio.gather(*(stored(store, job) for job in jobs))

    assert sorted(answer.stored for answer in answers) == [Stored.CREATED, *[Stored.DUPLICATE] * 49]
    assert len({answer.id for answer in answers}) == 1
    assert len(await store.find(JobFilter())) == 1
