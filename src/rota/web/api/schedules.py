"""Schedules over HTTP: what ticks when, and what people do to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Body, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from rota._core.ids import public_id
from rota._core.redaction import redacted, redacted_text
from rota._core.schedule import Edits, Fate, Misfire, Origin, Overlap, ScheduleRecord, TickRecord, job_for
from rota.admin.schedules import Upcoming, upcoming
from rota.errors import ScheduleError
from rota.web.api.audit import AuditShown, audit_shown
from rota.web.api.spans import Moment
from rota.web.asking import Asked
from rota.web.roles import Role, Routes

routes = Routes("schedules", "/schedules")


class TickShown(BaseModel):
    """A tick that was taken."""

    tick: datetime
    origin: Origin
    outcome: Fate
    job_id: UUID | None
    state: str | None = Field(description="Of its job.")


class UpcomingShown(BaseModel):
    """A tick that is to come."""

    tick: datetime
    due: datetime = Field(description="With its jitter.")
    local: datetime = Field(description="The due time on the clocks of the schedule's zone.")
    note: str = Field(description="What is unusual about it.")


class ScheduleShown(BaseModel):
    """A schedule as it holds: the code's word with the operators' laid over it."""

    name: str
    status: str = Field(description="active, paused, or absent: no running worker's code has it.")
    task: str
    timing: str
    zone: str
    jitter: float
    overlap: str
    misfire: str
    cap: int = Field(description="With misfire `all`: so many of the missed ticks, at most.")
    grace: float = Field(description="Seconds that a tick may be late and still counts as on time.")
    windows: list[str]
    queue: str
    priority: int
    arguments: Any = Field(description="What is sensitive is hidden.")
    edited: dict[str, Any] = Field(description="What operators set in place of the code's word.")
    next: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    paused_because: str | None
    seen_at: datetime
    version: int


class ScheduleDetails(ScheduleShown):
    """One schedule with its ticks and what people did to it."""

    upcoming: list[UpcomingShown]
    ticks: list[TickShown] = Field(description="Those that were taken, newest first.")
    audit: list[AuditShown]


class Why(BaseModel):
    """Why it is done."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(None, max_length=2000)


class Editing(Why):
    """What is to hold in place of the code's word.

    What is not named stays as it is; null lets the code's word hold again.
    """

    timing: str | None = Field(None, max_length=200, description="`30 2 * * *`, or `every 5m`.")
    zone: str | None = Field(None, max_length=100)
    jitter: float | None = Field(None, ge=0, allow_inf_nan=False, description="Seconds.")
    overlap: Overlap | None = None
    misfire: Misfire | None = None
    cap: StrictInt | None = None
    grace: float | None = Field(None, ge=0, allow_inf_nan=False, description="Seconds.")
    windows: list[Annotated[str, Field(max_length=200)]] | None = Field(
        None,
        max_length=50,
        description="`0 1 * * SUN for 2h`; an empty list: no windows, whatever the code says.",
    )
    queue: str | None = Field(None, min_length=1, max_length=1000)
    priority: StrictInt | None = Field(None, ge=0, le=32_767)
    arguments: dict[str, Any] | None = Field(None, description="All of them, in place of those of the code.")
    version: int | None = Field(None, description="Only if the schedule is still at this version; else 409.")
    dry_run: StrictBool = Field(
        False, description="Say what it would become and when it would tick; change nothing."
    )


class Edited(ScheduleShown):
    """A schedule as it was edited, or would be."""

    dry_run: bool
    upcoming: list[UpcomingShown] = Field(description="Its next five ticks.")


class Backfilling(Why):
    """Which ticks of the past are to be made good."""

    begin: Moment
    end: Moment
    dry_run: StrictBool = False


class Ran(BaseModel):
    """The job that a schedule was made to enqueue."""

    job_id: UUID
    public_id: str
    queue_url: str


class Backfilled(BaseModel):
    """What a backfill did, or would do."""

    dry_run: bool
    ticks: int
    outcomes: dict[str, int]


WHY = Why()
Said = Annotated[Why, Body()]


@routes.get(verb="list", role=Role.VIEWER)
async def list_schedules(asked: Asked) -> list[ScheduleShown]:
    """All schedules, by name."""
    roster = await asked.admin.schedules()
    return [
        schedule_shown(record, roster.now) for record in sorted(roster.schedules, key=lambda one: one.name)
    ]


