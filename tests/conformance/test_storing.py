"""Enqueue: "store each job durably, or say which job stands for it already; answers in order"."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from build import (
    LEASE,
    Clock,
    a_job,
    a_running_job,
    a_session,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    fenced,
    new_id,
    partial,
    read,
    rescue,
)
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.vocabulary import worker_for_delphi
from rota.stores.contract import Enqueued, JobFilter, Store, Stored, Wanted


@pytest.mark.req("L1", "D24", "D13")
async def test_a_job_is_stored_with_everything_it_was_given(store: Store, clock: Clock):
    parent = new_id()
    new = a_job(
        "webhook",
        {"site": 7, "names": ["ä", "☃"], "deep": {"rate": 0.25, "none": None}},
        queue="fast",
        priority=42,
        max_attempts=3,
        timeout=3600.0,
        tenant="acme",
        subject="conversation:12",
        external_id="old-77",
        correlation_id="user-action-123",
        parent_id=parent,
        tags=("red", "blue"),
        created_by="admin-ui",
        category="sync",
        payload_version="1.0",
        headers_json='{"trace": "abc"}',
    )

    assert await store.enqueue([new]) == [Enqueued(new.id, Stored.CREATED)]
    job = await read(store, new)
    assert (job.id, job.task, job.queue, job.priority, job.max_attempts) == (new.id, "webhook", "fast", 42, 3)
    assert job.payload == {"site": 7, "names": ["ä", "☃"], "deep": {"rate": 0.25, "none": None}}
    assert (job.timeout, job.tenant, job.subject, job.external_id) == (
        3600.0,
        "acme",
        "conversation:12",
        "old-77",
    )
    assert (job.correlation_id, job.parent_id, job.tags) == ("user-action-123", parent, ("red", "blue"))
    assert (job.created_by, job.category, job.payload_version) == ("admin-ui", "sync", "1.0")
    assert job.headers_json is not None
    assert job.headers_json.replace(" ", "") == '{"trace":"abc"}'
    assert job.created_at == job.updated_at == job.run_at == clock.now


@pytest.mark.req("L1", "W20", "D8")
async def test_a_job_that_was_given_nothing_has_the_defaults(store: Store):
    new = a_job("anything")
    await store.enqueue([new])

    job = await read(store, new)
    assert (job.state, job.version, job.attempt, job.max_attempts) == (State.PENDING, 1, 0, 5)
    assert (job.queue, job.priority, job.payload, job.tags) == ("default", 100, {}, ())
    assert (job.claimed_at, job.finished_at, job.session_id, job.deadline) == (None, None, None, None)
    assert (job.tenant, job.parked, job.error_class, job.reason, job.result) == (None, None, None, None, None)


@pytest.mark.req("V1", "D1")
async def test_one_enqueue_makes_exactly_one_job_known_by_its_id_alone(store: Store):
    new = a_job()
    await store.enqueue([new])

    assert [job.id for job in await store.find(JobFilter())] == [new.id]


@pytest.mark.req("D15")
async def test_the_longest_time_a_job_may_take_goes_with_it_to_its_worker(store: Store):
    pca, pipeline, open_end = a_job("PCA", timeout=3600.0), a_job("FULL_PIPELINE", timeout=7200.0), a_job()
    await store.enqueue([pca, pipeline, open_end])

    limits = {job.id: job.timeout for job in await claim(store)}

    assert limits == {pca.id: 3600.0, pipeline.id: 7200.0, open_end.id: None}


@pytest.mark.req("D10")
async def test_a_job_names_its_worker_and_before_that_a_placeholder(store: Store):
    new = a_job()
    await store.enqueue([new])
    assert worker_for_delphi((await read(store, new)).session_id) == "none"
    session = await a_session(store)
    await claim(store, session)

    assert worker_for_delphi((await read(store, new)).session_id) == str(session)


@pytest.mark.req("D2")
async def test_a_job_is_found_by_its_id_as_soon_as_it_is_stored(store: Store):
    stored = [a_job() for _ in range(3)]
    await store.enqueue(stored)

    found = await store.get([stored[2].id, new_id(), stored[0].id, stored[0].id])

    assert {job.id for job in found} == {stored[0].id, stored[2].id}
    assert len(found) == 2
    assert await store.get([]) == []


@pytest.mark.req("D11")
async def test_any_task_can_be_stored_without_changing_the_store(store: Store):
    tasks = ["PCA", "UMAP", "REPORT", "FULL_PIPELINE", "not thought of yet", "später:ü"]
    await store.enqueue([a_job(task) for task in tasks])

    assert {job.task for job in await store.find(JobFilter())} == set(tasks)


async def test_answers_come_in_the_order_of_the_jobs(store: Store):
    first, second = a_job(key="a"), a_job(key="b")
    await store.enqueue([second])
    batch = [a_job(), a_job(key="b"), first, a_job(key="a"), a_job()]

    answers = await store.enqueue(batch)

    assert answers == [
        Enqueued(batch[0].id, Stored.CREATED),
        Enqueued(second.id, Stored.DUPLICATE),
        Enqueued(first.id, Stored.CREATED),
        Enqueued(first.id, Stored.DUPLICATE),
        Enqueued(batch[4].id, Stored.CREATED),
    ]


async def test_an_empty_enqueue_is_answered_with_nothing(store: Store):
    assert await store.enqueue([]) == []


@pytest.mark.req("L10")
async def test_a_delayed_job_is_due_when_the_stores_clock_says_so(store: Store, clock: Clock):
    delayed = a_job(delay=60.0)
    dated = a_job(run_at=clock.now + timedelta(seconds=90))
    await store.enqueue([delayed, dated])

    assert await claim(store) == []
    assert await store.next_due() == 60.0
    clock.advance(60)
    assert [job.id for job in await claim(store)] == [delayed.id]
    assert await store.next_due() == 30.0
    clock.advance(29.999)
    assert await claim(store) == []
    clock.advance(0.001)
    assert [job.id for job in await claim(store)] == [dated.id]
    assert await store.next_due() is None


@pytest.mark.scenario(8)
async def test_every_moment_is_taken_from_the_stores_clock_at_full_precision(store: Store, clock: Clock):
    clock.advance(0.123457)
    new = a_job(delay=0.000001, deadline_in=3600.0)
    await store.enqueue([new])

    job = await read(store, new)
    assert await store.now() == clock.now
    assert job.created_at == clock.now
    assert job.run_at == clock.now + timedelta(microseconds=1)
    assert job.deadline == clock.now + timedelta(hours=1)
    clock.advance(0.000001)
    assert [due.id for due in await claim(store)] == [new.id]


async def test_a_job_dated_in_the_past_is_due_at_once(store: Store, clock: Clock):
    await store.enqueue([a_job(run_at=clock.now - timedelta(days=400))])

    assert await store.next_due() == 0.0
    assert len(await claim(store)) == 1


async def test_a_job_stored_as_held_waits_for_a_person(store: Store):
    new = a_job(held=True)
    await store.enqueue([new])

    assert (await read(store, new)).state is State.HELD
    assert await store.next_due() is None
    assert await claim(store) == []


async def test_the_next_due_moment_is_told_for_the_asked_queues(store: Store):
    await store.enqueue([a_job(queue="fast", delay=10.0), a_job(queue="slow", delay=5.0)])

    assert await store.next_due() == 5.0
    assert await store.next_due(("fast",)) == 10.0
    assert await store.next_due(("fast", "slow")) == 5.0
    assert await store.next_due(("elsewhere",)) is None


ENDS = {
    "completed": completed,
    "partial": partial,
    "cancelled": cancelled,
    "dead": lambda job: failed(job, ErrorClass.NON_RETRYABLE),
}


@pytest.mark.scenario(6)
@pytest.mark.parametrize("end", ENDS)
async def test_an_enqueue_repeated_after_its_job_ended_changes_nothing(store: Store, end: str):
    new = a_job()
    await store.enqueue([new])
    [job] = await claim(store)
    await store.settle([ENDS[end](job)])
    before = await read(store, new)

    assert await store.enqueue([new]) == [Enqueued(new.id, Stored.CREATED)]
    assert await store.get([new.id]) == [before]
    assert await claim(store) == []


@pytest.mark.scenario(6)
@pytest.mark.parametrize("keys", [{}, {"key": "a"}, {"unique_key": "a"}, {"gate": "a"}], ids=str)
async def test_an_enqueue_repeated_while_its_job_waits_or_runs_changes_nothing(
    store: Store, keys: dict[str, str]
):
    new = a_job(payload={"n": 1}, **keys)
    first = await store.enqueue([new])
    waiting = await read(store, new)
    assert await store.enqueue([new]) == first
    assert await read(store, new) == waiting
    await claim(store)
    running = await read(store, new)

    assert await store.enqueue([new, new]) == first * 2
    assert await store.get([new.id]) == [running]


@pytest.mark.parametrize("keys", [{}, {"unique_key": "a"}, {"key": "a"}], ids=str)
async def test_a_job_that_was_deleted_does_not_come_back_by_a_repeat_and_let_an_old_claim_in(
    store: Store, clock: Clock, keys: dict[str, str]
):
    """Its versions would begin anew, and the frozen worker's version would hold again."""
    new = a_job(**keys)
    await store.enqueue([new])
    [frozen] = await claim(store)
    clock.advance(LEASE + 1)
    await rescue(store)
    await by_hand(store, await read(store, new), Verb.DELETE)

    await store.enqueue([new])
    await store.enqueue([new, *[a_job() for _ in range(300)]])  # by another way
    assert await store.get([new.id]) == []
    assert new.id not in {job.id for job in await claim(store, wanted=Wanted(500))}
    assert await store.settle([completed(frozen)]) == [fenced(frozen, None)]


