"""What people write in a filter who mean another word of it: other systems' names of fields and states."""

from __future__ import annotations

from rota._core.job import State

OTHER_WORDS = {
    "status": "state",
    "type": "task",
    "job_type": "task",
    "kind": "task",
    "name": "task",
    "org": "tenant",
    "conversation": "correlation",
    "external_id": "external",
    "correlation_id": "correlation",
    "parent_id": "parent",
    "session": "worker",
    "host": "worker",
    "exception": "error",
    "attempts": "attempt",
    "arg": "args.",
    "args": "args.",
    "payload": "args.",
    "age": "created",
    "date": "created",
    "sort": "order",
}
"""What people write instead."""
OTHER_STATES: dict[str, str] = {
    "failed": State.DEAD,
    "error": State.DEAD,
    "waiting": State.PENDING,
    "queued": State.PENDING,
    "ready": State.PENDING,
    "scheduled": State.PENDING,
    "retrying": "pending attempt>0",
    "active": State.RUNNING,
    "processing": State.RUNNING,
    "paused": State.HELD,
    "done": State.COMPLETED,
    "succeeded": State.COMPLETED,
    "success": State.COMPLETED,
    "finished": State.COMPLETED,
}
