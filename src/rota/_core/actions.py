"""What people may do to a job by hand: each action is decided here, as a value, and applied by the store."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from rota._core.failure import ErrorClass, Failure, storable
from rota._core.job import TERMINAL, UNSTARTED, Job, State
from rota._core.origin import origin
from rota._core.outcome import Raised, Transition, decide
from rota._core.redaction import redacted_text
from rota._core.retry import Retry
from rota._core.review import Review

GRACE = 25.0
"""Seconds that a worker has to confirm a cancel that is forced."""


class Verb(StrEnum):
    """The operators' verbs, the same in Python, CLI, HTTP and audit."""

    RETRY = "retry"
    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    FAIL = "fail"  # fail the running attempt; retried as its policy says
    KILL = "kill"  # move to the dead at once
    DELETE = "delete"


class Audit(NamedTuple):
    """Who did what to which job, and why. Stored with the action itself, or not at all."""

    actor: str
    action: str
    job_id: UUID | None
    reason: str | None = None
    before: str | None = None
    after: str | None = None
    at: datetime | None = None
    about: str | None = None
    """What it was done to if not to a job: `schedule:nightly`; or the operation that did it."""
    correlation_id: str | None = None
    """The correlation of the job, so that one search finds all that happened to a piece of work."""
    place: int | None = None
    """Where it stands in the audit, as `AuditFilter.before` means it; told by a search."""
    origin: str | None = None
    """The address and the request that it came from; None: it was done on a machine of ours."""

    def told(self) -> dict[str, Any]:
        """What it says, for people: all but its place."""
        return {name: value for name, value in self._asdict().items() if name != "place"}


def kept(audit: Audit) -> Audit:
    """An audit row as stores keep it: texts that fit, without the secrets that somebody put into them."""

    def fit(text: str | None) -> str | None:
        return None if text is None else storable(redacted_text(text))

    return audit._replace(
        actor=storable(audit.actor),
        reason=fit(audit.reason),
        before=fit(audit.before),
        after=fit(audit.after),
        origin=audit.origin or origin(),
    )


class AuditFilter(NamedTuple):
    """Which audit rows are meant; every field narrows. Newest first."""

    actor: str | None = None
    action: str | None = None
    job_id: UUID | None = None
    about: str | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 50
    before: int | None = None
    """Only what stands before this place: the last row of the page before."""


class CancelRequest(NamedTuple):
    """Ask a running job's worker to stop it; the worker confirms."""

    job: Job
    reason: str | None = None


class Removal(NamedTuple):
    """Remove a job and its history."""

    job: Job


Change = Transition | CancelRequest | Removal


class Refusal(NamedTuple):
    """Why an action cannot be taken, and what could be done instead."""

    state: State
    verb: Verb
    hint: str


def act(
    job: Job, verb: Verb, *, retry: Retry, now: datetime, reason: str | None = None, force: bool = False
) -> Change | Refusal:
    """Decide what `verb` does to `job` as it is. Pure; the store applies it if the version still holds."""
    match verb:
        case Verb.RETRY:
            if job.review == Review.REPROCESSING:
                return Refusal(job.state, verb, _REPROCESSED)
            if job.review == Review.RESOLVED:
                return Refusal(
                    job.state, verb, "Its work was done by another job; enqueue its task for another run."
                )
            if job.state in (State.DEAD, State.CANCELLED):
                return Transition(job, State.PENDING, "retry", attempt=0, run_at=now, reason=reason)
            if job.state is State.PENDING:
                return Transition(job, State.PENDING, "edit", run_at=now, reason=reason)
            return Refusal(
                job.state, verb, _RETRY_HINT.get(job.state, "Enqueue its task again for another run.")
            )
        case Verb.CANCEL:
            if job.state in UNSTARTED or (job.state is State.RUNNING and force):
                return Transition(job, State.CANCELLED, "cancel", reason=reason)
            if job.state is State.RUNNING:
                return CancelRequest(job, reason)
            return Refusal(job.state, verb, "It has ended; there is nothing to stop.")
        case Verb.HOLD:
            if job.state is State.PENDING:
                return Transition(job, State.HELD, "hold", reason=reason)
            return Refusal(job.state, verb, "Only a pending job can be held; cancel a running one instead.")
        case Verb.RELEASE:
            if job.state is State.HELD:
                return Transition(job, State.PENDING, "release", reason=reason)
            return Refusal(job.state, verb, "Only a held job can be released.")
        case Verb.FAIL:
            if job.state is State.RUNNING:
                failure = Failure.because(ErrorClass.OPERATOR, reason or "failed by hand")
                return decide(job, Raised(failure), retry=retry, now=now)._replace(verb="fail")
            return Refusal(
                job.state,
                verb,
                "Only a running job can be failed; use kill to move a waiting one to the dead.",
            )
        case Verb.KILL:
            if job.state in TERMINAL:
                return Refusal(job.state, verb, "It has ended already.")
            failure = Failure.because(ErrorClass.OPERATOR, reason or "killed by hand")
            return Transition(job, State.DEAD, "kill", failure=failure, reason=reason)
        case Verb.DELETE:
            if job.state is State.RUNNING:
                return Refusal(job.state, verb, "Cancel it first, then delete it.")
            if job.review == Review.REPROCESSING:
                return Refusal(job.state, verb, _REPROCESSED)
            return Removal(job)


_RETRY_HINT = {
    State.RUNNING: "It is running now; wait for it, or cancel it first.",
    State.HELD: "Release it instead.",
    State.BLOCKED: "It waits for other jobs.",
}
_REPROCESSED = "A new job does its work now (`rota dlq show` names it); wait for its end, or cancel that job."
