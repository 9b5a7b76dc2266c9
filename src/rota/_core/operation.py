"""A bulk action as a record: who wants what done to which jobs, how far it is, and whether it goes on."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from rota._core.actions import Verb
from rota._core.dead_letter import DeadFilter
from rota._core.filtering import parse
from rota._core.job_filter import JobFilter
from rota._core.review import ReviewVerb

FEW_MORE = 10
"""So many more jobs than somebody was shown are no surprise; or a tenth more."""


class OperationState(StrEnum):
    """Whether an operation goes on."""

    RUNNING = "running"
    STOPPED = "stopped"  # by a person, or with the process that drove it; it can be resumed
    FINISHED = "finished"


class Progress(NamedTuple):
    """How far an operation is. Absolute numbers: writing them twice does no harm."""

    done: int = 0
    refused: int = 0
    """Their state or review did not allow it, or their task is unknown."""
    changed: int = 0
    """Somebody else changed them first; they are as he left them."""
    cursor: UUID | None = None
    """The last job that was met; what comes next is older."""

    @property
    def met(self) -> int:
        return self.done + self.refused + self.changed


class JobsWanted(NamedTuple):
    """The jobs that an operation is for: words of the filter language, and when they were said."""

    filter: str
    at: datetime
    """`created>1h` is counted back from here, and what was made later is not meant."""
    tenant: str | None = None
    """Whose jobs alone; None: everybody's."""

    def which(self) -> JobFilter:
        """The filter as it was meant, whenever it is asked."""
        meant = parse(self.filter, now=self.at)
        bound = self.at + timedelta(microseconds=1)
        until = bound if meant.created_until is None else min(bound, meant.created_until)
        return meant._replace(created_until=until, tenant=self.tenant or meant.tenant)

    def as_json(self) -> dict[str, object]:
        """What was asked for, as a stored operation remembers it."""
        whose = {} if self.tenant is None else {"tenant": self.tenant}
        return {"filter": self.filter, "at": self.at.isoformat(), **whose}

    @classmethod
    def from_json(cls, asked: dict[str, object]) -> JobsWanted:
        """What `as_json` wrote."""
        tenant = asked.get("tenant")
        return cls(
            str(asked["filter"]),
            datetime.fromisoformat(str(asked["at"])),
            None if tenant is None else str(tenant),
        )


class Operation(NamedTuple):
    """One verb on every job, or every dead letter, that matches, tracked."""

    id: UUID
    verb: ReviewVerb | Verb
    wanted: DeadFilter | JobsWanted
    actor: str
    reason: str | None
    rate: float | None
    """How many a second; None: as fast as they go."""
    total: int
    """How many matched when it began."""
    progress: Progress
    state: OperationState
    driver: UUID
    """Who drives it now. Whoever resumes it takes a new one, and the old one stops at its next step."""
    began_at: datetime | None = None
    updated_at: datetime | None = None
    """Of the last step: one that is long ago tells of a process that is gone."""
    capped: bool = False
    """Whether more matched than were counted."""

    @property
    def about(self) -> str:
        """How the audit calls it."""
        return f"operation:{self.id}"

    @property
    def noun(self) -> str:
        """What it is done to."""
        return "job" if isinstance(self.wanted, JobsWanted) else "dead letter"

    @property
    def of_how_many(self) -> str:
        """How many matched, for people."""
        return f"{self.total:,}+" if self.capped else f"{self.total:,}"


def verb_and_wanted(verb: str, asked: dict[str, object]) -> tuple[ReviewVerb | Verb, DeadFilter | JobsWanted]:
    """What a stored operation does to which, by what it remembers."""
    if "filter" in asked:
        return Verb(verb), JobsWanted.from_json(asked)
    return ReviewVerb(verb), DeadFilter.from_json(asked)


def grown(expected: int, found: int) -> bool:
    """Whether so many more match than somebody was shown that he should be asked again."""
    return found > expected + max(FEW_MORE, expected // 10)
