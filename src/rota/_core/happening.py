"""What happens to jobs, as people follow it: one value a happening, told once, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from rota._core.actions import Audit
from rota._core.job import Job, State

OVERLAP = timedelta(seconds=5)
"""Each look goes back so far behind the last one: a write may be seen later than the moment that it carries."""


class Kind(StrEnum):
    """What happened."""

    ENQUEUED = "enqueued"
    STARTED = "started"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"  # and is tried again, or was ended otherwise
    DIED = "died"
    CANCELLED = "cancelled"
    ACTED = "acted"  # somebody did something to it by hand


ENDS = {
    State.COMPLETED: Kind.COMPLETED,
    State.PARTIAL: Kind.PARTIAL,
    State.DEAD: Kind.DIED,
    State.CANCELLED: Kind.CANCELLED,
}


class Happening(NamedTuple):
    """One thing that happened to one job."""

    at: datetime
    kind: Kind
    job_id: UUID
    task: str | None = None
    """None: the job is gone."""
    queue: str | None = None
    tenant: str | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    wait: float | None = None
    """Seconds from being due to being claimed."""
    run: float | None = None
    """Seconds from the claim to the end."""
    why: str | None = None
    """The error; or who did what, and for which reason."""
    next_at: datetime | None = None
    """When a failed one is tried again."""

    @property
    def key(self) -> tuple[Kind, UUID, datetime, str | None]:
        """The same happening, seen twice, has the same key. At one moment somebody may do two things to a job."""
        return self.kind, self.job_id, self.at, self.why if self.kind is Kind.ACTED else None


class HappeningFilter(NamedTuple):
    """Whose happenings are told; every field narrows."""

    task: str | None = None
    queue: str | None = None
    tenant: str | None = None

    def matches(self, job: Job) -> bool:
        pairs = ((self.task, job.task), (self.queue, job.queue), (self.tenant, job.tenant))
        return all(asked in (None, found) for asked, found in pairs)


class Mark(NamedTuple):
    """How far somebody has read."""

    since: datetime
    place: int | None = None
    """Where in its history a store goes on reading, if it needs to know; only the store understands it."""


class Happened(NamedTuple):
    """One look at what happened: it may repeat what an earlier one told."""

    news: Sequence[Happening]
    mark: Mark
    """Where the next look begins."""
    more: bool = False
    """Too much happened: the oldest of it is left out."""


class Work(NamedTuple):
    """One job that runs now."""

    id: UUID
    task: str
    queue: str
    tenant: str | None
    attempt: int
    max_attempts: int
    claimed_at: datetime
    session_id: UUID | None
    timeout: float | None = None
    cancelling: bool = False


class CodeVersion(NamedTuple):
    """A version of the code, and when somebody first came with it."""

    version: str
    first_seen: datetime


class Share(NamedTuple):
    """How many jobs of a queue run for one tenant now."""

    queue: str
    tenant: str | None
    jobs: int


class Stint(NamedTuple):
    """What one slot of a session did for a while: an attempt, from its claim on."""

    job_id: UUID
    task: str
    queue: str
    tenant: str | None
    attempt: int
    begun: datetime
    ended: datetime | None
    """None: it goes on."""
    outcome: str
    """How it ended: completed, partial, cancelled, or what a failed attempt is called; running while it goes on."""


class Stints(NamedTuple):
    """The stints of one session, the one that began last first."""

    found: Sequence[Stint]
    more: bool = False
    """Too much happened: the oldest of it is left out."""


def stints_of(found: Iterable[Stint], limit: int, *, more: bool = False) -> Stints:
    """Stints in order, each once: what two records tell of one attempt is told by the later one."""
    once = {(stint.job_id, stint.begun): stint for stint in found}
    ordered = sorted(once.values(), key=lambda stint: (stint.begun, stint.job_id), reverse=True)
    return Stints(ordered[:limit], more or len(ordered) > limit)


class PayloadSize(NamedTuple):
    """How large the payloads of one task's unfinished jobs are, as stored."""

    task: str
    jobs: int
    average: int
    """Bytes."""
    largest: int
    example: UUID
    """The job with the largest."""


class Memory:
    """Which happenings were told: looks overlap, and nothing is said twice. Forgets what no look can repeat."""

    def __init__(self) -> None:
        self._told: dict[tuple[Kind, UUID, datetime, str | None], None] = {}

    def new(self, look: Happened) -> list[Happening]:
        """What this look brings that no earlier one did, oldest first."""
        found = {one.key: one for one in look.news if one.key not in self._told}
        self._told |= dict.fromkeys(found)
        horizon = look.mark.since - OVERLAP - OVERLAP
        for key in [key for key in self._told if key[2] < horizon]:
            del self._told[key]
        order = list(Kind)
        return sorted(found.values(), key=lambda one: (one.at, order.index(one.kind), one.job_id))

    def __len__(self) -> int:
        return len(self._told)


class Ended(NamedTuple):
    """An attempt that did not succeed, as far as it is told here."""

    at: datetime
    version: int
    attempt: int
    started_at: datetime | None
    error: str


def life_of(job: Job, ended: Iterable[Ended] = (), audit: Iterable[Audit] = ()) -> list[Happening]:
    """All that is known of one job's life, oldest first."""
    born = Happening(job.created_at, Kind.ENQUEUED, job.id, job.task, job.queue, job.tenant)
    counted = born._replace(attempt=job.attempt, max_attempts=job.max_attempts)
    life, deadly = [born], None
    for one in ended:
        if job.state is State.DEAD and one.at == job.finished_at:
            deadly = one
            continue
        life.append(
            counted._replace(
                at=one.at,
                kind=Kind.FAILED,
                attempt=one.attempt,
                run=_between(one.started_at, one.at),
                why=one.error,
                next_at=job.run_at if job.state is State.PENDING and one.version == job.version - 1 else None,
            )
        )
    if job.state is State.RUNNING and job.claimed_at is not None:
        wait = _between(max(job.run_at, job.created_at), job.claimed_at)
        life.append(counted._replace(at=job.claimed_at, kind=Kind.STARTED, wait=wait))
    if job.state in ENDS and job.finished_at is not None:
        kind = ENDS[job.state]
        wait = None if kind is Kind.CANCELLED else _between(max(job.run_at, job.created_at), job.claimed_at)
        run = _between(job.claimed_at, job.finished_at)
        why = (deadly.error if deadly is not None else job.error_message) if kind is Kind.DIED else job.reason
        life.append(counted._replace(at=job.finished_at, kind=kind, wait=wait, run=run, why=why))
    life += [done for row in audit if (done := acted(row, job)) is not None]
    return sorted(life, key=lambda one: one.at)


def acted(row: Audit, job: Job | None = None) -> Happening | None:
    """What somebody did to a job, from the audit."""
    if row.job_id is None or row.at is None:
        return None
    done = Happening(row.at, Kind.ACTED, row.job_id)
    if job is not None:
        done = done._replace(task=job.task, queue=job.queue, tenant=job.tenant)
    return done._replace(why=f"{row.action} by {row.actor}" + (f": {row.reason}" if row.reason else ""))


def _between(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None:
        return None
    return max(0.0, (end - start).total_seconds())
