"""New jobs as the JSON that enqueue.sql and rota.enqueue_jobs() read, and as the values of enqueue_one.sql."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rota._core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob, OnDuplicate, Scope
from rota.stores.postgres.rows import texts

# Optional fields that travel as they are when they are set.
TEXTS = (
    "tenant",
    "subject",
    "external_id",
    "gate",
    "correlation_id",
    "created_by",
    "category",
    "payload_version",
)
_quote = json.dumps


def as_json(jobs: Sequence[NewJob]) -> str:
    """One JSON array; only what differs from the defaults is written."""
    return "[" + ",".join(map(_object, jobs)) + "]"


def _object(job: NewJob) -> str:
    parts = [f'"id":"{job.id}","task":{_quote(job.task)},"payload":{job.payload_json}']
    if job.queue != DEFAULT_QUEUE:
        parts.append(f'"queue":{_quote(job.queue)}')
    if job.priority != DEFAULT_PRIORITY:
        parts.append(f'"priority":{job.priority}')
    if job.max_attempts != 5:
        parts.append(f'"max_attempts":{job.max_attempts}')
    if job.delay:
        parts.append(f'"delay":{job.delay}')
    if job.run_at is not None:
        parts.append(f'"run_at":"{job.run_at.isoformat()}"')
    if job.deadline_in is not None:
        parts.append(f'"deadline_in":{job.deadline_in}')
    if job.timeout is not None:
        parts.append(f'"timeout":{job.timeout}')
    for name in TEXTS:
        value = getattr(job, name)
        if value is not None:
            parts.append(f'"{name}":{_quote(value)}')
    if job.parent_id is not None:
        parts.append(f'"parent_id":"{job.parent_id}"')
    if job.tags:
        parts.append(f'"tags":{_quote(job.tags)}')
    if job.headers_json is not None:
        parts.append(f'"headers":{job.headers_json}')
    if job.held:
        parts.append('"held":true')
    if job.keyed:
        parts += _keys(job)
    return "{" + ",".join(parts) + "}"


def _keys(job: NewJob) -> list[str]:
    parts = []
    if job.key is not None:
        parts.append(f'"key":{_quote(job.key)},"key_window":{job.key_window}')
    if job.unique_key is not None:
        parts.append(
            f'"unique_key":{_quote(job.unique_key)},"unique_scope":"{Scope(job.unique_scope).value}"'
        )
        parts.append(f'"on_duplicate":"{OnDuplicate(job.on_duplicate).value}"')
        if job.unique_window is not None:
            parts.append(f'"unique_window":{job.unique_window}')
    return parts


def as_values(job: NewJob) -> dict[str, object]:
    """One plain job as the values of enqueue_one.sql."""
    return {
        "id": job.id,
        "task": job.task,
        "payload": job.payload_json,
        "queue": job.queue,
        "priority": job.priority,
        "max_attempts": job.max_attempts,
        "delay": job.delay,
        "run_at": job.run_at,
        "deadline_in": job.deadline_in,
        "timeout": job.timeout,
        "tenant": job.tenant,
        "subject": job.subject,
        "external_id": job.external_id,
        "gate": job.gate,
        "correlation_id": job.correlation_id,
        "parent_id": job.parent_id,
        "tags": texts(job.tags) if job.tags else None,
        "created_by": job.created_by,
        "category": job.category,
        "payload_version": job.payload_version,
        "headers": job.headers_json,
        "state": "held" if job.held else "pending",
    }
