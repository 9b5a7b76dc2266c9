"""Jobs as HTTP shows them: the same names as everywhere, with what is sensitive hidden."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rota._core.explanation import Explanation
from rota._core.ids import parse_id, public_id
from rota._core.job import Job, State
from rota._core.job_filter import LISTED as LISTED  # noqa: PLC0414 - what lists leave out, for pages too
from rota._core.job_filter import LeftOut
from rota._core.job_log import LogTail
from rota._core.redaction import for_people, redacted_text
from rota._core.trace_link import trace_id, trace_link
from rota.stores.contract import Attempt
from rota.web.asking import Asked


def _id(given: object) -> UUID:
    return given if isinstance(given, UUID) else parse_id(str(given))


JobId = Annotated[
    UUID,
    BeforeValidator(_id),
    WithJsonSchema({"type": "string", "description": "A UUID, or the id as people read it aloud (Base32)."}),
]


class Sent(BaseModel):
    """What callers send: nothing more than what is known, and no number that JSON has no word for.

    Each value is of its own type: `"dry_run": "no"` is a mistake, and must not be guessed at.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class JobShown(BaseModel):
    """One job."""

    id: UUID
    public_id: str = Field(
        description="The id as people read it aloud: Crockford Base32 with a check symbol."
    )
    url: str
    state: State
    label: str = Field(
        description="The state in the words people use: scheduled, retrying, snoozed, parked, …"
    )
    task: str
    queue: str
    priority: int = Field(description="Lower runs first; 100 is normal.")
    payload: dict[str, Any] | None = Field(
        description="Its arguments; what is sensitive is hidden. Null in a list if it is large: the job itself has it."
    )
    payload_bytes: int | None = Field(None, description="The size of a payload that the list leaves out.")
    result: Any = None
    result_bytes: int | None = Field(None, description="The size of a result that the list leaves out.")
    attempt: int
    max_attempts: int
    snoozes: int
    losses: int
    version: int = Field(description="Grows with every change; actions may name the one they expect.")
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    claimed_at: datetime | None = None
    finished_at: datetime | None = None
    deadline: datetime | None = None
    timeout: float | None = None
    cancel_requested_at: datetime | None = None
    session_id: UUID | None = None
    tenant: str | None = None
    subject: str | None = None
    external_id: str | None = None
    key: str | None = None
    unique_key: str | None = None
    correlation_id: str
    parent_id: UUID | None = None
    tags: tuple[str, ...] = ()
    created_by: str | None = None
    category: str | None = None
    payload_version: str | None = None
    parked: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    reason: str | None = None
    superseded_by: UUID | None = None
    review: str | None = Field(None, description="Of a dead job: where its review stands.")
    trace_id: str | None = Field(None, description="The trace in which it was enqueued (OpenTelemetry).")
    trace_url: str | None = Field(None, description="Where that trace is to be seen, if the setting says it.")


def shown(asked: Asked, job: Job, now: datetime, *, reveal: bool = False, listed: bool = False) -> JobShown:
    """A job as everybody may see it who looks after jobs; with `reveal`, as it is stored.

    `listed` among others, it leaves out what is large.
    """
    payload_bytes = _left_out(job.payload_json) if listed else None
    result_bytes = _left_out(job.result_json) if listed else None
    if payload_bytes is not None:
        job = job._replace(payload_json="{}")
    if result_bytes is not None:
        job = job._replace(result_json=None)
    seen = job if reveal else for_people(job)
    fields = {name: value for name, value in seen._asdict().items() if name in JobShown.model_fields}
    return JobShown(
        **fields
        | {
            "public_id": public_id(job.id),
            "url": asked.url("jobs.show", job_id=str(job.id)),
            "label": job.label(now),
            "payload": seen.payload if payload_bytes is None else None,
            "payload_bytes": payload_bytes,
            "result": seen.result,
            "result_bytes": result_bytes,
            "correlation_id": job.correlation,
            "trace_id": trace_id(job.headers_json),
            "trace_url": trace_link(asked.desk.trace_url, job.headers_json),
        }
    )


def _left_out(text: str | None) -> int | None:
    """How large a stored text is, if it is too large for a list."""
    if isinstance(text, LeftOut):
        return text.size
    return len(text.encode()) if text is not None and len(text) > LISTED else None


class AttemptShown(BaseModel):
    """One attempt that did not succeed."""

    model_config = ConfigDict(from_attributes=True)

    attempt: int
    version: int = Field(description="The job's version at the claim.")
    outcome: str
    error_class: str
    error_type: str
    message: str
    stack: str | None
    session_id: UUID | None
    started_at: datetime | None
    ended_at: datetime


def attempt_shown(attempt: Attempt) -> AttemptShown:
    stack = None if attempt.stack is None else redacted_text(attempt.stack)
    return AttemptShown.model_validate(attempt._replace(message=redacted_text(attempt.message), stack=stack))


class LineShown(BaseModel):
    """One line of a log."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime
    level: str
    message: str


class LogShown(BaseModel):
    """The newest lines of one attempt."""

    attempt: int
    version: int
    lines: list[LineShown]
    written: int = Field(description="Lines that the attempt logged in all.")
    location: str | None = Field(description="Where the whole log is, if anywhere.")


def log_shown(tail: LogTail) -> LogShown:
    lines = [LineShown.model_validate(line) for line in tail.lines]
    return LogShown(
        attempt=tail.attempt, version=tail.version, lines=lines, written=tail.written, location=tail.location
    )


class Branch(BaseModel):
    """A job in its family: enough to draw it."""

    id: UUID
    public_id: str
    url: str
    task: str
    state: State
    created_at: datetime


class Tree(BaseModel):
    """Where a job comes from, and what it enqueued."""

    job: Branch
    ancestors: list[Branch] = Field(
        description="Its parent first, then its parent's, as far as they are kept."
    )
    children: list[Branch] = Field(description="The oldest first.")
    more_children: bool


def branch(asked: Asked, job: Job) -> Branch:
    return Branch(
        id=job.id,
        public_id=public_id(job.id),
        url=asked.url("jobs.show", job_id=str(job.id)),
        task=job.task,
        state=job.state,
        created_at=job.created_at,
    )


class ObstacleShown(BaseModel):
    """One thing that keeps a job from running."""

    model_config = ConfigDict(from_attributes=True)

    cause: str
    why: str
    fix: str
    command: str | None


class Explained(BaseModel):
    """Why a job is not running, or that it is."""

    cause: str = Field(description="One word that scripts may rely on.")
    why: str
    fix: str
    command: str | None
    also: list[ObstacleShown]


def explanation_shown(found: Explanation) -> Explained:
    """In words without the secrets that an error may have quoted."""
    return Explained(
        cause=found.cause.value,
        why=redacted_text(found.why),
        fix=found.fix,
        command=found.command,
        also=[ObstacleShown.model_validate(one._replace(why=redacted_text(one.why))) for one in found.also],
    )
