"""Gates: of the jobs with one gate at most one runs; the others are parked until it is free."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from build import (
    LEASE,
    ONE,
    Clock,
    a_job,
    a_session,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    handed_back,
    read,
    rescue,
    snoozed,
)
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import Job, State
from rota.stores.contract import JobFilter, Store, Wanted


@pytest.mark.req("W10")
async def test_of_the_jobs_with_one_gate_one_runs_at_a_time(store: Store):
    jobs = [a_job(gate="site:7") for _ in range(3)]
    await store.enqueue(jobs)

    order = []
    while running := await claim(store):
        assert len(running) == 1
        assert len(await store.find(JobFilter(states=(State.RUNNING,)))) == 1
        order.append(running[0].id)
        await store.settle([completed(running[0])])

    assert order == [job.id for job in jobs]


async def test_other_gates_and_jobs_without_one_are_not_in_the_way(store: Store):
    jobs = [a_job(gate="a"), a_job(gate="a"), a_job(gate="b"), a_job(), a_job()]
    await store.enqueue(jobs)

    assert {job.id for job in await claim(store)} == {jobs[0].id, jobs[2].id, jobs[3].id, jobs[4].id}
    assert await claim(store) == []


async def test_a_job_that_meets_a_busy_gate_is_parked_and_says_why(store: Store, clock: Clock):
    first, second = a_job(gate="a"), a_job(gate="a")
    await store.enqueue([first, second])
    await claim(store)

    waiting = await read(store, second)
    assert (waiting.state, waiting.parked, waiting.label(clock.now)) == (State.PENDING, "gate", "parked")
    assert (waiting.attempt, waiting.version, waiting.snoozes) == (0, 1, 0)
    assert await store.next_due() is None


WAYS_OUT = {
    "complete": completed,
    "retry": failed,
    "die": lambda job: failed(job, ErrorClass.NON_RETRYABLE),
    "snooze": lambda job: snoozed(job, 600),
    "cancel": cancelled,
}


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_the_next_job_enters_when_the_gate_is_left(store: Store, way: str):
    jobs = [a_job(gate="a") for _ in range(3)]
    await store.enqueue(jobs)
    [inside] = await claim(store)
    await store.settle([WAYS_OUT[way](inside)])

    assert (await read(store, jobs[1])).parked is None
    assert [job.id for job in await claim(store)] == [jobs[1].id]


@pytest.mark.parametrize("verb", [Verb.KILL, Verb.FAIL])
async def test_the_next_job_enters_when_a_person_takes_the_one_inside(store: Store, verb: Verb):
    jobs = [a_job(gate="a") for _ in range(2)]
    await store.enqueue(jobs)
    [inside] = await claim(store)
    await by_hand(store, inside, verb)

    assert [job.id for job in await claim(store)] == [jobs[1].id]


async def test_the_next_job_enters_when_the_one_inside_lost_its_worker(store: Store, clock: Clock):
    jobs = [a_job(gate="a") for _ in range(2)]
    await store.enqueue(jobs)
    await claim(store)
    clock.advance(LEASE)
    await rescue(store)
    entered = await claim(store)

    assert len(entered) == 1
    assert entered[0].gate == "a"


async def test_a_job_that_left_through_the_back_door_waits_in_line_again(store: Store):
    first, second = a_job(gate="a"), a_job(gate="a")
    await store.enqueue([first, second])
    [inside] = await claim(store)
    assert inside.id == first.id
    await store.settle([handed_back(inside)])

    assert [job.id for job in await claim(store)] == [first.id]


async def test_the_line_is_ordered_by_priority_then_age(store: Store):
    inside = a_job(gate="a", priority=0)
    await store.enqueue([inside])
    [running] = await claim(store)
    normal, older, urgent = a_job(gate="a"), a_job(gate="a"), a_job(gate="a", priority=10)
    await store.enqueue([normal, older, urgent])
    await claim(store)
    await store.settle([completed(running)])

    order = []
    while entered := await claim(store):
        order.append(entered[0].id)
        await store.settle([completed(entered[0])])
    assert order == [urgent.id, normal.id, older.id]


async def test_a_job_enqueued_while_the_gate_is_busy_waits_too(store: Store):
    first, second = a_job(gate="a"), a_job(gate="a")
    await store.enqueue([first])
    [inside] = await claim(store)
    await store.enqueue([second])

    assert await claim(store) == []
    await store.settle([completed(inside)])
    assert [job.id for job in await claim(store)] == [second.id]


async def test_a_parked_job_can_be_held_and_cancelled(store: Store):
    jobs = [a_job(gate="a") for _ in range(3)]
    await store.enqueue(jobs)
    [inside] = await claim(store)
    await by_hand(store, await read(store, jobs[1]), Verb.HOLD)
    await by_hand(store, await read(store, jobs[2]), Verb.CANCEL)
    await store.settle([completed(inside)])

    assert await claim(store) == []
    assert (await read(store, jobs[1])).parked is None
    await by_hand(store, await read(store, jobs[1]), Verb.RELEASE)
    assert [job.id for job in await claim(store)] == [jobs[1].id]


async def test_unpark_puts_nothing_back_while_the_gate_is_busy(store: Store):
    await store.enqueue([a_job(gate="a"), a_job(gate="a")])
    await claim(store)

    assert await store.unpark() == 0
    assert await claim(store) == []


async def test_unpark_gets_every_waiting_job_through_in_the_end(store: Store, clock: Clock):
    """Even when the first in line is not the one that a worker here may take."""
    inside = a_job(gate="a")
    elsewhere, here = a_job(gate="a", queue="elsewhere"), a_job(gate="a", queue="here")
    await store.enqueue([inside])
    [running] = await claim(store)
    await store.enqueue([elsewhere, here])
    await claim(store)
    assert {(await read(store, job)).parked for job in (elsewhere, here)} == {"gate"}
    await store.settle([completed(running)])

    taken: list[Job] = []
    for _ in range(5):
        clock.advance(5)
        await store.unpark()
        taken += await claim(store, wanted=Wanted(1, queues=("here",)))
    assert [job.id for job in taken] == [here.id]


async def test_parking_takes_nothing_from_the_limit_of_a_claim(store: Store):
    await store.enqueue([a_job(gate="a", priority=0)])
    await claim(store)
    waiting, plain = a_job(gate="a", priority=0), a_job()
    await store.enqueue([waiting, plain])

    assert [job.id for job in await claim(store, wanted=ONE)] == [plain.id]


@pytest.mark.req("W10")
async def test_many_workers_never_put_two_jobs_of_one_gate_to_work(store: Store):
    gates = [f"gate:{number}" for number in range(5)]
    jobs = [a_job(gate=gate) for _ in range(8) for gate in gates]
    await store.enqueue(jobs)
    inside: Counter[str | None] = Counter()
    worst = 0
    done: list[Job] = []

    async def worker() -> None:
        nonlocal worst
        session = await a_session(store, lease=300.0)
        idle = 0
        while len(done) < len(jobs) and idle < 200:
            await store.next_due()
            batch = await store.claim(Wanted(limit=2), session=session)
            idle = 0 if batch else idle + 1
            for job in batch:
                inside[job.gate] += 1
                worst = max(worst, inside[job.gate])
            await asyncio.sleep(0)
            for job in batch:
                inside[job.gate] -= 1
            await store.settle([completed(job) for job in batch])
            done.extend(batch)
            if not batch:
                await store.unpark()

    await asyncio.gather(*(worker() for _ in range(6)))

    assert worst == 1
    assert sorted(job.id for job in done) == sorted(job.id for job in jobs)
