"""Jobs as rows, fields and JSON records: the same names on every face."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rota._core.ids import public_id
from rota.cli.words import ago, span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rota._core.actions import Audit
    from rota._core.job import Job
    from rota.admin.reads import JobView
    from rota.stores.contract import Attempt

HEADERS = ("id", "state", "task", "queue", "attempt", "due", "age")


def row(job: Job, now: datetime) -> tuple[object, ...]:
    """A job as one line for scripts."""
    return (
        job.id,
        job.label(now),
        job.task,
        job.queue,
        f"{job.attempt}/{job.max_attempts}",
        job.run_at,
        job.created_at,
    )


def shown(job: Job, now: datetime) -> tuple[str, ...]:
    """The same line for people: times as seen from now."""
    identity, label, task, queue, attempt, _, _ = row(job, now)
    due = "" if job.state.terminal or job.state == "running" else ago(job.run_at, now)
    return (str(identity), str(label), str(task), str(queue), str(attempt), due, ago(job.created_at, now))


def record(job: Job, now: datetime | None = None) -> dict[str, Any]:
    """A job as JSON: every field, with payload and result as values."""
    fields = job._asdict()
    for name in ("payload_json", "result_json", "headers_json"):
        text = fields.pop(name)
        fields[name.removesuffix("_json")] = None if text is None else json.loads(text)
    first = {"id": str(job.id), "public_id": public_id(job.id), "state": job.state.value}
    if now is not None:
        first["label"] = job.label(now)
    return first | {name: _plain(value) for name, value in fields.items() if name not in ("id", "state")}


def details(view: JobView) -> dict[str, Any]:
    """A job and its history as JSON."""
    return record(view.job, view.now) | {
        "attempts": [
            {name: _plain(value) for name, value in seen._asdict().items()} for seen in view.attempts
        ],
        "audit": [{name: _plain(value) for name, value in done.told().items()} for done in view.audit],
        "children": [str(child.id) for child in view.children],
    }


def fields(view: JobView) -> tuple[list[tuple[str, object]], dict[str, str]]:
    """A job's own parts for `show`: values, and the words that a person sees in place of some of them."""
    job, now = view.job, view.now
    pairs: list[tuple[str, object]] = [
        ("id", job.id),
        ("public id", public_id(job.id)),
        ("state", view.label),
        ("task", job.task),
        ("queue", job.queue),
        ("priority", job.priority),
        ("attempt", f"{job.attempt}/{job.max_attempts}"),
        ("tenant", job.tenant),
        ("subject", job.subject),
        ("key", job.key),
        ("unique key", job.unique_key),
        ("external id", job.external_id),
        ("correlation", job.correlation),
        ("parent", job.parent_id),
        ("tags", job.tags),
        ("created by", job.created_by),
        ("category", job.category),
        ("created", job.created_at),
        ("due", None if job.state.terminal else job.run_at),
        ("started", job.claimed_at),
        ("finished", job.finished_at),
        ("ran for", None if job.duration is None else span(job.duration)),
        ("deadline", job.deadline),
        ("timeout", None if job.timeout is None else span(job.timeout)),
        ("cancel asked", job.cancel_requested_at),
        ("session", job.session_id),
        ("parked", job.parked),
        ("reason", job.reason),
        ("superseded by", job.superseded_by),
        ("error class", job.error_class),
        ("error", error_of(job, view.attempts)),
        ("review", job.review),
        ("version", job.version),
    ]
    moments = ("created", "due", "started", "finished", "deadline", "cancel asked")
    words = {
        name: f"{value:%Y-%m-%d %H:%M:%S %Z} ({ago(value, now)})"  # type: ignore[arg-type]
        for name, value in pairs
        if name in moments and value is not None
    }
    return pairs, words


def error_of(job: Job, attempts: Sequence[Attempt]) -> str | None:
    """Why it failed, with the exception's type: `'id'` alone says nothing, `KeyError: 'id'` does.

    A job keeps the message only, its attempts the type too; the newest is asked where it tells of the same failure.
    """
    newest = attempts[-1] if attempts else None
    if newest is None or newest.message != job.error_message or newest.error_type == newest.error_class:
        return job.error_message
    return f"{newest.error_type}: {newest.message}"


def attempt_row(seen: Attempt, now: datetime) -> tuple[object, ...]:
    ran = None if seen.started_at is None else span(seen.ended_at - seen.started_at)
    ended = ago(seen.ended_at, now)
    return (seen.attempt, seen.outcome, seen.error_class, seen.error_type, seen.message, ran, ended)


ATTEMPT_HEADERS = ("attempt", "outcome", "class", "type", "message", "ran for", "ended")


def audit_row(done: Audit, now: datetime) -> tuple[object, ...]:
    return (ago(done.at, now), done.actor, done.action, done.before, done.after, done.reason)


AUDIT_HEADERS = ("when", "who", "did", "from", "to", "reason")


def _plain(value: Any) -> Any:
    from uuid import UUID

    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, UUID) else value
