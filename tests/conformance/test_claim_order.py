"""Claim: "give up to `limit` due jobs to a session, by priority, then by age"."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from build import ANY, ONE, Clock, a_job, a_session, claim, completed, new_id, read
from rota._core import priority
from rota._core.job import Job, State
from rota.stores.contract import JobFilter, Store, Wanted


@pytest.mark.req("D26", "L17")
async def test_a_claim_gives_the_whole_new_record_to_one_owner(store: Store, clock: Clock):
    new = a_job(
        payload={"to": "a@b.c"}, subject="s", tenant="acme", correlation_id="c", timeout=5.0, tags=("x",)
    )
    await store.enqueue([new])
    before = await read(store, new)
    clock.advance(7)
    session = await a_session(store)

    [job] = await claim(store, session)

    assert (job.id, job.state, job.version, job.attempt) == (new.id, State.RUNNING, before.version + 1, 1)
    assert (job.session_id, job.claimed_at, job.updated_at) == (session, clock.now, clock.now)
    assert (job.created_at, job.run_at) == (before.created_at, before.run_at)
    assert (job.payload, job.subject, job.tenant, job.tags) == ({"to": "a@b.c"}, "s", "acme", ("x",))
    assert (job.correlation, job.timeout, job.max_attempts, job.task) == ("c", 5.0, 5, "email")
    assert await read(store, new) == job


@pytest.mark.req("W12", "L9")
async def test_jobs_are_claimed_by_priority_then_by_age(store: Store, clock: Clock):
    moment = clock.now
    late = a_job(priority=10, run_at=moment)
    early = a_job(priority=10, run_at=moment - timedelta(hours=1))
    low = a_job(priority=200, run_at=moment - timedelta(days=1))
    normal = a_job(run_at=moment - timedelta(minutes=1))
    urgent = a_job(priority=0)
    future = a_job(priority=0, run_at=moment + timedelta(seconds=1))
    await store.enqueue([late, early, low, normal, urgent, future])
    session = await a_session(store)

    order = [(await claim(store, session, ONE))[0].id for _ in range(5)]

    assert order == [urgent.id, early.id, late.id, normal.id, low.id]
    assert await claim(store, session) == []


async def test_one_claim_answers_in_the_same_order(store: Store):
    jobs = [a_job(priority=rank) for rank in (30, 10, 20, 10)]
    await store.enqueue(jobs)

    claimed = await claim(store)

    assert [job.id for job in claimed] == [jobs[1].id, jobs[3].id, jobs[2].id, jobs[0].id]


@pytest.mark.scenario(8)
async def test_jobs_of_the_same_moment_are_all_claimable_and_taken_by_id(store: Store):
    jobs = [a_job() for _ in range(20)]
    await store.enqueue(jobs[::-1])
    session = await a_session(store)

    taken = [(await claim(store, session, Wanted(limit=3))) for _ in range(7)]

    assert [id_ for part in taken for id_ in sorted(job.id for job in part)] == [job.id for job in jobs]


@pytest.mark.req("D12", "W37")
async def test_the_most_urgent_of_every_system_goes_first(store: Store):
    delphi = a_job(priority=priority.from_delphi(80))
    doc20 = a_job(priority=priority.from_doc20(1))
    critical = a_job(priority=priority.from_doc20(0))
    low = a_job(priority=priority.from_delphi(0))
    normal = a_job(priority=priority.from_doc20(2))
    await store.enqueue([low, normal, doc20, delphi, critical])

    assert [job.id for job in await claim(store)] == [critical.id, delphi.id, doc20.id, normal.id, low.id]


@pytest.mark.scenario(2)
async def test_a_claim_never_answers_with_more_than_its_limit(store: Store):
    await store.enqueue([a_job(queue=f"q{number % 4}", priority=number % 3) for number in range(60)])
    session = await a_session(store)

    sizes = []
    while jobs := await claim(store, session, Wanted(limit=7)):
        sizes.append(len(jobs))

    assert max(sizes) <= 7
    assert sum(sizes) == 60


async def test_a_claim_of_nothing_takes_nothing(store: Store):
    await store.enqueue([a_job()])

    assert await store.claim(Wanted(limit=0), session=await a_session(store)) == []
    assert len(await claim(store)) == 1


@pytest.mark.req("L6", "L7")
async def test_a_lane_takes_only_from_its_queues(store: Store):
    fast, slow, other = a_job(queue="fast"), a_job("analysis", queue="slow"), a_job(queue="other")
    await store.enqueue([slow, other, fast])

    assert [job.id for job in await claim(store, wanted=Wanted(10, queues=("fast",)))] == [fast.id]
    assert await claim(store, wanted=Wanted(10, queues=("fast",))) == []
    general = await claim(store, wanted=Wanted(10))
    assert {job.id for job in general} == {slow.id, other.id}


@pytest.mark.req("L6")
async def test_slow_work_does_not_block_the_fast_lane(store: Store):
    await store.enqueue([a_job("analysis", queue="slow", priority=0) for _ in range(30)])
    general = await claim(store, wanted=Wanted(5))
    assert len(general) == 5
    urgent = a_job(queue="fast")
    await store.enqueue([urgent])

    assert [job.id for job in await claim(store, wanted=Wanted(3, queues=("fast",)))] == [urgent.id]


async def test_a_claim_may_name_tasks(store: Store):
    wanted, unknown = a_job("email"), a_job("unknown here", priority=0)
    await store.enqueue([unknown, wanted])

    assert [job.id for job in await claim(store, wanted=Wanted(10, tasks=("email", "webhook")))] == [
        wanted.id
    ]
    assert await claim(store, wanted=Wanted(10, tasks=())) == []
    left = await read(store, unknown)
    assert (left.state, left.attempt) == (State.PENDING, 0)


@pytest.mark.req("W13")
async def test_a_claim_may_be_restricted_to_one_tenant(store: Store):
    acme, nobody, umbrella = a_job(tenant="acme"), a_job(), a_job(tenant="umbrella")
    await store.enqueue([nobody, umbrella, acme])

    assert [job.id for job in await claim(store, wanted=Wanted(10, tenant="acme"))] == [acme.id]
    assert {job.id for job in await claim(store)} == {nobody.id, umbrella.id}


@pytest.mark.req("D27")
async def test_losing_the_race_for_a_job_is_an_empty_answer(store: Store):
    await store.enqueue([a_job()])
    first, second = await a_session(store), await a_session(store)
    await store.next_due()

    answers = await asyncio.gather(
        *(store.claim(ANY, session=session) for session in (first, second) for _ in range(5))
    )

    assert sorted(len(answer) for answer in answers) == [0] * 9 + [1]


async def test_a_session_nobody_opened_gets_nothing(store: Store):
    await store.enqueue([a_job()])

    assert await claim(store, new_id()) == []
    assert len(await claim(store)) == 1


@pytest.mark.req("D16")
async def test_an_old_version_cannot_be_claimed_twice(store: Store):
    new = a_job()
    await store.enqueue([new])
    [job] = await claim(store)

    assert await claim(store) == []
    assert (await read(store, new)).version == job.version == 2


async def test_settling_and_claiming_can_be_one_step(store: Store):
    first, second = a_job(), a_job()
    await store.enqueue([first, second])
    session = await a_session(store)
    [job] = await claim(store, session, ONE)
    assert job.id == first.id

    settled, claimed = await store.exchange([completed(job, "done")], ONE, session=session)

    assert [answer.state for answer in settled] == [State.COMPLETED]
    assert [later.id for later in claimed] == [second.id]
    assert (await read(store, first)).result == "done"
    assert (await read(store, second)).session_id == session


@pytest.mark.scenario(1)
@pytest.mark.req("D28", "W11", "L17")
async def test_fifty_workers_on_several_loops_share_a_thousand_jobs_without_a_duplicate(store: Store):
    jobs = [a_job(payload={"n": number}, priority=number % 3) for number in range(1000)]
    await store.enqueue(jobs)

    async def worker() -> list[Job]:
        session = await a_session(store, lease=300.0)
        taken: list[Job] = []
        idle = 0
        while idle < 2:
            await store.next_due()
            batch = await store.claim(Wanted(limit=5), session=session)
            idle = 0 if batch else idle + 1
            answers = await store.settle([completed(job) for job in batch])
            assert all(answer.state is State.COMPLETED for answer in answers)
            taken += batch
        return taken

    async def ten_workers() -> list[Job]:
        try:
            return [job for taken in await asyncio.gather(*(worker() for _ in range(10))) for job in taken]
        finally:
            await store.close()

    loops = await asyncio.gather(*(asyncio.to_thread(asyncio.run, ten_workers()) for _ in range(5)))

    starts = Counter(job.id for taken in loops for job in taken)
    assert set(starts.values()) == {1}
    assert set(starts) == {job.id for job in jobs}
    done = await store.find(JobFilter(states=(State.COMPLETED,), limit=2000))
    assert len(done) == 1000
    assert {(job.attempt, job.version) for job in done} == {(1, 3)}
