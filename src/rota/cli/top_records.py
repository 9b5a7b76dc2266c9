"""One picture of `rota top` as JSON; the same names as `rota stats`, `rota queues` and `rota failures` have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota._core.job import State
from rota.cli.dead_records import group_record

if TYPE_CHECKING:
    from rota.admin.numbers import QueueView
    from rota.admin.picture import Picture


def record(picture: Picture) -> dict[str, Any]:
    """Everything; what could not be read is null, and `unknown` says why."""
    seen = picture.seen
    whole = None if seen.figures is None else seen.figures.whole()
    return {
        "now": seen.now,
        "since_seconds": seen.since,
        "pending": seen.jobs(State.PENDING),
        "running": seen.jobs(State.RUNNING),
        "dead": seen.jobs(State.DEAD),
        "capped": seen.capped,
        "oldest_wait": seen.oldest_wait,
        "done_per_minute": None if whole is None else whole.done * 60 / seen.since,
        "error_rate": None if whole is None else whole.error_rate,
        "alerts": [alert._asdict() for alert in picture.alerts],
        "queues": [_queue(view, seen.since) for view in seen.queues()],
        "lanes": None if seen.lanes is None else {lane.lane: lane.used for lane in seen.lanes},
        "workers": None
        if seen.workers is None
        else [
            {"id": worker.id, "host": worker.host, "pid": worker.pid, "slots": worker.slots}
            for worker in seen.workers
        ],
        "running_jobs": None
        if picture.running is None
        else [
            work._asdict() | {"seconds": (seen.now - work.claimed_at).total_seconds()}
            for work in picture.running
        ],
        "failures": None if picture.groups is None else [group_record(group) for group in picture.groups],
        "parked_tasks": None if picture.parked is None else [row._asdict() for row in picture.parked],
        "unknown": dict(picture.unknown),
    }


def _queue(view: QueueView, since: float) -> dict[str, Any]:
    done = view.done
    return {
        "queue": view.queue,
        "pending": view.pending,
        "running": view.running,
        "dead": view.dead,
        "oldest_wait": view.oldest_wait,
        "slots": view.slots,
        "target": view.target,
        "late": view.late,
        "done_per_minute": None if done is None else done.done * 60 / since,
        "error_rate": None if done is None else done.error_rate,
    }
