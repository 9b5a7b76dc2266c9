"""Dead letters, groups, operations and audit rows as rows, fields and JSON records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota._core.operation import JobsWanted, OperationState
from rota._core.redaction import for_people, redacted_text
from rota.cli import records
from rota.cli.words import ago, as_json, many

if TYPE_CHECKING:
    from datetime import datetime

    from rota._core.actions import Audit
    from rota._core.dead_letter import DeadLetter, FailureGroup
    from rota._core.operation import Operation
    from rota.admin.dead_letters import GroupView, LetterView

HEADERS = ("id", "review", "task", "group", "error", "died", "note")
GROUP_HEADERS = ("group", "letters", "trend", "task", "error", "where", "first", "last", "example")
OPERATION_HEADERS = ("id", "state", "what", "by", "done", "refused", "changed", "of", "last step")
AUDIT_HEADERS = ("when", "who", "did", "job", "from", "to", "reason", "about")
MESSAGE = 100
REFUSED = "their review, an unknown task, or a unique key that is taken"
QUIET_AFTER = 60.0
"""Seconds after which an operation that runs and does not move is said to be left behind."""


def row(letter: DeadLetter) -> tuple[object, ...]:
    """A dead letter as one line for scripts."""
    job = letter.job
    return (
        job.id,
        letter.review.value,
        job.task,
        letter.fingerprint,
        f"{letter.error_type or job.error_class}: {job.error_message or ''}"[:MESSAGE],
        job.finished_at,
        _note(letter),
    )


def shown(letter: DeadLetter, now: datetime) -> tuple[str, ...]:
    """The same line for people."""
    fields = [str(value or "") for value in row(letter)]
    fields[5] = ago(letter.job.finished_at, now)
    return tuple(fields)


def record(letter: DeadLetter, now: datetime) -> dict[str, Any]:
    """A dead letter as JSON: its job, and what is known besides."""
    fields = letter._asdict()
    del fields["job"]
    return records.record(letter.job, now) | {name: _plain(value) for name, value in fields.items()}


def revealed(letter: DeadLetter, *, reveal: bool) -> DeadLetter:
    """As it may be shown: without what looks like a secret, unless asked for."""
    return letter if reveal else letter._replace(job=for_people(letter.job))


def details(view: LetterView) -> dict[str, Any]:
    """A dead letter and its history as JSON."""
    return record(view.letter, view.now) | {
        "attempts": [_values(seen._asdict()) for seen in view.attempts],
        "audit": [audit_record(done) for done in view.audit],
        "new_job": None if view.new_job is None else records.record(view.new_job, view.now),
    }


def fields(view: LetterView) -> tuple[list[tuple[str, object]], dict[str, str]]:
    """A dead letter's own parts for `show`."""
    letter, job, now = view.letter, view.letter.job, view.now
    new = view.new_job
    pairs: list[tuple[str, object]] = [
        ("id", job.id),
        ("review", letter.review.value),
        ("reviewed by", letter.reviewed_by),
        ("reviewed", letter.reviewed_at),
        ("notes", letter.notes),
        ("task", job.task),
        ("queue", job.queue),
        ("tenant", job.tenant),
        ("subject", job.subject),
        ("key", job.key),
        ("correlation", job.correlation),
        ("category", job.category),
        ("payload version", job.payload_version),
        ("group", letter.fingerprint),
        ("where", letter.frame),
        ("error class", job.error_class),
        ("error type", letter.error_type),
        ("error", job.error_message),
        ("attempts", job.attempt),
        ("created", job.created_at),
        ("died", job.finished_at),
        ("reprocessed as", letter.reprocessed_as),
        ("new job is", None if new is None else new.label(now)),
        ("newer success", letter.newer_success),
        ("version", job.version),
    ]
    told = {
        name: f"{value:%Y-%m-%d %H:%M:%S %Z} ({ago(value, now)})"  # type: ignore[arg-type]
        for name, value in pairs
        if name in ("reviewed", "created", "died") and value is not None
    }
    return pairs, told


