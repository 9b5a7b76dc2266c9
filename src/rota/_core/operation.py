"""A bulk action on dead letters as a record: who wants what done to which, how far it is, and whether it goes on."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from rota._core.dead_letter import DeadFilter
from rota._core.review import ReviewVerb


class OperationState(StrEnum):
    """Whether an operation goes on."""

    RUNNING = "running"
    STOPPED = "stopped"  # by a person, or with the process that drove it; it can be resumed
    FINISHED = "finished"


class Progress(NamedTuple):
    """How far an operation is. Absolute numbers: writing them twice does no harm."""

    done: int = 0
    refused: int = 0
    """Their review did not allow it, or their task is unknown."""
    changed: int = 0
    """Somebody else changed them first; they are as he left them."""
    cursor: UUID | None = None
    """The last dead letter that was met; what comes next is older."""

    @property
    def met(self) -> int:
        return self.done + self.refused + self.changed


class Operation(NamedTuple):
    """One verb on every dead letter that matches, tracked."""

    id: UUID
    verb: ReviewVerb
    wanted: DeadFilter
    actor: str
    reason: str | None
    rate: float | None
    """Dead letters a second; None: as fast as they go."""
    total: int
    """How many matched when it began."""
    progress: Progress
    state: OperationState
    driver: UUID
    """Who drives it now. Whoever resumes it takes a new one, and the old one stops at its next step."""
    began_at: datetime | None = None
    updated_at: datetime | None = None
    """Of the last step: one that is long ago tells of a process that is gone."""

    @property
    def about(self) -> str:
        """How the audit calls it."""
        return f"operation:{self.id}"
