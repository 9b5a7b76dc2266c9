"""New jobs as the JSON that enqueue.sql and rota.enqueue_jobs() read, and as lines for COPY."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from rota._core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob, OnDuplicate, Scope

PLAIN = NewJob._field_defaults
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


def copy_lines(jobs: Sequence[NewJob], now: datetime) -> str:
    """The jobs as COPY text, in the column order of copy.sql. `now` is the store's time."""
    stamp = now.isoformat()
    return "".join([_line(job, now, stamp) for job in jobs])


def _line(job: NewJob, now: datetime, stamp: str) -> str:
    run_at = stamp
    if job.run_at is not None:
        run_at = job.run_at.isoformat()
    elif job.delay:
        run_at = (now + timedelta(seconds=job.delay)).isoformat()
    payload = job.payload_json
    if "\\" in payload or "\n" in payload or "\t" in payload or "\r" in payload:
        payload = _escape(payload)
    if (
        job[7:] == _REST
    ):  # nothing but task, payload, queue, priority, attempts and time: by far the most jobs
        return (
            f"{job.id}\t{_escape(job.task)}\t{payload}\t{_escape(job.queue)}\t{job.priority}\t{job.max_attempts}"
            f"\t{run_at}\t{stamp}\t{stamp}" + _NULLS
        )
    deadline = "\\N" if job.deadline_in is None else (now + timedelta(seconds=job.deadline_in)).isoformat()
    cells = (
        job.tenant, job.subject, job.external_id, job.gate, job.correlation_id,
        None if job.parent_id is None else str(job.parent_id), _array(job.tags), job.created_by, job.category,
        job.payload_version, job.headers_json,
    )  # fmt: skip
    return (
        f"{job.id}\t{_escape(job.task)}\t{payload}\t{_escape(job.queue)}\t{job.priority}\t{job.max_attempts}"
        f"\t{run_at}\t{stamp}\t{stamp}\t{deadline}\t"
        + ("\\N" if job.timeout is None else str(job.timeout))
        + "\t"
        + "\t".join("\\N" if cell is None else _escape(cell) for cell in cells)
        + ("\theld\n" if job.held else "\tpending\n")
    )


_REST = tuple(NewJob._field_defaults.values())[5:]
_NULLS = "\t\\N" * 13 + "\tpending\n"


def _escape(text: str) -> str:
    if "\\" not in text and "\t" not in text and "\n" not in text and "\r" not in text:
        return text
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _array(values: Sequence[str]) -> str | None:
    if not values:
        return None
    quoted = ('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    return "{" + ",".join(quoted) + "}"