@pytest.mark.scenario(6)
async def test_many_jobs_travel_together_and_may_be_sent_again(store: Store):
    batch = [a_job(payload={"n": number}) for number in range(1000)]
    created = [Enqueued(new.id, Stored.CREATED) for new in batch]
    assert await store.enqueue(batch) == created
    taken = await claim(store)
    await store.settle([completed(job) for job in taken])

    assert await store.enqueue(batch) == created
    everything = await store.find(JobFilter(limit=5000))
    assert sorted(job.id for job in everything) == [new.id for new in batch]
    assert {job.id for job in everything if job.state is State.COMPLETED} == {job.id for job in taken}


async def test_concurrent_single_enqueues_are_all_stored(store: Store):
    batch = [a_job(payload={"n": number}) for number in range(200)]

    answers = await asyncio.gather(*(store.enqueue([new]) for new in batch))

    assert answers == [[Enqueued(new.id, Stored.CREATED)] for new in batch]
    assert len(await store.find(JobFilter(limit=500))) == 200


@pytest.mark.req("D3")
async def test_a_job_that_ended_stays_readable_as_it_was(store: Store, clock: Clock):
    job = await a_running_job(store, payload={"n": 1}, subject="conversation:12")
    clock.advance(5)
    await store.settle([completed(job, {"answer": 42})])
    clock.advance(6 * 86_400)

    kept = await read(store, job)
    assert (kept.state, kept.payload, kept.result) == (State.COMPLETED, {"n": 1}, {"answer": 42})
    assert kept.subject == "conversation:12"
    assert kept.duration == timedelta(seconds=5)
