"""Change: "apply an operator's change if the version still holds, and record it in the audit: both or neither"."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from build import (
    Clock,
    a_job,
    a_running_job,
    already,
    applied,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    fenced,
    new_id,
    partial,
    read,
    snoozed,
)
from rota._core.actions import Audit, CancelRequest, Removal, Verb
from rota._core.failure import ErrorClass
from rota._core.job import Job, State
from rota._core.outcome import Transition
from rota.stores.contract import Answer, Store


async def a_dead_job(store: Store, **options) -> Job:
    job = await a_running_job(store, **options)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    return await read(store, job)


async def a_waiting_job(store: Store, **options) -> Job:
    new = a_job(**options)
    await store.enqueue([new])
    return await read(store, new)


async def test_a_pending_job_is_held_and_released(store: Store, clock: Clock):
    job = await a_waiting_job(store)
    clock.advance(1)
    assert await by_hand(store, job, Verb.HOLD, reason="wait for Bob") == applied(job, State.HELD)
    held = await read(store, job)
    assert (held.state, held.reason, held.version, held.updated_at) == (
        State.HELD,
        "wait for Bob",
        2,
        clock.now,
    )
    assert await claim(store) == []

    assert await by_hand(store, held, Verb.RELEASE) == applied(job, State.PENDING)
    assert [again.id for again in await claim(store)] == [job.id]


@pytest.mark.req("D8")
@pytest.mark.parametrize("held", [False, True])
async def test_a_job_is_cancelled_before_it_starts(store: Store, clock: Clock, held: bool):
    job = await a_waiting_job(store, held=held)
    clock.advance(1)

    assert await by_hand(store, job, Verb.CANCEL, reason="typo") == applied(job, State.CANCELLED)
    ended = await read(store, job)
    assert (ended.state, ended.reason, ended.finished_at) == (State.CANCELLED, "typo", clock.now)
    assert (ended.attempt, ended.version) == (0, 2)
    assert await claim(store) == []


async def test_a_running_job_is_asked_to_stop_without_a_new_version(store: Store, clock: Clock):
    job = await a_running_job(store)
    clock.advance(1)

    assert await by_hand(store, job, Verb.CANCEL, reason="wrong") == applied(job, State.RUNNING)
    asked = await read(store, job)
    assert (asked.state, asked.version, asked.reason) == (State.RUNNING, job.version, "wrong")
    assert (asked.cancel_requested_at, asked.label(clock.now)) == (clock.now, "cancelling")


async def test_a_second_request_to_stop_keeps_the_moment_of_the_first(store: Store, clock: Clock):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL, reason="first")
    first = await read(store, job)
    clock.advance(5)
    await by_hand(store, first, Verb.CANCEL)

    again = await read(store, job)
    assert (again.cancel_requested_at, again.reason) == (first.cancel_requested_at, "first")


@pytest.mark.scenario(13)
async def test_a_worker_confirms_the_stop_and_the_reason_stays(store: Store):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL, reason="wrong address")

    assert await store.settle([cancelled(job)]) == [applied(job, State.CANCELLED)]
    ended = await read(store, job)
    assert (ended.state, ended.reason, ended.cancel_requested_at) == (State.CANCELLED, "wrong address", None)


@pytest.mark.scenario(13)
@pytest.mark.parametrize("end", [completed, partial])
async def test_a_job_that_succeeds_although_it_was_asked_to_stop_has_succeeded(store: Store, end):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL, reason="wrong")
    success = end(job, 1)

    assert await store.settle([success]) == [applied(job, success.to)]
    ended = await read(store, job)
    assert (ended.state, ended.reason, ended.cancel_requested_at) == (success.to, None, None)


@pytest.mark.scenario(13)
async def test_a_job_that_has_ended_is_not_asked_to_stop(store: Store):
    job = await a_running_job(store)
    await store.settle([completed(job)])

    settled = await store.change(CancelRequest(job, "late"), Audit("ada", "cancel", job.id))

    assert settled == fenced(job, State.COMPLETED)
    assert await store.audit(job.id) == []


@pytest.mark.scenario(13)
@pytest.mark.parametrize("end", [failed, snoozed], ids=["retry", "snooze"])
async def test_a_stop_that_was_asked_for_is_not_forgotten_when_the_job_comes_back(
    store: Store, clock: Clock, end
):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL, reason="wrong")
    await store.settle([end(job)])
    clock.advance(600)
    [again] = await claim(store)
    assert again.session_id is not None
    assert again.cancel_requested_at is not None, "the worker that gets it next must know at once"

    beat = await store.beat(again.session_id, lease=15, holding={again.id: again.version})

    assert beat.cancel == (job.id,)


async def test_a_beat_names_no_cancel_of_a_job_that_it_does_not_hold(store: Store):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL)
    assert job.session_id is not None

    beat = await store.beat(job.session_id, lease=15, holding={})

    assert beat.cancel == ()


@pytest.mark.scenario(13)
async def test_a_stop_and_a_success_at_the_same_time_leave_one_end(store: Store):
    for _ in range(10):
        job = await a_running_job(store)
        forced = Transition(job, State.CANCELLED, "cancel", reason="stop")
        [[success], stop] = await asyncio.gather(
            store.settle([completed(job)]), store.change(forced, Audit("ada", "cancel", job.id))
        )

        ended = await read(store, job)
        assert {success.answer, stop.answer} == {Answer.APPLIED, Answer.FENCED}
        assert ended.state is (State.COMPLETED if success.answer is Answer.APPLIED else State.CANCELLED)
        assert len(await store.audit(job.id)) == (stop.answer is Answer.APPLIED)


@pytest.mark.parametrize("end", [State.DEAD, State.CANCELLED])
async def test_an_ended_job_runs_again_from_its_first_attempt_with_its_history(
    store: Store, clock: Clock, end: State
):
    job = await a_running_job(store, max_attempts=1, payload={"n": 1}, deadline_in=9000.0)
    await store.settle([failed(job, now=clock.now) if end is State.DEAD else cancelled(job, "oops")])
    ended = await read(store, job)
    assert ended.state is end
    clock.advance(100)

    assert await by_hand(store, ended, Verb.RETRY, reason="fixed") == applied(job, State.PENDING)
    back = await read(store, job)
    assert (back.state, back.attempt, back.version) == (State.PENDING, 0, ended.version + 1)
    assert (back.run_at, back.created_at, back.updated_at) == (clock.now, job.created_at, clock.now)
    assert (back.finished_at, back.claimed_at, back.session_id, back.review) == (None, None, None, None)
    assert (back.reason, back.payload, back.snoozes, back.losses) == ("fixed", {"n": 1}, 0, 0)
    assert len(await store.attempts(job.id)) == (end is State.DEAD)
    [again] = await claim(store)
    assert (again.id, again.attempt) == (job.id, 1)


async def test_a_retried_job_that_fails_again_has_both_failures_on_record(store: Store):
    dead = await a_dead_job(store, max_attempts=1)
    await by_hand(store, dead, Verb.RETRY)
    [again] = await claim(store)
    await store.settle([failed(again, message="once more")])

    assert [attempt.message for attempt in await store.attempts(dead.id)] == ["boom", "once more"]
    after = await read(store, dead)
    assert (after.state, after.review) == (State.DEAD, "pending_review")


async def test_a_retry_of_a_waiting_job_runs_it_now(store: Store, clock: Clock):
    job = await a_waiting_job(store, delay=3600.0)

    assert await by_hand(store, job, Verb.RETRY) == applied(job, State.PENDING)
    assert (await read(store, job)).run_at == clock.now
    assert [again.id for again in await claim(store)] == [job.id]


async def test_two_retries_of_one_dead_job_at_once_run_it_once(store: Store):
    dead = await a_dead_job(store)

    answers = await asyncio.gather(*(by_hand(store, dead, Verb.RETRY, actor=name) for name in ("ada", "bob")))

    assert sorted(answer.answer for answer in answers) == [Answer.APPLIED, Answer.FENCED]
    assert len(await store.audit(dead.id)) == 1
    assert len(await claim(store)) == 1


async def test_a_running_attempt_failed_by_hand_is_tried_again(store: Store, clock: Clock):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.FAIL, reason="hangs")

    back = await read(store, job)
    assert (back.state, back.error_class, back.error_message) == (State.PENDING, "operator", "hangs")
    assert clock.now < back.run_at <= clock.now + timedelta(seconds=2.4)
    [attempt] = await store.attempts(job.id)
    assert (attempt.outcome, attempt.version, attempt.message) == ("fail", job.version, "hangs")


@pytest.mark.parametrize("held", [False, True])
async def test_a_waiting_job_is_killed_by_hand(store: Store, held: bool):
    job = await a_waiting_job(store, held=held)

    assert await by_hand(store, job, Verb.KILL, reason="poison") == applied(job, State.DEAD)
    dead = await read(store, job)
    assert (dead.state, dead.error_class, dead.error_message) == (State.DEAD, "operator", "poison")
    assert dead.review == "pending_review"


@pytest.mark.parametrize("end", [None, State.COMPLETED, State.CANCELLED, State.DEAD])
async def test_a_deleted_job_is_gone_with_its_history_but_not_from_the_audit(store: Store, end: State | None):
    job = await a_waiting_job(store) if end is None else await a_dead_job(store)
    if end in (State.COMPLETED, State.CANCELLED):
        job = await a_running_job(store)
        await store.settle([completed(job) if end is State.COMPLETED else cancelled(job)])
        job = await read(store, job)

    assert await by_hand(store, job, Verb.DELETE) == applied(job, None)
    assert await store.get([job.id]) == []
    assert await store.attempts(job.id) == []
    assert [row.action for row in await store.audit(job.id)] == ["delete"]
    assert await claim(store) == []


async def test_a_running_job_is_not_deleted_under_its_workers_hands(store: Store):
    job = await a_running_job(store)

    assert await store.change(Removal(job), Audit("ada", "delete", job.id)) == fenced(job, State.RUNNING)
    assert await store.settle([completed(job)]) == [applied(job, State.COMPLETED)]
    assert await store.audit(job.id) == []


CHANGES = {
    "transition": lambda job: Transition(job, State.CANCELLED, "cancel"),
    "revival": lambda job: Transition(job._replace(state=State.DEAD), State.PENDING, "retry", attempt=0),
    "cancel request": lambda job: CancelRequest(job._replace(state=State.RUNNING)),
    "removal": Removal,
}


@pytest.mark.req("D16")
@pytest.mark.parametrize("kind", CHANGES)
async def test_a_change_of_an_older_version_is_refused_without_an_audit_row(store: Store, kind: str):
    job = await a_waiting_job(store)
    await by_hand(store, job, Verb.HOLD)
    held = await read(store, job)
    before = await store.audit()

    answer = await store.change(CHANGES[kind](job), Audit("bob", "late", job.id))

    assert answer == fenced(job, State.HELD)
    assert await read(store, job) == held
    assert await store.audit() == before


@pytest.mark.parametrize("verb", [Verb.HOLD, Verb.CANCEL, Verb.KILL])
async def test_a_change_repeated_after_a_lost_answer_is_neither_made_nor_audited_twice(
    store: Store, verb: Verb
):
    job = await a_waiting_job(store)
    await by_hand(store, job, verb)
    before = await read(store, job)

    again = await by_hand(store, job, verb)

    assert again == already(job, before.state)
    assert await read(store, job) == before
    assert len(await store.audit(job.id)) == 1


@pytest.mark.parametrize("kind", CHANGES)
async def test_a_change_of_a_job_that_is_gone_is_refused(store: Store, kind: str):
    ghost = (await a_waiting_job(store))._replace(id=new_id())

    assert await store.change(CHANGES[kind](ghost), Audit("bob", "late", ghost.id)) == fenced(ghost, None)
    assert await store.audit() == []


async def test_an_edit_sets_what_it_names_and_nothing_else(store: Store):
    job = await a_waiting_job(store, payload={"n": 1}, queue="slow", delay=60.0)
    edit = Transition(job, State.PENDING, "edit", changes={"priority": 5, "queue": "fast"})

    assert await store.change(edit, Audit("ada", "edit", job.id)) == applied(job, State.PENDING)
    after = await read(store, job)
    assert (after.priority, after.queue, after.version) == (5, "fast", 2)
    assert (after.payload, after.run_at, after.attempt) == ({"n": 1}, job.run_at, 0)


async def test_the_audit_tells_who_did_what_when_and_why_newest_first(store: Store, clock: Clock):
    job, other = await a_waiting_job(store), await a_waiting_job(store)
    held_at = clock.now
    await by_hand(store, job, Verb.HOLD, actor="ada", reason="wait")
    clock.advance(5)
    await by_hand(store, other, Verb.CANCEL, actor="bob")
    clock.advance(5)
    await store.change(
        Transition(await read(store, job), State.PENDING, "release"),
        Audit("bob", "release", job.id, None, "held", "pending"),
    )

    trail = await store.audit()
    assert [(row.actor, row.action, row.job_id) for row in trail] == [
        ("bob", "release", job.id),
        ("bob", "cancel", other.id),
        ("ada", "hold", job.id),
    ]
    assert trail[0] == Audit("bob", "release", job.id, None, "held", "pending", clock.now)
    assert (trail[2].reason, trail[2].before, trail[2].at) == ("wait", "pending", held_at)
    assert await store.audit(job.id) == [trail[0], trail[2]]
    assert await store.audit(limit=1) == trail[:1]
    assert await store.audit(new_id()) == []


async def test_the_audit_of_a_job_that_was_superseded_tells_what_became_of_it(store: Store):
    job = await a_running_job(store, unique_key="site:7")
    await store.enqueue([a_job(unique_key="site:7")])
    failing = failed(job)

    await store.change(failing, Audit("ada", "fail", job.id, None, "running", failing.to.value))

    [row] = await store.audit(job.id)
    assert (row.before, row.after) == ("running", "cancelled")
