"""Workers as rows, fields and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota._core.lengths import size
from rota.cli import exits
from rota.cli.words import ago

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rota.admin import Admin
    from rota.admin.workers import WorkerView
    from rota.cli.commands import Call

HEADERS = (
    "host", "process", "state", "in use", "slots", "queues", "code version", "memory", "since", "session",
)  # fmt: skip


async def known(call: Call, admin: Admin, session: UUID) -> WorkerView:
    """The worker, or the command ends: there is none."""
    from rota.admin.worker_orders import WorkerNotFound

    try:
        return await admin.worker(session)
    except WorkerNotFound as error:
        call.output.words(f"rota: {error}")
        exits.leave(exits.NOTHING)
        raise  # never: leaving is an exception


def more(view: WorkerView, now: datetime) -> list[tuple[str, object]]:
    """What a row has no room for."""
    record = view.record
    asked: list[tuple[str, object]] = []
    if record.order is not None:
        asked = [("asked", f"to {record.order.verb.value} by {record.order.by}, {ago(record.order.at, now)}")]
        asked += [("reason", record.order.reason)] if record.order.reason else []
    lanes = ", ".join(f"{lane}={slots}" for lane, slots in record.lanes.items())
    return [
        *asked,
        ("hears orders", "yes" if record.hears else "no: it runs an older version of Rota"),
        ("lanes", lanes),
        ("tasks", ", ".join(sorted(record.tasks))),
        ("tenant", record.tenant or "all"),
        ("lease until", record.lease_until),
    ]


def shown(view: WorkerView, now: datetime) -> list[object]:
    """A row for people."""
    memory = view.record.memory
    return row(view, ago(view.record.started_at, now), "unknown" if memory is None else size(memory))


def row(view: WorkerView, since: datetime | str, memory: int | str | None) -> list[object]:
    """The columns of `HEADERS`."""
    record = view.record
    queues = "every queue" if view.queues is None else ",".join(view.queues)
    used = "unknown" if view.used is None else view.used
    return [
        record.host,
        record.pid,
        view.state,
        used,
        view.slots,
        queues,
        record.code_version,
        memory,
        since,
        record.id,
    ]


def record_of(view: WorkerView) -> dict[str, Any]:
    """A worker as JSON."""
    record = view.record
    return {
        "session": record.id,
        "host": record.host,
        "pid": record.pid,
        "state": view.state,
        "used": view.used,
        "slots": view.slots,
        "lanes": dict(record.lanes),
        "queues": view.queues,
        "tenant": record.tenant,
        "code_version": record.code_version,
        "memory": record.memory,
        "started_at": record.started_at,
        "lease_until": record.lease_until,
        "ended_at": record.ended_at,
        "hears_orders": record.hears,
        "order": None if record.order is None else record.order._asdict(),
    }
