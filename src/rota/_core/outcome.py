"""The state machine: how an attempt ended, and what is written because of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, assert_never

from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job, State
from rota._core.retry import Retry, spread_of


class Returned(NamedTuple):
    """The handler returned; `partial` when some of its items failed."""

    result_json: str | None = None
    partial: bool = False


class Raised(NamedTuple):
    """The handler raised, or ran out of time."""

    failure: Failure


class Snoozed(NamedTuple):
    """The handler asked to be run again later."""

    delay: float
    reason: str | None = None


class Cancelled(NamedTuple):
    """The handler confirmed a cancel, or asked for one itself."""

    reason: str | None = None


class Lost(NamedTuple):
    """The worker disappeared with the job."""

    reason: str = "its worker stopped beating"


class Crashed(NamedTuple):
    """The process that ran the job died; `alone`: no other job was in it."""

    failure: Failure
    alone: bool


class HandedBack(NamedTuple):
    """The worker returns the job unrun or unfinished, through no fault of the job."""

    reason: str = "worker is shutting down"
    delay: float = 0.0


class Parked(NamedTuple):
    """The job's task is parked: it must not begin."""

    reason: str


class Expired(NamedTuple):
    """The job's deadline had passed when a worker met it."""


Outcome: TypeAlias = Returned | Raised | Snoozed | Cancelled | Lost | Crashed | HandedBack | Parked | Expired

BYSTANDER_LOSSES = 10
"""So many deaths of a process that it shared with others end a job that never killed one alone."""


class Transition(NamedTuple):
    """One write: this job, if it still has this version, becomes that. Stores apply it as it is."""

    job: Job
    to: State
    verb: str
    attempt: int | None = None
    """The attempt number to store; None leaves it."""
    run_at: datetime | None = None
    failure: Failure | None = None
    result_json: str | None = None
    reason: str | None = None
    snoozed: bool = False
    lost: bool = False
    changes: dict[str, object] | None = None
    """Fields that an operator's edit sets besides."""
    cleared: bool = False
    """Its process outlived this attempt: earlier losses count no more."""


_new = tuple.__new__
_COMPLETED = (State.COMPLETED, "complete", None, None, None, None, None, False, False, None, False)


def completed(job: Job) -> Transition:
    """What `decide` says of a handler that returned nothing, at a tenth of its price: nearly every job ends so."""
    return _new(Transition, (job, *_COMPLETED))


def decide(job: Job, outcome: Outcome, *, retry: Retry, now: datetime) -> Transition:
    """Turn the end of one attempt into the write that records it. Pure: `now` is the store's time."""
    match outcome:
        case Returned(result_json, partial):
            return Transition(
                job, State.PARTIAL if partial else State.COMPLETED, "complete", None, None, None, result_json
            )
        case Raised(failure):
            return _failed(job, failure, retry, now)
        case Lost(reason):
            if job.cancel_requested_at is not None:
                return Transition(job, State.CANCELLED, "cancel", reason=job.reason or "cancelled", lost=True)
            return _failed(job, Failure.because(ErrorClass.LOST, reason), retry, now)
        case Crashed(failure, alone):
            if job.cancel_requested_at is not None:
                return Transition(job, State.CANCELLED, "cancel", reason=job.reason or "cancelled", lost=True)
            return _crashed(job, failure, retry, now, alone=alone)
        case Snoozed(delay, reason):
            return _snoozed(job, delay, reason, retry, now)
        case HandedBack(reason, delay):
            # Not the job's fault: the attempt is given back and no snooze is counted.
            if job.cancel_requested_at is not None:
                return Transition(job, State.CANCELLED, "cancel", reason=job.reason or "cancelled")
            return Transition(
                job,
                State.PENDING,
                "hand back",
                attempt=max(job.attempt - 1, 0),
                run_at=now + timedelta(seconds=delay) if delay else now,
                reason=reason,
            )
        case Parked(reason):
            if job.cancel_requested_at is not None:
                return Transition(job, State.CANCELLED, "cancel", reason=job.reason or "cancelled")
            return Transition(
                job,
                State.PENDING,
                "park",
                attempt=max(job.attempt - 1, 0),
                reason=reason,
                changes={"parked": "task"},
            )
        case Cancelled(reason):
            return Transition(job, State.CANCELLED, "cancel", reason=reason)
        case Expired():
            message = f"its deadline ({job.deadline}) passed before it could start"
            return Transition(job, State.DEAD, "die", failure=Failure.because(ErrorClass.DEADLINE, message))
        case _:
            assert_never(outcome)


def _failed(job: Job, failure: Failure, retry: Retry, now: datetime) -> Transition:
    lost = failure.error_class in (ErrorClass.LOST, ErrorClass.CRASH)
    if not retry.allows(failure.error_class, job.attempt, job.max_attempts):
        return Transition(job, State.DEAD, "die", failure=failure, lost=lost)
    if failure.error_class is ErrorClass.LOST and job.losses == 0:
        pause = 0.0  # the first loss is nearly always a deploy or a dead machine, not the job
    else:
        pause = retry.delay(
            failure.error_class,
            job.attempt,
            spread=spread_of(job.id, job.attempt),
            retry_after=failure.retry_after,
        )
    run_at = now + timedelta(seconds=pause)
    if job.deadline is not None and run_at > job.deadline:
        return Transition(
            job,
            State.DEAD,
            "die",
            failure=failure,
            reason="its deadline comes before its next attempt",
            lost=lost,
        )
    uncounted = failure.error_class is ErrorClass.RATE_LIMITED and not retry.rate_limited_counts
    attempt = max(job.attempt - 1, 0) if uncounted else None
    cleared = job.losses > 0 and not lost
    return Transition(
        job,
        State.PENDING,
        "retry",
        attempt=attempt,
        run_at=run_at,
        failure=failure,
        lost=lost,
        cleared=cleared,
    )


def _crashed(job: Job, failure: Failure, retry: Retry, now: datetime, *, alone: bool) -> Transition:
    """Alone, the job killed its process. Among others it is a suspect: it runs alone next, and loses no attempt."""
    losses = job.losses + 1
    if alone:
        if losses < retry.max_losses:
            return _failed(job, failure, retry, now)
        reason = f"its process died {losses} times; the limit is {retry.max_losses} (Retry.max_losses)"
        return Transition(job, State.DEAD, "die", failure=failure, reason=reason, lost=True)
    if not retry.lost or losses >= BYSTANDER_LOSSES or (job.deadline is not None and now > job.deadline):
        return Transition(job, State.DEAD, "die", failure=failure, lost=True)
    attempt = max(job.attempt - 1, 0)
    return Transition(job, State.PENDING, "suspect", attempt=attempt, run_at=now, failure=failure, lost=True)


def _snoozed(job: Job, delay: float, reason: str | None, retry: Retry, now: datetime) -> Transition:
    run_at = now + timedelta(seconds=delay)
    if job.snoozes >= retry.max_snoozes:
        message = f"it asked to be run later {job.snoozes} times, which is the limit (Retry.max_snoozes)"
        return Transition(job, State.DEAD, "die", failure=Failure.because(ErrorClass.NOT_READY, message))
    if job.deadline is not None and run_at > job.deadline:
        message = f"it asked to be run at {run_at}, after its deadline ({job.deadline})"
        return Transition(job, State.DEAD, "die", failure=Failure.because(ErrorClass.DEADLINE, message))
    return Transition(
        job,
        State.PENDING,
        "snooze",
        attempt=max(job.attempt - 1, 0),
        run_at=run_at,
        reason=reason,
        snoozed=True,
        cleared=job.losses > 0,
    )