@routes.get("/{name}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, name: str) -> ScheduleDetails:
    """One schedule with its last ticks, its next ones, and what people did to it."""
    view = await asked.admin.show_schedule(name)
    return ScheduleDetails(
        **schedule_shown(view.record, view.now).model_dump(),
        upcoming=[upcoming_shown(tick) for tick in view.upcoming],
        ticks=[tick_shown(tick) for tick in view.ticks],
        audit=[audit_shown(row) for row in view.audit],
    )


@routes.get("/{name}/next", verb="next", role=Role.VIEWER)
async def next_ticks(
    asked: Asked, name: str, count: Annotated[int, Query(ge=1, le=200)] = 10
) -> list[UpcomingShown]:
    """Its next ticks, whether it is paused or not."""
    record = await asked.admin.schedule(name)
    ticks: Sequence[Upcoming] = upcoming(record.effective, await asked.admin.store.now(), count)
    return [upcoming_shown(tick) for tick in ticks]


@routes.post("/{name}/run", verb="run", role=Role.OPERATOR, status_code=201)
async def run(asked: Asked, name: str, why: Said = WHY) -> Ran:
    """Enqueue its job now, whatever its time."""
    job_id = await asked.admin.run_schedule(name, reason=why.reason)
    shown = public_id(job_id)
    return Ran(job_id=job_id, public_id=shown, queue_url=asked.url("docverse.show", job_id=shown))


@routes.post("/{name}/pause", verb="pause", role=Role.OPERATOR)
async def pause(asked: Asked, name: str, why: Said = WHY) -> ScheduleShown:
    """Let it rest. Ticks that pass meanwhile are not made good."""
    record = await asked.admin.pause_schedule(name, reason=why.reason)
    return schedule_shown(record, await asked.admin.store.now())


@routes.post("/{name}/resume", verb="resume", role=Role.OPERATOR)
async def resume(asked: Asked, name: str, why: Said = WHY) -> ScheduleShown:
    """Let it tick again, from now on."""
    record = await asked.admin.resume_schedule(name, reason=why.reason)
    return schedule_shown(record, await asked.admin.store.now())


@routes.patch("/{name}", verb="edit", role=Role.MANAGER)
async def edit(asked: Asked, name: str, wish: Annotated[Editing, Body()]) -> Edited:
    """Set what is to hold in place of the code's word, until it is reset. A dry run shows its next ticks."""
    edits, back = _wanted(wish)
    record = await asked.admin.edit_schedule(
        name, edits, back=back, reason=wish.reason, version=wish.version, dry_run=wish.dry_run
    )
    now = await asked.admin.store.now()
    return Edited(
        **schedule_shown(record, now).model_dump(),
        dry_run=wish.dry_run,
        upcoming=[upcoming_shown(tick) for tick in upcoming(record.effective, now, 5)],
    )


@routes.post("/{name}/reset", verb="reset", role=Role.MANAGER)
async def reset(asked: Asked, name: str, why: Said = WHY) -> ScheduleShown:
    """Let the code's word hold again. A pause stays."""
    record = await asked.admin.reset_schedule(name, reason=why.reason)
    return schedule_shown(record, await asked.admin.store.now())


@routes.post("/{name}/backfill", verb="backfill", role=Role.MANAGER)
async def backfill(asked: Asked, name: str, wish: Annotated[Backfilling, Body()]) -> Backfilled:
    """Make good every tick of a range of the past that never became a job."""
    done = await asked.admin.backfill(name, wish.begin, wish.end, reason=wish.reason, dry_run=wish.dry_run)
    outcomes = {fate.value: done.count(fate) for fate in Fate if done.count(fate)}
    return Backfilled(dry_run=wish.dry_run, ticks=len(done.ticks), outcomes=outcomes)


def schedule_shown(record: ScheduleRecord, now: datetime) -> ScheduleShown:
    spec, status = record.effective, record.status(now)
    job = job_for(spec, now, UUID(int=0))
    return ScheduleShown(
        name=record.name,
        status=status,
        task=spec.task,
        timing=spec.timing,
        zone=spec.tz,
        jitter=spec.jitter,
        overlap=spec.overlap.value,
        misfire=spec.misfire.value,
        cap=spec.cap,
        grace=spec.grace,
        windows=list(spec.windows),
        queue=job.queue,
        priority=job.priority,
        arguments=redacted(json.loads(job.payload_json)),
        edited=_edited(record),
        next=_next(record, now) if status == "active" else None,
        paused_at=record.paused_at,
        paused_by=record.paused_by,
        paused_because=None if record.paused_because is None else redacted_text(record.paused_because),
        seen_at=record.seen_at,
        version=record.version,
    )


def upcoming_shown(tick: Upcoming) -> UpcomingShown:
    return UpcomingShown(**tick._asdict())


def tick_shown(tick: TickRecord) -> TickShown:
    return TickShown(
        tick=tick.tick,
        origin=tick.origin,
        outcome=tick.fate,
        job_id=tick.job_id,
        state=None if tick.state is None else tick.state.value,
    )


def _wanted(wish: Editing) -> tuple[Edits, list[str]]:
    """The edits in the store's words, and the fields for which the code's word is to hold again."""
    said = wish.model_dump(exclude_unset=True, exclude={"reason", "version", "dry_run", "arguments"})
    if "zone" in said:
        said["tz"] = said.pop("zone")
    if "arguments" in wish.model_fields_set:
        arguments = wish.arguments
        said["payload_json"] = None if arguments is None else json.dumps(arguments, ensure_ascii=False)
    if not said:
        raise ScheduleError(
            "nothing is to be edited; give timing, zone, jitter, overlap, misfire, cap, grace, windows, queue, "
            "priority or arguments."
        )
    if said.get("windows") is not None:
        said["windows"] = tuple(said["windows"])
    return Edits(**said), [name for name, value in said.items() if value is None]


def _edited(record: ScheduleRecord) -> dict[str, Any]:
    said: dict[str, Any] = record.edits.said
    arguments = said.pop("payload_json", None)
    return said if arguments is None else said | {"arguments": redacted(json.loads(arguments))}


def _next(record: ScheduleRecord, now: datetime) -> datetime | None:
    try:
        coming = upcoming(record.effective, now, 1)
    except ScheduleError:  # its zone is unknown here, say: one such must not hide the others
        return None
    return coming[0].due if coming else None
