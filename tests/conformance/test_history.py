"""Find, attempts and counts: what people ask about jobs, finished ones included."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from build import (
    Clock,
    a_job,
    a_running_job,
    a_session,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    new_id,
    partial,
    read,
)
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import NewJob, State
from rota._core.vocabulary import Seed, state_for, word_for
from rota.stores.contract import Count, JobFilter, Store


async def found(store: Store, **asked) -> list:
    return [job.id for job in await store.find(JobFilter(**asked))]


async def one_in_every_state(store: Store) -> dict[State, NewJob]:
    """A job in every state that a store can bring about by itself."""
    ends = {
        State.COMPLETED: completed,
        State.PARTIAL: partial,
        State.CANCELLED: cancelled,
        State.DEAD: lambda job: failed(job, ErrorClass.NON_RETRYABLE),
    }
    jobs: dict[State, NewJob] = {}
    for state, end in ends.items():
        jobs[state] = a_job()
        await store.enqueue([jobs[state]])
        [running] = await claim(store)
        await store.settle([end(running)])
    jobs[State.RUNNING] = a_job()
    await store.enqueue([jobs[State.RUNNING]])
    await claim(store)
    jobs[State.HELD] = a_job(held=True)
    jobs[State.PENDING] = a_job(delay=60.0)
    await store.enqueue([jobs[State.HELD], jobs[State.PENDING]])
    return jobs


@pytest.mark.req("D3")
async def test_every_job_is_listed_newest_first_whatever_its_state(store: Store):
    jobs = await one_in_every_state(store)
    oldest_first = sorted(new.id for new in jobs.values())

    assert await found(store) == oldest_first[::-1]
    assert await found(store, oldest_first=True) == oldest_first


@pytest.mark.req("D8", "L2", "V5")
async def test_jobs_are_listed_by_state_and_every_state_has_its_word(store: Store):
    jobs = await one_in_every_state(store)

    for state, new in jobs.items():
        assert await found(store, states=(state,)) == [new.id]
        for seed in Seed:
            word = word_for(seed, (await read(store, new)).state)
            assert word is None or await found(store, states=(state_for(seed, word),)) != []
    both = await found(store, states=(State.DEAD, State.PENDING))
    assert both == [jobs[State.PENDING].id, jobs[State.DEAD].id]


@pytest.mark.req("D13")
async def test_jobs_are_listed_by_what_they_are_about(store: Store):
    mine = a_job(
        "report",
        queue="slow",
        tenant="acme",
        subject="conversation:12",
        external_id="old-1",
        key="k",
        tags=("red", "blue"),
    )
    await store.enqueue([a_job(), mine, a_job(subject="conversation:13", tags=("green",), tenant="umbrella")])

    for asked in (
        {"task": "report"},
        {"queue": "slow"},
        {"tenant": "acme"},
        {"subject": "conversation:12"},
        {"external_id": "old-1"},
        {"key": "k"},
        {"tag": "blue"},
        {"task": "report", "tenant": "acme", "tag": "red", "states": (State.PENDING,)},
    ):
        assert await found(store, **asked) == [mine.id]
    assert await found(store, task="report", tenant="umbrella") == []
    assert await found(store, tag="gre") == []


async def test_finished_and_dead_jobs_are_found_by_the_same_questions(store: Store):
    done = await a_running_job(store, subject="s", correlation_id="c", external_id="e", tags=("t",))
    await store.settle([completed(done)])
    dead = await a_running_job(store, subject="s", correlation_id="c", external_id="e", tags=("t",))
    await store.settle([failed(dead, ErrorClass.NON_RETRYABLE)])

    for asked in ({"subject": "s"}, {"correlation_id": "c"}, {"external_id": "e"}, {"tag": "t"}):
        assert await found(store, **asked) == [dead.id, done.id]


@pytest.mark.req("L11")
async def test_all_jobs_of_one_correlation_are_found_in_the_order_they_were_made(store: Store, clock: Clock):
    first = a_job(correlation_id="user-action-123")
    await store.enqueue([first])
    clock.advance(1)
    second = a_job("webhook", correlation_id="user-action-123", parent_id=first.id)
    await store.enqueue([second, a_job(correlation_id="another"), a_job()])

    assert await found(store, correlation_id="user-action-123", oldest_first=True) == [first.id, second.id]


@pytest.mark.req("L11")
async def test_a_job_that_was_given_no_correlation_starts_one_of_its_own(store: Store):
    first = a_job()
    await store.enqueue([first])
    job = await read(store, first)
    child = a_job("webhook", correlation_id=job.correlation, parent_id=first.id)
    await store.enqueue([child, a_job()])

    assert await found(store, correlation_id=job.correlation, oldest_first=True) == [first.id, child.id]


@pytest.mark.req("L13")
async def test_children_are_found_by_their_parent(store: Store):
    parent = a_job()
    children = [a_job("webhook", parent_id=parent.id, correlation_id="c") for _ in range(2)]
    await store.enqueue([parent, *children, a_job(parent_id=new_id())])

    assert await found(store, parent_id=parent.id, oldest_first=True) == [child.id for child in children]
    assert await found(store, parent_id=parent.id, correlation_id="c") == [children[1].id, children[0].id]


async def test_what_a_session_holds_is_listed(store: Store):
    await store.enqueue([a_job(), a_job(), a_job()])
    one, other = await a_session(store), await a_session(store)
    await claim(store, one)
    await store.enqueue([a_job()])
    [theirs] = await claim(store, other)

    assert len(await found(store, session_id=one, states=(State.RUNNING,))) == 3
    assert await found(store, session_id=other) == [theirs.id]
    assert await found(store, session_id=new_id()) == []


async def test_a_long_list_is_read_in_pages_in_both_directions(store: Store):
    jobs = [a_job() for _ in range(7)]
    await store.enqueue(jobs)
    ids = [job.id for job in jobs]

    pages: list[list] = []
    while page := await found(store, limit=3, before=pages[-1][-1] if pages else None):
        pages.append(page)
    assert pages == [ids[6:3:-1], ids[3:0:-1], ids[0:1]]
    assert await found(store, limit=3, oldest_first=True) == ids[:3]
    assert await found(store, limit=3, oldest_first=True, before=ids[2]) == ids[3:6]


async def test_attempts_are_told_oldest_first_and_only_of_their_job(store: Store, clock: Clock):
    await a_running_job(store)
    job = await a_running_job(store)
    for number in range(3):
        await store.settle([failed(job, message=str(number))])
        clock.advance(600)
        [job] = [again for again in await claim(store) if again.id == job.id]

    attempts = await store.attempts(job.id)
    assert [attempt.message for attempt in attempts] == ["0", "1", "2"]
    assert [attempt.version for attempt in attempts] == sorted(attempt.version for attempt in attempts)
    assert await store.attempts(new_id()) == []
    for limit, told in ((1, ["2"]), (2, ["1", "2"]), (3, ["0", "1", "2"]), (9, ["0", "1", "2"])):
        assert [attempt.message for attempt in await store.attempts(job.id, limit=limit)] == told


async def test_long_messages_and_stacks_are_kept_whole_up_to_their_limits(store: Store):
    job = await a_running_job(store)
    transition = failed(job, message="ä" * 2047)
    assert transition.failure is not None
    await store.settle([transition._replace(failure=transition.failure._replace(stack="☃" * 16_384))])

    [attempt] = await store.attempts(job.id)
    assert (attempt.message, attempt.stack) == ("ä" * 2047, "☃" * 16_384)
    assert (await read(store, job)).error_message == "ä" * 2047


@pytest.mark.req("L27", "V24")
async def test_unfinished_and_dead_jobs_are_counted_by_queue_task_and_state(store: Store, clock: Clock):
    await store.enqueue([a_job(queue="fast", delay=60.0), a_job(queue="fast", delay=30.0)])
    await store.enqueue([a_job("report", held=True)])
    done = await a_running_job(store)
    await store.settle([completed(done)])
    dead = await a_running_job(store, "report")
    await store.settle([failed(dead, ErrorClass.NON_RETRYABLE)])
    await a_running_job(store, "report")

    assert sorted(await store.counts()) == sorted(
        [
            Count("default", "report", State.DEAD, 1, None),
            Count("default", "report", State.HELD, 1, None),
            Count("default", "report", State.RUNNING, 1, None),
            Count("fast", "email", State.PENDING, 2, clock.now + timedelta(seconds=30)),
        ]
    )


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"n": 2**53, "big": 12345678901234567890, "small": -1},
        {"f": 0.1, "g": 1e-7, "h": 123456.789},
        {"text": "ä ☃ 😀 \\ \" ' % { } \n\t"},
        {"nested": [{"a": [1, [2, [None, True, False]]]}]},
        {"": "empty name", "ключ": 1},
    ],
    ids=["empty", "integers", "floats", "text", "nested", "names"],
)
async def test_a_payload_and_a_result_come_back_as_they_went_in(store: Store, payload: dict):
    job = await a_running_job(store, payload=payload)
    await store.settle([completed(job, payload)])

    ended = await read(store, job)
    assert job.payload == ended.payload == ended.result == payload
    assert json.loads(ended.payload_json) == payload


async def test_what_people_write_is_stored_as_they_wrote_it(store: Store):
    odd = 'Zoë\'s 50% {braces} \\ "quotes" 😀'
    new = a_job(odd, queue=odd, tenant=odd, subject=odd, key=odd, tags=(odd, "a,b", "{c}"), created_by=odd)
    await store.enqueue([new])
    await by_hand(store, await read(store, new), Verb.HOLD, reason=odd, actor=odd)

    job = await read(store, new)
    assert (job.task, job.queue, job.tenant, job.subject, job.key) == (odd,) * 5
    assert (job.tags, job.created_by, job.reason) == ((odd, "a,b", "{c}"), odd, odd)
    assert [(row.actor, row.reason) for row in await store.audit(new.id)] == [(odd, odd)]
    assert await found(store, tag="a,b") == [new.id]
