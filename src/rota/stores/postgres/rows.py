"""Rows of PostgreSQL to values of Rota, and back to arrays that PostgreSQL reads fast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from rota._core.job import Job, State
from rota._core.job_filter import LeftOut

RUNNING = State.RUNNING


def claimed(row: tuple[Any, ...], session: UUID | None) -> Job:
    """A job from the columns that every claim returns (sql/claim.sql has their order)."""
    (
        id_, version, task, queue, priority, payload, attempt, max_attempts, snoozes, losses, run_at, created_at,
        claimed_at, deadline, timeout, tenant, subject, external_id, key, unique_key, unique_scope, gate,
        correlation_id, parent_id, tags, created_by, category, payload_version, headers, error_class, error_message,
        cancel_requested_at,
    ) = row  # fmt: skip
    # The same as Job(...), at half its price: a worker does this for every job.
    return tuple.__new__(Job, (
        id_, version, RUNNING, task, queue, priority, payload, attempt, max_attempts, snoozes, losses, run_at,
        created_at, claimed_at, claimed_at, None, deadline, timeout, cancel_requested_at, session, tenant, subject,
        external_id, key, unique_key, unique_scope, gate, None, correlation_id, parent_id, tuple(tags) if tags else (),
        created_by, category, payload_version, headers, error_class, error_message, None, None, None, None,
    ))  # fmt: skip


def lost(row: tuple[Any, ...]) -> Job:
    """A running job of an ended session: a claim's columns, then who had it and why it should stop."""
    return claimed(row[:-2], row[-2])._replace(reason=row[-1])


def stored(row: tuple[Any, ...]) -> Job:
    """A job from all columns, in the order of `Job` (sql/get.sql)."""
    fields = list(row)
    fields[2] = State(fields[2])
    fields[30] = tuple(fields[30] or ())
    return Job._make(fields)


def brief(row: tuple[Any, ...]) -> Job:
    """A job from all columns, and behind them how large its payload and its result are where they were left out."""
    *columns, payload, result = row
    job = stored(tuple(columns))
    if payload is not None:
        job = job._replace(payload_json=LeftOut.of(job.payload_json, payload))
    if result is not None:
        job = job._replace(result_json=LeftOut.of(job.result_json or "null", result))
    return job


def uuids(ids: Iterable[UUID]) -> str:
    """Ids as one array literal: psycopg would dump a list value by value, in Python."""
    return "{" + ",".join(["%032x" % id_.int for id_ in ids]) + "}"  # noqa: UP031 - twice as fast as str(id_)


def texts(values: Iterable[str]) -> str:
    """Texts as one array literal."""
    quoted = ('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    return "{" + ",".join(quoted) + "}"


def integers(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"
