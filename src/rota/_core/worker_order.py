"""Orders: what people may ask of a worker from afar."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class OrderVerb(StrEnum):
    """The same in Python, CLI, HTTP and audit."""

    DRAIN = "drain"  # take no more jobs, finish those that run however long they take, and go
    STOP = "stop"  # what SIGTERM does: the same within the grace, then hand back what still runs

    @property
    def doing(self) -> str:
        """What a worker is that was asked so."""
        return "draining" if self is OrderVerb.DRAIN else "stopping"

    def follows(self, standing: OrderVerb | None) -> bool:
        """Whether it may be given after the one that stands: whoever drains can be hurried, and nobody called back."""
        return standing is None or (standing is OrderVerb.DRAIN and self is OrderVerb.STOP)


class WorkerOrder(NamedTuple):
    """What a worker was asked to do."""

    verb: OrderVerb
    by: str
    at: datetime
    reason: str | None = None


def about(session: UUID) -> str:
    """How the audit names a worker."""
    return f"worker:{session}"
