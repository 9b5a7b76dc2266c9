"""Workers as people look at them: whether one lives, how full it is, which queues it serves. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from rota.stores.contract import SessionRecord

RUNNING = 5_000
"""So many running jobs of all workers are counted; of more, it is not known how many each one has."""


class WorkerView(NamedTuple):
    """One worker."""

    record: SessionRecord
    state: str
    """`alive`; `draining` or `stopping` (somebody asked it to); `lost` (its lease ended without a word) or `gone`."""
    slots: int
    used: int | None
    """Slots that run a job; None: unknown, or not for him to know."""
    queues: Sequence[str] | None
    """None: every queue."""

    @property
    def living(self) -> bool:
        return self.state not in ("lost", "gone")

    def __str__(self) -> str:
        return f"{self.record.host}:{self.record.pid}"


def viewed(record: SessionRecord, now: datetime, used: Mapping[UUID, int] | None) -> WorkerView:
    """A worker at one moment; `used` are the running jobs of each, None where unknown."""
    if record.ended_at is not None:
        state = "gone"
    elif record.lease_until <= now:
        state = "lost"
    else:
        state = "alive" if record.order is None else record.order.verb.doing
    queues: set[str] | None = set()
    for served in (record.queues or {"": None}).values():
        if served is None or queues is None:
            queues = None
        else:
            queues |= set(served)
    return WorkerView(
        record,
        state,
        sum(record.lanes.values()),
        None if used is None else used.get(record.id, 0),
        None if queues is None else sorted(queues),
    )
