"""What a schedule is: what the code says of it, what operators say instead, and how far it has ticked."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from rota._core.job import NewJob, OnDuplicate, Scope, State

CAP = 100
"""How many missed ticks `all` catches up unless told."""
GRACE = 60.0
"""Seconds that a tick may be late and still counts as on time."""
ABSENT_AFTER = timedelta(minutes=3)
"""A schedule that no worker has declared for so long is gone from the code, or nobody works."""

SCHEDULE_HEADER, TICK_HEADER = "rota.schedule", "rota.tick"


class Overlap(StrEnum):
    """What a tick does while the job of the last one is unfinished."""

    SKIP = "skip"  # nothing; the tick is noted as skipped
    ALLOW = "allow"  # another job


class Misfire(StrEnum):
    """What becomes of ticks that nobody could take in time."""

    SKIP = "skip"  # they are left out
    LAST = "last"  # the newest one runs, once
    ALL = "all"  # each runs, the newest `cap` of them


class Origin(StrEnum):
    """Why a tick became a job."""

    TICK = "tick"  # its time came
    RUN = "run"  # somebody wanted it at once
    BACKFILL = "backfill"  # somebody wanted the past made good


class Fate(StrEnum):
    """What became of one tick."""

    ENQUEUED = "enqueued"
    DUPLICATE = "duplicate"  # its unique key belongs to another job, which stands for it
    ALREADY = "already"  # it became a job before, or was decided before
    OVERLAP = "overlap"  # left out: the last one is unfinished
    EARLY = "early"  # its time has not come by the store's clock
    FORGOTTEN = "forgotten"  # so old that nobody knows any more whether it ran
    STALE = "stale"  # the schedule is gone, paused, changed, or in somebody else's hands: look again


class ScheduleSpec(NamedTuple):
    """A schedule as its code declares it."""

    name: str
    task: str
    template_json: str
    """The job that a tick makes: arguments and options."""
    timing: str
    """`30 2 * * *`, or `every 5m`."""
    tz: str = "UTC"
    jitter: float = 0.0
    """Seconds within which the schedule has a fixed delay of its own, so that not all tick at once."""
    overlap: Overlap = Overlap.SKIP
    misfire: Misfire = Misfire.LAST
    cap: int = CAP
    grace: float = GRACE
    windows: tuple[str, ...] = ()
    """Times in which it does not tick: `0 1 * * SUN for 2h`, `2026-03-01T01:00 to 2026-03-01T05:00`."""


class Edits(NamedTuple):
    """What operators set in place of what the code says; None: the code's word holds."""

    timing: str | None = None
    tz: str | None = None
    jitter: float | None = None
    overlap: Overlap | None = None
    misfire: Misfire | None = None
    cap: int | None = None
    grace: float | None = None
    windows: tuple[str, ...] | None = None
    queue: str | None = None
    priority: int | None = None
    payload_json: str | None = None

    @property
    def said(self) -> dict[str, Any]:
        """Only what is set."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class ScheduleRecord(NamedTuple):
    """A schedule as the store knows it."""

    spec: ScheduleSpec
    version: int
    """Grows with every change by code or people; not with ticks."""
    cursor: datetime
    """Every tick up to here is decided."""
    published_at: datetime
    seen_at: datetime
    """When a worker last said that its code has this schedule."""
    edits: Edits = Edits()
    paused_at: datetime | None = None
    paused_by: str | None = None
    paused_because: str | None = None
    forgotten_until: datetime | None = None
    """Which ticks up to here became jobs is no longer known."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def effective(self) -> ScheduleSpec:
        """What holds: the code's word with the operators' laid over it."""
        if self.edits == Edits():
            return self.spec
        said = self.edits.said
        template = json.loads(self.spec.template_json)
        if "payload_json" in said:
            template["payload"] = json.loads(said.pop("payload_json"))
        template |= {name: said.pop(name) for name in ("queue", "priority") if name in said}
        return self.spec._replace(template_json=json.dumps(template), **said)

    def absent(self, now: datetime) -> bool:
        """Whether no living worker's code has it, so that it does not tick."""
        return now - self.seen_at > ABSENT_AFTER

    def status(self, now: datetime) -> str:
        """One word: active, paused, or absent."""
        if self.absent(now):
            return "absent"
        return "active" if self.paused_at is None else "paused"


