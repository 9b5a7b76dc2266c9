"""Applying transitions: the fence, the new state, and what it sets free."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from rota._core.failure import ErrorClass, Failure, storable
from rota._core.job import Job, Scope, State
from rota._core.outcome import Transition
from rota._core.payload import problem
from rota.stores.contract import Answer, Attempt, Settled
from rota.stores.memory.book import Book
from rota.stores.memory.claiming import let_next_in
from rota.stores.memory.dead_letters import buried
from rota.stores.memory.enqueueing import retake

REVIEW_OPENS = "pending_review"
REVIEW_CLOSED = frozenset({"acknowledged", "resolved", "discarded"})


def settle(book: Book, transition: Transition, now: datetime) -> Settled:
    """Apply one transition if its version still holds."""
    wanted = transition.job
    job = book.jobs.get(wanted.id)
    if job is None:
        return Settled(wanted.id, Answer.FENCED, None)
    if job.version == wanted.version and not job.state.terminal:
        return Settled(job.id, Answer.APPLIED, apply(book, _storable(transition), now).state)
    answer = Answer.ALREADY if repeats(book, transition, job) else Answer.FENCED
    return Settled(job.id, answer, job.state)


def repeats(book: Book, transition: Transition, job: Job) -> bool:
    """Whether the job's latest move was this very transition: same claim, same end, same failure.

    A rescue is not the owner's word, so an owner that wakes up later hears
    that it was fenced: the rescue left another failure than the owner's.
    """
    claim = transition.job.version
    noted = next((row.error_class for row in book.attempts.get(job.id, ()) if row.version == claim), None)
    failure = None if transition.failure is None else transition.failure.error_class.value
    superseded = transition.to is State.PENDING and job.superseded_by is not None
    ended_so = job.state is transition.to or superseded
    return job.version == claim + 1 and noted == failure and ended_so


def _storable(transition: Transition) -> Transition:
    """A result that no store could keep must not cost the others their answers: its job is dead with the reason."""
    trouble = None if transition.result_json is None else problem(transition.result_json)
    if trouble is None:
        return transition
    failure = Failure.because(ErrorClass.NON_RETRYABLE, f"its result could not be stored: {trouble}")
    return Transition(transition.job, State.DEAD, "die", failure=failure)


def apply(book: Book, transition: Transition, now: datetime) -> Job:
    """Write the new state whatever it is; the caller has looked at the version."""
    before = book.jobs[transition.job.id]
    after = _moved(before, transition, now)
    if (
        after.state is State.PENDING
        and before.state is State.RUNNING
        and before.unique_scope == Scope.STARTED
    ):
        # It gave its unique key up when it started, and must win it again to wait.
        newer = retake(book, after, now)
        if newer is not None:
            after = _superseded(before, after, newer, now)
    if transition.failure is not None:
        book.attempts.setdefault(before.id, []).append(_attempt(before, after, transition, now))
    if after.review in REVIEW_CLOSED:
        book.reviewed_at.setdefault(after.id, now)
    else:
        book.reviewed_at.pop(after.id, None)
    book.put(after)
    if after.state is State.DEAD:
        buried(book, after)
    else:
        book.letters.pop(after.id, None)
    book.hint_work(after)
    leave_gate(book, before, now)
    return after


def leave_gate(book: Book, before: Job, now: datetime) -> None:
    """Let the next job through the gate that this one held, if it held one."""
    if before.state is State.RUNNING and before.gate is not None:
        let_next_in(book, before.gate, now)


def _moved(job: Job, transition: Transition, now: datetime) -> Job:
    """The job after its move; each target keeps what is still true of it and drops the rest."""
    failure = transition.failure
    reason = None if transition.reason is None else storable(transition.reason)
    moved = job._replace(
        state=transition.to,
        version=job.version + 1,
        updated_at=now,
        parked=None,
        losses=0 if transition.cleared else job.losses + transition.lost,
        error_class=job.error_class if failure is None else failure.error_class.value,
        error_message=job.error_message if failure is None else failure.message,
        reason=reason,
    )
    match transition.to:
        case State.COMPLETED | State.PARTIAL:
            moved = _ended(moved, now)._replace(
                result_json=transition.result_json, error_class=None, error_message=None
            )
        case State.CANCELLED:
            # A worker that confirms a cancel need not repeat why somebody asked for it.
            moved = _ended(moved, now)._replace(reason=reason or job.reason)
        case State.DEAD:
            moved = _ended(moved, now)._replace(review=REVIEW_OPENS)
        case _:
            moved = _waiting(_revived(moved) if job.state.terminal else moved, transition)
    changes: dict[str, Any] = transition.changes or {}
    return moved._replace(**changes)


def _ended(job: Job, now: datetime) -> Job:
    return job._replace(finished_at=now, cancel_requested_at=None)


def _waiting(job: Job, transition: Transition) -> Job:
    """Back on the list. A cancel that was asked for stays asked for: the next owner hears of it."""
    return job._replace(
        attempt=job.attempt if transition.attempt is None else transition.attempt,
        snoozes=job.snoozes + transition.snoozed,
        run_at=transition.run_at or job.run_at,
        session_id=None,
    )


def _revived(job: Job) -> Job:
    """As good as new, but for its history and its last error. A deadline that may be past is dropped."""
    # One that killed its process stays a suspect: it runs alone again.
    return job._replace(
        snoozes=0,
        losses=int(job.error_class == ErrorClass.CRASH),
        claimed_at=None,
        finished_at=None,
        deadline=None,
        superseded_by=None,
        result_json=None,
        review=None,
    )


def _superseded(before: Job, after: Job, newer: UUID, now: datetime) -> Job:
    return _ended(after, now)._replace(
        state=State.CANCELLED,
        attempt=before.attempt,
        snoozes=before.snoozes,
        run_at=before.run_at,
        session_id=before.session_id,
        reason="superseded",
        superseded_by=newer,
    )


def _attempt(job: Job, after: Job, transition: Transition, now: datetime) -> Attempt:
    failure = transition.failure
    assert failure is not None
    return Attempt(
        job_id=job.id,
        version=job.version,
        attempt=job.attempt,
        outcome=transition.verb if after.superseded_by is None else "supersede",
        error_class=failure.error_class.value,
        error_type=failure.type,
        message=failure.message,
        stack=failure.stack,
        session_id=job.session_id,
        started_at=job.claimed_at,
        ended_at=now,
    )
