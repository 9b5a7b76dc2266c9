"""A dead job under review: what is known of it, which ones are meant, groups of like ones, and its follower."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from rota._core.actions import Audit
from rota._core.effects import continued_headers
from rota._core.failure import ErrorClass
from rota._core.job import Job, NewJob, Scope, State
from rota._core.review import ACTIONS, ENGINE, Review, ReviewChange, ReviewVerb, review

REPROCESS_OF = "rota.reprocess_of"
"""The header that names the dead job whose work a new one does again."""


class DeadLetter(NamedTuple):
    """A dead job, why it died, and where its review stands."""

    job: Job
    fingerprint: str | None
    error_type: str | None
    frame: str | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    notes: str | None
    reprocessed_as: UUID | None
    """The newest job that did, or does, its work again."""
    newer_success: UUID | None = None
    """A later job with its task and its subject or key that completed: perhaps nothing is left to do."""

    @property
    def review(self) -> Review:
        return Review(self.job.review or Review.PENDING)


class DeadFilter(NamedTuple):
    """Which dead letters are meant; every field narrows. Newest first; page on with `before`."""

    reviews: tuple[Review, ...] = ()
    group: str | None = None
    """A fingerprint."""
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    error_class: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    """Died at that moment or later."""
    until: datetime | None = None
    """Died before that moment, or then."""
    before: UUID | None = None
    limit: int = 50

    def as_json(self) -> dict[str, object]:
        """What was asked for, without paging, as a stored operation remembers it."""
        asked: dict[str, object] = {}
        for name, value in self._asdict().items():
            if name in ("before", "limit") or value in (None, ()):
                continue
            asked[name] = value.isoformat() if isinstance(value, datetime) else value
        return asked

    @classmethod
    def from_json(cls, asked: dict[str, object]) -> DeadFilter:
        """The filter that `as_json` wrote."""
        fields = dict(asked)
        for name in ("since", "until"):
            if name in fields:
                fields[name] = datetime.fromisoformat(str(fields[name]))
        reviews = fields.pop("reviews", ())
        assert isinstance(reviews, list | tuple)
        return cls(reviews=tuple(Review(one) for one in reviews), **fields)  # type: ignore[arg-type]


class Death(NamedTuple):
    """What groups are made of: the least of a dead letter that tells how and when its job died."""

    job_id: UUID
    task: str
    died: datetime
    fingerprint: str | None
    error_class: str | None
    error_type: str | None
    frame: str | None
    message: str | None


class FailureGroup(NamedTuple):
    """Dead letters that are alike. Counts stop at the store's cap."""

    fingerprint: str
    task: str
    error_class: str | None
    error_type: str | None
    frame: str | None
    message: str | None
    """Of the newest one."""
    letters: int
    first_seen: datetime
    last_seen: datetime
    last_hour: int
    hour_before: int
    example: UUID
    """The newest one."""

    @property
    def trend(self) -> str:
        """How the last hour compares with the one before: new, rising, falling, steady or quiet."""
        if self.last_hour == 0:
            return "quiet"
        if self.hour_before == 0:
            return "new" if self.last_hour == self.letters else "rising"
        if self.last_hour > self.hour_before * 1.2:
            return "rising"
        return "falling" if self.last_hour < self.hour_before * 0.8 else "steady"


def death_of(letter: DeadLetter) -> Death:
    """How and when this one died."""
    job = letter.job
    return Death(
        job.id,
        job.task,
        job.finished_at or job.updated_at,
        letter.fingerprint,
        job.error_class,
        letter.error_type,
        letter.frame,
        job.error_message,
    )


def hourly(moments: Iterable[datetime], now: datetime, hours: int) -> list[int]:
    """How many of these moments were in each of the last hours; the last number is that of the hour until now."""
    counts = [0] * hours
    for moment in moments:
        ago = int((now - moment).total_seconds() // 3600)
        if 0 <= ago < hours:
            counts[hours - 1 - ago] += 1
    return counts


def follower(
    dead: Job, job_id: UUID, *, by: str, payload_json: str | None = None, key: str | None = None
) -> NewJob:
    """The new job that does a dead one's work again: its payload (or the edited one), its terms, its correlation.

    Its idempotency key is the dead job's, unless it is given one of its own.
    A deadline may be past, so the new job has none. Outside systems know the
    work by the same effect key as before.
    """
    headers = json.loads(continued_headers(dead))
    headers[REPROCESS_OF] = str(dead.id)
    return NewJob(
        job_id,
        dead.task,
        dead.payload_json if payload_json is None else payload_json,
        queue=dead.queue,
        priority=dead.priority,
        max_attempts=dead.max_attempts,
        timeout=dead.timeout,
        tenant=dead.tenant,
        subject=dead.subject,
        external_id=dead.external_id,
        key=dead.key if key is None else key,
        unique_key=dead.unique_key,
        unique_scope=Scope(dead.unique_scope) if dead.unique_scope else Scope.STARTED,
        gate=dead.gate,
        correlation_id=dead.correlation,
        parent_id=dead.id,
        tags=dead.tags,
        created_by=by,
        category=dead.category,
        payload_version=dead.payload_version,
        headers_json=json.dumps(headers),
    )


def reprocess_of(job: Job) -> UUID | None:
    """The dead job whose work this one does again, if it does."""
    if job.headers_json is None or REPROCESS_OF not in job.headers_json:
        return None
    found = json.loads(job.headers_json).get(REPROCESS_OF)
    try:
        return UUID(found)
    except (TypeError, ValueError):
        return None


def review_audit(
    actor: str, job: Job, change: ReviewChange, verb: ReviewVerb, *, about: str | None = None
) -> Audit:
    """The audit row of a review that is no reprocessing."""
    return Audit(
        actor,
        ACTIONS[verb],
        job.id,
        change.notes,
        change.origin.value,
        change.target.value,
        about=about,
        correlation_id=job.correlation,
    )


def by_engine(job: Job, verb: ReviewVerb, why: str) -> tuple[ReviewChange, Audit]:
    """A review that no person made, and its audit row."""
    change = review(job, verb, by=ENGINE, notes=why)
    assert isinstance(change, ReviewChange)
    return change, review_audit(ENGINE, job, change, verb)


def how_it_went(new_job: UUID | None, state: State | None) -> str:
    """What became of the job that did a dead one's work again, for the notes."""
    if new_job is None or state is None:
        return f"the new job {new_job or ''}".rstrip() + " is gone"
    return f"the new job {new_job} " + {State.DEAD: "died too", State.CANCELLED: "was cancelled"}.get(
        state, "completed"
    )


def back_in_review(dead: UUID) -> str:
    """Why the review of a follower that died is closed: one piece of work has one open review."""
    return f"it did the work of {dead} again, which is back in review"


def losses_of_follower(dead: Job) -> int:
    """One that killed its process stays a suspect: the job that follows it runs alone."""
    return int(dead.error_class == ErrorClass.CRASH)