class Roster(NamedTuple):
    """Schedules and the moment at which they were read, by the store's clock."""

    now: datetime
    schedules: tuple[ScheduleRecord, ...]


class ScheduleChange(NamedTuple):
    """What an operator wants to stand in a schedule's row, if its version still holds."""

    name: str
    version: int
    edits: Edits
    paused: bool
    reason: str | None = None
    restart: bool = False
    """Whether ticks count from now on: what passed while it was paused, or by another time, is not made good."""


class TickJob(NamedTuple):
    """One tick and the job it is to become."""

    tick: datetime
    due: datetime
    """The tick and its jitter; never enqueued before."""
    job: NewJob


class Firing(NamedTuple):
    """Ticks of one schedule that are to become jobs, oldest first."""

    schedule: str
    ticks: tuple[TickJob, ...]
    origin: Origin = Origin.TICK
    version: int = 0
    """Of the record that the ticks were computed from. By hand it does not matter."""
    cursor: datetime | None = None
    """Every tick up to here is decided by this."""


class Fired(NamedTuple):
    """What became of one tick."""

    tick: datetime
    fate: Fate
    job_id: UUID | None = None


class TickRecord(NamedTuple):
    """A tick that was taken, and its job."""

    tick: datetime
    origin: Origin
    fate: Fate
    job_id: UUID | None
    at: datetime
    state: State | None
    """The job's state now, or how it ended; None: there is none, or nobody knows any more."""


class TickDay(NamedTuple):
    """Ticks of one day (UTC) that became the same."""

    day: date
    origin: Origin
    fate: Fate
    late: bool
    """Whether they were taken after the time that was given them."""
    state: State | None
    """What their jobs are now, or how they ended; None: there are none, or nobody knows any more."""
    ticks: int
    newest: datetime


def about(schedule: str) -> str:
    """What the audit calls a schedule."""
    return f"schedule:{schedule}"


_DEFAULTS = NewJob(UUID(int=0), "")
_LEFT_OUT = frozenset({"id", "task", "payload_json", "headers_json", "delay", "run_at", "key", "key_window"})


def template_of(job: NewJob) -> str:
    """A prepared job without what is each tick's own, as JSON. Its tick is its key, so it has no other."""
    said = {
        name: value
        for name, value in job._asdict().items()
        if name not in _LEFT_OUT and value != getattr(_DEFAULTS, name)
    }
    if job.parent_id is not None:
        said["parent_id"] = str(job.parent_id)
    return json.dumps(said | {"payload": json.loads(job.payload_json)})


def job_for(spec: ScheduleSpec, tick: datetime, job_id: UUID) -> NewJob:
    """The job that this tick becomes."""
    said = json.loads(spec.template_json)
    readers: dict[str, Any] = {
        "tags": tuple,
        "unique_scope": Scope,
        "on_duplicate": OnDuplicate,
        "parent_id": UUID,
    }
    payload = json.dumps(said.pop("payload", {}))
    fields = {name: readers.get(name, lambda value: value)(value) for name, value in said.items()}
    # A later version of Rota may have written more than this one knows.
    known = {name: value for name, value in fields.items() if name in NewJob._fields}
    known.setdefault("created_by", f"schedule:{spec.name}")
    return NewJob(job_id, spec.task, payload, **known, headers_json=tick_headers(spec.name, tick))


def tick_headers(schedule: str | None, tick: datetime) -> str:
    """What a job carries so that its handler knows which tick it is for."""
    named = {} if schedule is None else {SCHEDULE_HEADER: schedule}
    return json.dumps(named | {TICK_HEADER: tick.isoformat()})
