"""Settle: "apply each transition whose version still holds; say what became of each, in order"."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from build import (
    Clock,
    a_job,
    a_running_job,
    a_session,
    already,
    applied,
    cancelled,
    claim,
    completed,
    failed,
    fenced,
    handed_back,
    partial,
    read,
    snoozed,
)
from rota._core.failure import ErrorClass
from rota._core.job import Job, State
from rota._core.outcome import Transition
from rota._core.retry import Retry
from rota.stores.contract import Answer, Store

EXACT = Retry(jitter=0)


@pytest.mark.req("W16", "D9")
async def test_a_completed_job_keeps_its_result_and_its_times(store: Store, clock: Clock):
    job = await a_running_job(store)
    began = clock.now
    clock.advance(4)

    assert await store.settle([completed(job, {"sent": 3})]) == [applied(job, State.COMPLETED)]
    ended = await read(store, job)
    assert (ended.state, ended.result, ended.version) == (State.COMPLETED, {"sent": 3}, job.version + 1)
    assert (ended.created_at, ended.claimed_at) == (began, began)
    assert (ended.finished_at, ended.updated_at) == (clock.now, clock.now)
    assert (ended.attempt, ended.session_id) == (1, job.session_id)
    assert (ended.error_class, ended.error_message, ended.reason, ended.review) == (None, None, None, None)


async def test_a_result_of_nothing_is_nothing(store: Store):
    job = await a_running_job(store)
    await store.settle([completed(job)])

    assert (await read(store, job)).result_json is None


@pytest.mark.req("V5")
async def test_a_job_with_failed_items_ends_as_partial(store: Store):
    job = await a_running_job(store)

    assert await store.settle([partial(job, {"failed": ["a"]})]) == [applied(job, State.PARTIAL)]
    ended = await read(store, job)
    assert (ended.state, ended.result) == (State.PARTIAL, {"failed": ["a"]})
    assert await store.attempts(job.id) == []


@pytest.mark.req("W17", "L18")
async def test_a_failed_attempt_is_recorded_and_the_job_comes_back(store: Store, clock: Clock):
    job = await a_running_job(store)
    began = clock.now
    clock.advance(2)

    answers = await store.settle([failed(job, message="no route", retry=EXACT, now=clock.now)])

    back = await read(store, job)
    assert answers == [applied(job, State.PENDING)]
    assert (back.state, back.version, back.attempt) == (State.PENDING, job.version + 1, 1)
    assert back.run_at == clock.now + timedelta(seconds=2)
    assert (back.session_id, back.finished_at) == (None, None)
    assert (back.error_class, back.error_message, back.updated_at) == ("retryable", "no route", clock.now)
    [attempt] = await store.attempts(job.id)
    assert (attempt.job_id, attempt.version, attempt.attempt) == (job.id, job.version, 1)
    assert (attempt.error_class, attempt.error_type, attempt.message) == (
        "retryable",
        "ValueError",
        "no route",
    )
    assert (attempt.stack, attempt.session_id) == ("Traceback: boom", job.session_id)
    assert (attempt.started_at, attempt.ended_at, attempt.outcome) == (began, clock.now, "retry")


@pytest.mark.req("W18")
@pytest.mark.parametrize("error_class", ErrorClass)
async def test_every_class_of_error_is_stored_by_its_name(store: Store, error_class: ErrorClass):
    job = await a_running_job(store)
    await store.settle([failed(job, error_class)])

    assert (await read(store, job)).error_class == error_class.value
    assert [attempt.error_class for attempt in await store.attempts(job.id)] == [error_class.value]


@pytest.mark.req("W21", "W23")
async def test_retries_wait_as_the_doc20_rules_say(store: Store, clock: Clock):
    pauses = await pauses_of(store, clock, Retry.doc20(jitter=0), ErrorClass.TRANSIENT)

    assert pauses == [2, 4, 8, 16]


@pytest.mark.req("W22")
async def test_retries_after_a_rate_limit_wait_longer(store: Store, clock: Clock):
    pauses = await pauses_of(store, clock, Retry.doc20(jitter=0), ErrorClass.RATE_LIMITED)

    assert pauses == [60, 120, 240, 300]


@pytest.mark.req("L19")
async def test_retries_wait_as_the_lipas_rules_say(store: Store, clock: Clock):
    pauses = await pauses_of(store, clock, Retry.lipas(jitter=0), ErrorClass.RETRYABLE)

    assert pauses == [1, 2]


async def pauses_of(store: Store, clock: Clock, retry: Retry, error_class: ErrorClass) -> list[float]:
    """Fail a job until it is dead; the pauses between its attempts."""
    new = a_job(max_attempts=retry.attempts)
    await store.enqueue([new])
    pauses: list[float] = []
    session = await a_session(store, lease=1e6)
    while True:
        [job] = await claim(store, session)
        await store.settle([failed(job, error_class, retry=retry, now=clock.now)])
        back = await read(store, new)
        if back.state is State.DEAD:
            return pauses
        pauses.append((back.run_at - clock.now).total_seconds())
        clock.advance(pauses[-1])


@pytest.mark.req("D14", "W20", "L2")
async def test_a_job_is_dead_after_its_last_attempt_with_all_of_them_on_record(store: Store, clock: Clock):
    new = a_job(max_attempts=4)  # Delphi's three retries
    await store.enqueue([new])
    for number in range(1, 5):
        [job] = await claim(store)
        assert job.attempt == number
        await store.settle([failed(job, message=f"try {number}", now=clock.now)])
        clock.advance(600)

    dead = await read(store, new)
    assert (dead.state, dead.attempt, dead.review) == (State.DEAD, 4, "pending_review")
    assert (dead.error_message, dead.finished_at) == ("try 4", dead.updated_at)
    assert [attempt.message for attempt in await store.attempts(new.id)] == [
        "try 1",
        "try 2",
        "try 3",
        "try 4",
    ]
    assert [attempt.attempt for attempt in await store.attempts(new.id)] == [1, 2, 3, 4]
    assert await claim(store) == []


async def test_a_success_after_failures_keeps_their_record_but_not_their_error(store: Store, clock: Clock):
    new = a_job()
    await store.enqueue([new])
    for end in (failed, completed):
        [job] = await claim(store)
        await store.settle([end(job)])
        clock.advance(10)

    ended = await read(store, new)
    assert (ended.state, ended.attempt) == (State.COMPLETED, 2)
    assert (ended.error_class, ended.error_message) == (None, None)
    assert len(await store.attempts(new.id)) == 1


async def test_a_partial_success_after_failures_keeps_their_record_but_not_their_error(
    store: Store, clock: Clock
):
    new = a_job()
    await store.enqueue([new])
    for end in (failed, partial):
        [job] = await claim(store)
        await store.settle([end(job)])
        clock.advance(10)

    ended = await read(store, new)
    assert (ended.state, ended.attempt) == (State.PARTIAL, 2)
    assert (ended.error_class, ended.error_message) == (None, None)


async def test_a_snoozed_job_gets_its_attempt_back(store: Store, clock: Clock):
    job = await a_running_job(store)

    assert await store.settle([snoozed(job, 60, "no stock")]) == [applied(job, State.PENDING)]
    back = await read(store, job)
    assert (back.attempt, back.snoozes, back.losses, back.reason) == (0, 1, 0, "no stock")
    assert back.run_at == clock.now + timedelta(seconds=60)
    assert back.label(clock.now) == "snoozed"
    assert await store.attempts(job.id) == []
    clock.advance(60)
    [again] = await claim(store)
    assert (again.attempt, again.reason) == (1, None)


async def test_a_job_handed_back_is_due_at_once_as_if_never_taken(store: Store):
    job = await a_running_job(store)
    await store.settle([handed_back(job)])

    [again] = await claim(store)
    assert (again.id, again.attempt, again.snoozes, again.version) == (job.id, 1, 0, job.version + 2)


@pytest.mark.req("D8")
async def test_a_cancelled_job_keeps_its_reason(store: Store):
    job = await a_running_job(store)

    assert await store.settle([cancelled(job, "asked by the user")]) == [applied(job, State.CANCELLED)]
    ended = await read(store, job)
    assert (ended.state, ended.reason, ended.superseded_by) == (State.CANCELLED, "asked by the user", None)
    assert await claim(store) == []


WAYS = {
    "complete": lambda job: completed(job, 1),
    "partial": partial,
    "retry": failed,
    "die": lambda job: failed(job, ErrorClass.NON_RETRYABLE),
    "snooze": snoozed,
    "hand back": handed_back,
    "cancel": cancelled,
}


@pytest.mark.scenario(6)
@pytest.mark.parametrize("way", WAYS)
async def test_a_settle_repeated_after_a_lost_answer_says_already(store: Store, way: str):
    job = await a_running_job(store)
    transition: Transition = WAYS[way](job)
    await store.settle([transition])
    before = await read(store, job)

    assert await store.settle([transition]) == [already(job, transition.to)]
    assert await read(store, job) == before
    assert len(await store.attempts(job.id)) == (transition.failure is not None)


@pytest.mark.parametrize("way", WAYS)
async def test_a_claim_settled_one_way_cannot_be_settled_another_way(store: Store, way: str):
    job = await a_running_job(store)
    await store.settle([WAYS[way](job)])
    before = await read(store, job)
    another = completed(job) if way in ("die", "retry") else failed(job, ErrorClass.NON_RETRYABLE)

    assert await store.settle([another]) == [fenced(job, before.state)]
    assert await read(store, job) == before


@pytest.mark.req("D16")
async def test_the_version_grows_by_one_with_every_move(store: Store, clock: Clock):
    new = a_job()
    await store.enqueue([new])
    versions = [(await read(store, new)).version]
    for end in (failed, snoozed, handed_back, completed):
        [job] = await claim(store)
        versions.append((await read(store, new)).version)
        await store.settle([end(job)])
        versions.append((await read(store, new)).version)
        clock.advance(600)

    assert versions == list(range(1, 10))


@pytest.mark.req("D9")
async def test_every_write_moves_the_time_of_the_last_update(store: Store, clock: Clock):
    new = a_job()
    await store.enqueue([new])
    for end in (failed, snoozed, completed):
        clock.advance(600)
        [job] = await claim(store)
        assert (await read(store, new)).updated_at == clock.now
        clock.advance(1)
        await store.settle([end(job)])
        assert (await read(store, new)).updated_at == clock.now


async def test_a_batch_is_answered_in_order_whatever_becomes_of_each(store: Store):
    jobs = [await a_running_job(store) for _ in range(6)]
    await store.settle([completed(jobs[1])])
    stranger = jobs[0]._replace(id=a_job().id)
    stale = jobs[2]._replace(version=1)

    answers = await store.settle(
        [
            completed(jobs[0]),
            completed(jobs[1]),
            completed(stale),
            failed(jobs[3]),
            completed(stranger),
            snoozed(jobs[4]),
            cancelled(jobs[5]),
        ]
    )

    assert answers == [
        applied(jobs[0], State.COMPLETED),
        already(jobs[1], State.COMPLETED),
        fenced(jobs[2], State.RUNNING),
        applied(jobs[3], State.PENDING),
        fenced(stranger, None),
        applied(jobs[4], State.PENDING),
        applied(jobs[5], State.CANCELLED),
    ]


async def test_the_same_transition_twice_in_one_batch_lands_once(store: Store):
    job = await a_running_job(store)

    answers = await store.settle([completed(job, 1), completed(job, 1)])

    assert {answer.answer for answer in answers} <= {Answer.APPLIED, Answer.ALREADY}
    assert (await read(store, job)).version == job.version + 1


async def test_nothing_to_settle_is_answered_with_nothing(store: Store):
    assert await store.settle([]) == []


@pytest.mark.parametrize("end", [State.COMPLETED, State.PARTIAL])
async def test_one_result_that_cannot_be_stored_does_not_cost_the_others_their_answer(
    store: Store, end: State
):
    good = [await a_running_job(store) for _ in range(4)]
    bad = await a_running_job(store)
    batch = [Transition(job, end, "complete", result_json=f'"{job.id}"') for job in good]
    poison = Transition(bad, end, "complete", result_json='"\\u0000"')

    answers = await store.settle([*batch[:2], poison, *batch[2:]])

    dead = await read(store, bad)
    assert [answer.state for answer in answers] == [end, end, State.DEAD, end, end]
    assert [(await read(store, job)).result for job in good] == [str(job.id) for job in good]
    assert (dead.state, dead.error_class) == (State.DEAD, "non_retryable")
    assert dead.error_message is not None
    assert dead.error_message.startswith("its result could not be stored: ")


async def test_a_reason_that_is_no_proper_text_is_stored_as_one(store: Store):
    odd, plain = await a_running_job(store), await a_running_job(store)

    answers = await store.settle([snoozed(odd, 60, "a\x00b\ud800"), snoozed(plain, 60, "fine")])

    assert [answer.answer for answer in answers] == [Answer.APPLIED] * 2
    assert [(await read(store, job)).reason for job in (odd, plain)] == ["a␀b?", "fine"]


async def test_a_large_batch_lands_as_a_whole(store: Store):
    await store.enqueue([a_job(payload={"n": number}) for number in range(500)])
    jobs: list[Job] = []
    session = await a_session(store)
    while batch := await claim(store, session):
        jobs += batch

    answers = await store.settle([completed(job, job.payload["n"]) for job in jobs])

    assert {answer.answer for answer in answers} == {Answer.APPLIED}
    ended = await store.get([job.id for job in jobs])
    assert [job.result for job in ended] == [job.payload["n"] for job in ended]
    assert len(ended) == 500


@pytest.mark.scenario(13)
async def test_two_ends_of_one_attempt_at_the_same_time_have_one_winner(store: Store):
    for _ in range(10):
        job = await a_running_job(store)
        [[one], [other]] = await asyncio.gather(
            store.settle([completed(job, "won")]), store.settle([cancelled(job, "asked")])
        )

        ended = await read(store, job)
        assert {one.answer, other.answer} == {Answer.APPLIED, Answer.FENCED}
        assert ended.state is (one if one.answer is Answer.APPLIED else other).state
        assert ended.version == job.version + 1


async def test_an_old_and_a_new_claim_of_one_job_in_one_batch_are_judged_apart(store: Store):
    old = await a_running_job(store)
    await store.settle([handed_back(old)])
    [new] = await claim(store)

    assert await store.settle([completed(old), completed(new)]) == [
        fenced(old, State.RUNNING),
        applied(new, State.COMPLETED),
    ]
