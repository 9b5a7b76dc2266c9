"""`key`: one job for one key and tenant, as long as its window or its job lasts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from build import Clock, a_job, cancelled, claim, completed, failed, read, snoozed
from rota._core.actions import Removal, Verb
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota.stores.contract import Enqueued, JobFilter, Retention, Store, Stored

DAY = 86_400.0


@pytest.mark.req("W14")
async def test_a_second_job_with_the_same_key_is_a_duplicate_of_the_first(store: Store):
    first = a_job(payload={"order": 7}, key="order:7")
    second = a_job(payload={"order": 7}, key="order:7")
    await store.enqueue([first])

    assert await store.enqueue([second]) == [Enqueued(first.id, Stored.DUPLICATE)]
    assert await store.get([second.id]) == []
    assert (await read(store, first)).key == "order:7"


@pytest.mark.scenario(9)
async def test_the_same_key_with_other_arguments_is_a_conflict(store: Store):
    first = a_job(payload={"order": 7, "rush": True}, key="order:7")
    await store.enqueue([first])
    same = a_job(payload={"rush": True, "order": 7}, key="order:7")
    other = a_job(payload={"order": 8, "rush": True}, key="order:7")
    another_task = a_job("invoice", {"order": 7, "rush": True}, key="order:7")

    assert await store.enqueue([same, other, another_task]) == [
        Enqueued(first.id, Stored.DUPLICATE),
        Enqueued(first.id, Stored.CONFLICT),
        Enqueued(first.id, Stored.CONFLICT),
    ]
    assert len(await store.find(JobFilter())) == 1


@pytest.mark.req("W15")
async def test_the_same_key_in_another_tenant_is_another_job(store: Store):
    jobs = [a_job(key="a", tenant="acme"), a_job(key="a", tenant="umbrella"), a_job(key="a")]

    assert await store.enqueue(jobs) == [Enqueued(job.id, Stored.CREATED) for job in jobs]
    assert [answer.stored for answer in await store.enqueue([a_job(key="a", tenant="acme")])] == [
        Stored.DUPLICATE
    ]


@pytest.mark.req("W10")
async def test_a_key_has_at_most_one_execution_at_a_time(store: Store):
    first = a_job(key="order:7")
    await store.enqueue([first])
    [running] = await claim(store)

    assert await store.enqueue([a_job(key="order:7")]) == [Enqueued(first.id, Stored.DUPLICATE)]
    assert await claim(store) == []
    await store.settle([snoozed(running, 0)])
    assert await store.enqueue([a_job(key="order:7")]) == [Enqueued(first.id, Stored.DUPLICATE)]
    assert [job.id for job in await claim(store)] == [first.id]


@pytest.mark.scenario(9)
async def test_a_key_is_remembered_for_its_window_and_free_after_it(store: Store, clock: Clock):
    first = a_job(key="a", key_window=3600.0)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([completed(job)])
    clock.advance(3599)
    assert await store.enqueue([a_job(key="a")]) == [Enqueued(first.id, Stored.DUPLICATE)]
    clock.advance(1)
    second = a_job(key="a", payload={"other": True})

    assert await store.enqueue([second]) == [Enqueued(second.id, Stored.CREATED)]
    assert await store.enqueue([a_job(key="a", payload={"other": True})]) == [
        Enqueued(second.id, Stored.DUPLICATE)
    ]


async def test_a_key_outlives_its_window_as_long_as_its_job_is_unfinished(store: Store, clock: Clock):
    first = a_job(key="a", key_window=60.0, delay=10 * DAY)
    await store.enqueue([first])
    clock.advance(5 * DAY)

    assert await store.enqueue([a_job(key="a")]) == [Enqueued(first.id, Stored.DUPLICATE)]


ENDS = {
    "cancelled": cancelled,
    "dead": lambda job: failed(job, ErrorClass.NON_RETRYABLE),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_key_is_remembered_however_its_job_ended(store: Store, clock: Clock, end: str):
    first = a_job(key="a")
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([ENDS[end](job)])
    clock.advance(DAY - 1)
    assert await store.enqueue([a_job(key="a")]) == [Enqueued(first.id, Stored.DUPLICATE)]
    clock.advance(1)

    assert [answer.stored for answer in await store.enqueue([a_job(key="a")])] == [Stored.CREATED]


@pytest.mark.scenario(9)
async def test_a_key_is_respected_after_its_job_was_removed_by_retention(store: Store, clock: Clock):
    first = a_job(key="a", key_window=30 * DAY)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([completed(job)])
    clock.advance(10 * DAY)
    await store.tidy(Retention())
    assert await store.get([first.id]) == []

    assert await store.enqueue([a_job(key="a")]) == [Enqueued(first.id, Stored.DUPLICATE)]
    clock.advance(20 * DAY)
    await store.tidy(Retention())
    assert [answer.stored for answer in await store.enqueue([a_job(key="a")])] == [Stored.CREATED]


async def test_a_duplicate_is_found_by_its_key(store: Store):
    new = a_job(key="order:7")
    await store.enqueue([new, a_job(key="order:8"), a_job()])

    assert [job.id for job in await store.find(JobFilter(key="order:7"))] == [new.id]


@pytest.mark.scenario(9)
@pytest.mark.req("W14", "W38")
async def test_a_hundred_parallel_enqueues_with_one_key_make_one_job(store: Store):
    jobs = [a_job(payload={"order": 7}, key="order:7") for _ in range(100)]

    async def four_callers_a_loop(part: int) -> list[Enqueued]:
        async def caller(places: range) -> list[Enqueued]:
            return [answer for place in places for answer in await store.enqueue([jobs[place]])]

        starts = range(part * 25, part * 25 + 25)
        rounds = await asyncio.gather(*(caller(starts[first::5]) for first in range(5)))
        return [answer for round_ in rounds for answer in round_]

    answers = await in_four_loops(store, four_callers_a_loop)

    assert len(answers) == 100
    assert len({answer.id for answer in answers}) == 1
    assert sorted(answer.stored for answer in answers) == [Stored.CREATED, *[Stored.DUPLICATE] * 99]
    assert [job.id for job in await store.find(JobFilter())] == [answers[0].id]


@pytest.mark.scenario(9)
async def test_parallel_enqueues_of_several_keys_in_opposite_orders_do_not_lock_each_other_out(store: Store):
    keys = [f"key:{number}" for number in range(10)]

    async def batches(part: int) -> list[Enqueued]:
        order = keys if part % 2 else keys[::-1]
        rounds = [await store.enqueue([a_job(key=key) for key in order]) for _ in range(5)]
        return [answer for round_ in rounds for answer in round_]

    answers = await in_four_loops(store, batches)

    assert sum(answer.stored is Stored.CREATED for answer in answers) == 10
    assert len(await store.find(JobFilter())) == 10


async def in_four_loops(store: Store, work: Callable[[int], Awaitable[list[Enqueued]]]) -> list[Enqueued]:
    """Run `work(0)` to `work(3)` at once, each in a thread with an event loop of its own."""
    together = threading.Barrier(4)

    async def one(part: int) -> list[Enqueued]:
        await store.find(JobFilter(limit=1))  # connections are open before the race begins
        together.wait(timeout=20)
        try:
            return await work(part)
        finally:
            await store.close()

    parts = await asyncio.gather(*(asyncio.to_thread(asyncio.run, one(part)) for part in range(4)))
    return [answer for part in parts for answer in part]


async def test_a_key_that_a_removed_job_held_stays_taken_for_its_window(store: Store):
    from rota._core.actions import Audit

    first = a_job(key="a", held=True)
    await store.enqueue([first])
    held = await read(store, first)
    await store.change(Removal(held), Audit("ada", Verb.DELETE, held.id))

    assert await store.enqueue([a_job(key="a")]) == [Enqueued(first.id, Stored.DUPLICATE)]


async def test_keys_and_unique_keys_of_one_name_have_nothing_to_do_with_each_other(store: Store):
    first, second = a_job(key="a"), a_job(unique_key="a")

    assert await store.enqueue([first, second]) == [
        Enqueued(first.id, Stored.CREATED),
        Enqueued(second.id, Stored.CREATED),
    ]


async def test_a_job_with_both_keys_is_judged_by_its_idempotency_key_first(store: Store):
    first = a_job(payload={"n": 1}, key="a", unique_key="u")
    await store.enqueue([first])

    assert await store.enqueue([a_job(payload={"n": 2}, key="a", unique_key="u")]) == [
        Enqueued(first.id, Stored.CONFLICT)
    ]
    assert await store.enqueue([a_job(payload={"n": 2}, key="b", unique_key="u")]) == [
        Enqueued(first.id, Stored.DUPLICATE)
    ]


async def test_a_dead_job_that_is_retried_keeps_its_key_while_it_waits(store: Store, clock: Clock):
    from build import by_hand

    first = a_job(key="a", key_window=60.0)
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    await by_hand(store, await read(store, job), Verb.RETRY)
    clock.advance(61)

    assert (await read(store, job)).state is State.PENDING
    assert await store.enqueue([a_job(key="a")]) == [Enqueued(first.id, Stored.DUPLICATE)]


async def test_a_key_may_be_any_text(store: Store):
    odd = ["", " ", "a:b", "ä☃", "x" * 500, "50%", "{}", "'; --"]
    jobs = [a_job(key=key) for key in odd]

    assert {answer.stored for answer in await store.enqueue(jobs)} == {Stored.CREATED}
    again = await store.enqueue([a_job(key=key) for key in odd])
    assert [answer.id for answer in again] == [UUID(str(job.id)) for job in jobs]