def group_row(group: FailureGroup) -> tuple[object, ...]:
    return (
        group.fingerprint,
        group.letters,
        group.trend,
        group.task,
        f"{group.error_type or group.error_class}: {group.message or ''}"[:MESSAGE],
        group.frame,
        group.first_seen,
        group.last_seen,
        group.example,
    )


def group_shown(group: FailureGroup, now: datetime) -> tuple[str, ...]:
    fields = [str(value or "") for value in group_row(group)]
    fields[2] = f"{group.trend} ({group.last_hour:,} in the last hour, {group.hour_before:,} before)"
    fields[6], fields[7] = ago(group.first_seen, now), ago(group.last_seen, now)
    return tuple(fields)


def group_record(group: FailureGroup) -> dict[str, Any]:
    return _values(group._asdict()) | {"trend": group.trend}


def group_details(view: GroupView) -> dict[str, Any]:
    return group_record(view.group) | {
        "stack": view.stack,
        "newest": [record(revealed(letter, reveal=False), view.now) for letter in view.letters],
    }


def operation_row(operation: Operation) -> tuple[object, ...]:
    from rota.admin.operations import words

    progress = operation.progress
    return (
        operation.id,
        operation.state.value,
        words(operation),
        operation.actor,
        progress.done,
        progress.refused,
        progress.changed,
        operation.total,
        operation.updated_at,
    )


def operation_shown(operation: Operation, now: datetime) -> tuple[str, ...]:
    fields = [str(value) for value in operation_row(operation)]
    fields[-2], fields[-1] = operation.of_how_many, ago(operation.updated_at, now)
    if left_behind(operation, now):
        fields[1] = "running (left behind?)"
    return tuple(fields)


def operation_record(operation: Operation) -> dict[str, Any]:
    values = operation._asdict()
    values["reason"] = None if operation.reason is None else redacted_text(operation.reason)
    progress = values.pop("progress")
    values["cursor"] = progress.cursor
    values["wanted"] = operation.wanted.as_json()
    del values["driver"]
    return _values(values) | {"done": progress.done, "refused": progress.refused, "changed": progress.changed}


def left_behind(operation: Operation, now: datetime) -> bool:
    """Whether an operation says that it runs, and nobody seems to drive it."""
    patience = QUIET_AFTER if operation.rate is None else QUIET_AFTER + 1 / operation.rate
    return (
        operation.state is OperationState.RUNNING
        and operation.updated_at is not None
        and (now - operation.updated_at).total_seconds() > patience
    )


def ended(operation: Operation) -> str:
    """How an operation stands, in one sentence."""
    progress = operation.progress
    done = many(progress.done, operation.noun)
    parts = [f"{operation.verb.value}: {done} of {operation.of_how_many} done"]
    if progress.refused:
        why = "their state" if isinstance(operation.wanted, JobsWanted) else REFUSED
        parts.append(f"{progress.refused:,} refused ({why})")
    if progress.changed:
        parts.append(f"{progress.changed:,} changed by somebody else meanwhile and left alone")
    return "; ".join(parts) + "."


def audit_row(done: Audit) -> tuple[object, ...]:
    return done.at, done.actor, done.action, done.job_id, done.before, done.after, done.reason, done.about


def audit_shown(done: Audit, now: datetime) -> tuple[str, ...]:
    fields = [str(value or "") for value in audit_row(done)]
    fields[0] = ago(done.at, now)
    return tuple(fields)


def audit_record(done: Audit) -> dict[str, Any]:
    return _values(done.told())


def payload(letter: DeadLetter) -> str:
    return as_json(letter.job.payload)


def _note(letter: DeadLetter) -> str | None:
    if letter.newer_success is not None:
        return f"superseded: {letter.newer_success} succeeded later"
    return letter.notes


def _values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    from uuid import UUID

    return str(value) if isinstance(value, UUID) else value
