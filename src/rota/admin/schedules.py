"""What people ask about schedules and do to them; each action with its audit row."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from rota import options
from rota._core.actions import Audit
from rota._core.payload import problem
from rota._core.redaction import HIDDEN, redacted_json
from rota._core.schedule import (
    ABSENT_AFTER,
    Edits,
    Fate,
    Fired,
    Firing,
    Origin,
    Roster,
    ScheduleChange,
    ScheduleRecord,
    ScheduleSpec,
    TickJob,
    TickRecord,
    about,
    job_for,
)
from rota._core.schedule_plan import delay
from rota._core.schema import check
from rota.admin.reads import Reads
from rota.errors import ScheduleChanged, ScheduleError, ScheduleNotFound
from rota.new_ids import new_id
from rota.schedule import checked
from rota.schedule_times import EPOCH, times_of, windows_of, zone_of

if TYPE_CHECKING:
    from uuid import UUID

TRIES = 3
AT_ONCE = 200
MOST = 10_000
"""Ticks that one backfill may make good."""
SHOWN = 20


class Upcoming(NamedTuple):
    """A tick that is to come."""

    tick: datetime
    due: datetime
    """With its jitter."""
    local: datetime
    """The due time on the clocks of the schedule's zone."""
    note: str
    """What is unusual about it: the clocks change, or a window is closed."""


class ScheduleView(NamedTuple):
    """One schedule and all that is known of it."""

    record: ScheduleRecord
    now: datetime
    ticks: Sequence[TickRecord]
    """Those that were taken, newest first."""
    upcoming: Sequence[Upcoming]
    audit: Sequence[Audit]


class Backfill(NamedTuple):
    """What a backfill did, or would do."""

    ticks: Sequence[datetime]
    """The ticks of the range, oldest first."""
    fired: Sequence[Fired]

    def count(self, fate: Fate) -> int:
        return sum(one.fate is fate for one in self.fired)


class Schedules(Reads):
    """The schedules of a store. Nothing here needs the code that declares them."""

    async def schedules(self) -> Roster:
        """All of them, with the store's time."""
        return await self.store.roster()

    async def schedule(self, name: str) -> ScheduleRecord:
        """One of them, or `ScheduleNotFound`."""
        roster = await self.store.roster()
        found = next((record for record in roster.schedules if record.name == name), None)
        if found is None:
            raise ScheduleNotFound(name, [record.name for record in roster.schedules])
        return found

    async def show_schedule(self, name: str) -> ScheduleView:
        """One schedule with its last ticks, its next ones, and what people did to it."""
        record = await self.schedule(name)
        now = await self.store.now()
        return ScheduleView(
            record,
            now,
            await self.store.ticks(name, limit=SHOWN),
            upcoming(record.effective, now, 5),
            await self.store.audit(about=about(name)),
        )

    async def pause_schedule(self, name: str, *, reason: str | None = None) -> ScheduleRecord:
        """Let it rest. Ticks that pass meanwhile are not made good."""
        return await self._change(
            name, "pause", reason, lambda record: _as_it_is(record)._replace(paused=True, reason=reason)
        )

    async def resume_schedule(self, name: str, *, reason: str | None = None) -> ScheduleRecord:
        """Let it tick again, from now on."""

        def resumed(record: ScheduleRecord) -> ScheduleChange:
            return _as_it_is(record)._replace(paused=False, restart=record.paused_at is not None)

        return await self._change(name, "resume", reason, resumed)

    async def edit_schedule(
        self,
        name: str,
        edits: Edits,
        *,
        back: Collection[str] = (),
        reason: str | None = None,
        version: int | None = None,
        dry_run: bool = False,
    ) -> ScheduleRecord:
        """Set what `edits` says in place of the code's word; what was edited before stays.

        But for the fields in `back`: for those the code's word holds again.
        With `version` it is done only if nobody changed the schedule since,
        else `ScheduleChanged`. A dry run answers what it would become.
        """

        def edited(record: ScheduleRecord) -> ScheduleChange:
            if version not in (None, record.version):
                raise ScheduleChanged(name)
            together = altered(record, edits, back)
            # Here only: what code and edits made of it meanwhile must never keep anybody from pausing or resetting it.
            checked(record._replace(edits=together).effective)
            return _as_it_is(record)._replace(edits=together)

        check_job(name, edits)
        if edits.payload_json is not None:
            await self._check_arguments(name, edits.payload_json)
        if dry_run:
            record = await self.schedule(name)
            return record._replace(edits=edited(record).edits)
        return await self._change(name, "edit", reason, edited)

    async def _check_arguments(self, name: str, payload_json: str) -> None:
        """Refuse arguments that were copied from where they are hidden, and such as do not fit the published task."""
        record = await self.schedule(name)
        task = record.spec.task
        if HIDDEN in payload_json and HIDDEN not in record.effective.template_json:
            raise ScheduleError(
                f"the arguments for {name!r} have {HIDDEN} in them, which stands for something hidden. "
                "Its jobs would run without it: give the real value."
            )
        spec = next((spec for spec in await self.store.tasks() if spec.name == task), None)
        if spec is not None:
            check(task, json.loads(payload_json), json.loads(spec.schema_json))

    async def reset_schedule(self, name: str, *, reason: str | None = None) -> ScheduleRecord:
        """Let the code's word hold again. A pause stays."""
        return await self._change(
            name, "reset", reason, lambda record: _as_it_is(record)._replace(edits=Edits())
        )

    async def absent_schedule(self, name: str) -> ScheduleRecord:
        """A schedule that vanished from the code, or `ScheduleError` if running code still has it."""
        record = await self.schedule(name)
        now = await self.store.now()
        if not record.absent(now):
            seen = max(0, round((now - record.seen_at) / timedelta(seconds=1)))
            raise ScheduleError(
                f"schedule {name!r} is in the code of a worker that runs (seen {seen} s ago), so it cannot be deleted. "
                "Take it out of the code, stop the workers that have it, and repeat after "
                f"{ABSENT_AFTER.seconds // 60} minutes; or let it rest with `rota schedules pause {name}`."
            )
        return record

    async def delete_schedule(self, name: str, *, reason: str | None = None) -> ScheduleRecord:
        """Remove a schedule that vanished from the code, with its ticks, for good; as it was. Its jobs stay."""
        for _ in range(TRIES):
            record = await self.absent_schedule(name)
            spec = record.effective
            before = f"{spec.timing} ({spec.tz}) calls {spec.task}, {_words(record)}"
            audit = Audit(self.actor, "delete", None, reason, before, about=about(name))
            if await self.store.delete_schedule(name, record.version, audit):
                return record
        raise ScheduleChanged(name)

    async def run_schedule(self, name: str, *, reason: str | None = None) -> UUID:
        """Enqueue its job now, whatever its time, its windows and the last one; the job's id."""
        record = await self.schedule(name)
        now = await self.store.now()
        spec = record.effective
        given = TickJob(now, now, job_for(spec, now, new_id()))
        audit = Audit(self.actor, "run", None, reason, about=about(name))
        [fired] = await self.store.fire(Firing(name, (given,), Origin.RUN), audit)
        if fired.job_id is None:
            raise ScheduleChanged(name)
        return fired.job_id

    async def backfill(
        self,
        name: str,
        begin: datetime,
        end: datetime,
        *,
        reason: str | None = None,
        dry_run: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> Backfill:
        """Make good every tick from `begin` to `end` that never became a job, by the schedule as it is now.

        What is interrupted can be repeated: a tick is one job at most.
        """
        record = await self.schedule(name)
        ticks = past_ticks(record.effective, begin, end, await self.store.now())
        if dry_run:
            taken = {
                seen.tick for seen in await self.store.ticks(name, limit=MOST) if seen.job_id is not None
            }
            return Backfill(ticks, [Fired(tick, _foreseen(record, tick, taken)) for tick in ticks])
        fired: list[Fired] = []
        for start in range(0, len(ticks), AT_ONCE):
            batch = ticks[start : start + AT_ONCE]
            fired += await self._make_good(record, batch, reason)
            if on_progress is not None:
                on_progress(len(fired))
        return Backfill(ticks, fired)

    async def _make_good(
        self, record: ScheduleRecord, ticks: Sequence[datetime], reason: str | None
    ) -> list[Fired]:
        spec = record.effective
        jobs = tuple(TickJob(tick, tick, job_for(spec, tick, new_id())) for tick in ticks)
        told = f"{ticks[0].isoformat()} to {ticks[-1].isoformat()}"
        audit = Audit(self.actor, "backfill", None, reason, after=told, about=about(record.name))
        return await self.store.fire(Firing(record.name, jobs, Origin.BACKFILL), audit)

    async def _change(
        self,
        name: str,
        verb: str,
        reason: str | None,
        wanted: Callable[[ScheduleRecord], ScheduleChange],
    ) -> ScheduleRecord:
        for _ in range(TRIES):
            record = await self.schedule(name)
            change = wanted(record)
            before, after = record.effective, record._replace(edits=change.edits).effective
            if (before.timing, before.tz) != (after.timing, after.tz):
                change = change._replace(restart=True)
            audit = Audit(
                self.actor, verb, None, reason, _words(record), _words(record, change), about=about(name)
            )
            changed = await self.store.change_schedule(change, audit)
            if changed is not None:
                return changed
        raise ScheduleChanged(name)


def upcoming(spec: ScheduleSpec, now: datetime, count: int) -> list[Upcoming]:
    """The next ticks, with what is unusual about each."""
    zone, shift = zone_of(spec.tz), delay(spec)
    windows = windows_of(spec.windows, spec.tz)
    found = []
    for tick in islice(times_of(spec.timing, spec.tz).after(now - shift), count):
        due = tick + shift
        notes = []
        change = _clock_change(due.astimezone(zone))
        if change:
            notes.append(f"the clocks go {'forward' if change > timedelta(0) else 'back'} that day")
        reopens = windows.reopens(due)
        if reopens is not None:
            until = reopens.astimezone(zone)
            notes.append(
                f"in a maintenance window until {until:%Y-%m-%d %H:%M}, then misfire={spec.misfire.value}"
            )
        found.append(Upcoming(tick, due, due.astimezone(zone), "; ".join(notes)))
    return found


def _clock_change(local: datetime) -> timedelta:
    """By how much the clocks are moved on the day of this local time."""
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    before, after = midnight.utcoffset(), (midnight + timedelta(days=1)).utcoffset()
    assert before is not None
    assert after is not None
    return after - before


def _foreseen(record: ScheduleRecord, tick: datetime, taken: Collection[datetime]) -> Fate:
    """What a backfill would make of a tick."""
    if tick in taken:
        return Fate.ALREADY
    if record.forgotten_until is not None and tick <= record.forgotten_until:
        return Fate.FORGOTTEN
    return Fate.ENQUEUED


def past_ticks(spec: ScheduleSpec, begin: datetime, end: datetime, now: datetime) -> list[datetime]:
    """Every tick of a range in the past, or `ScheduleError` if it is no such range."""
    if begin.tzinfo is None or end.tzinfo is None:
        raise ScheduleError("the range of a backfill needs moments with a time zone, such as tzinfo=UTC.")
    if end < begin:
        raise ScheduleError(
            f"the range ends ({end.isoformat()}) before it begins ({begin.isoformat()}). Turn it round."
        )
    if end > now:
        raise ScheduleError(
            f"the range ends in the future ({end.isoformat()}); only ticks of the past can be made good. "
            "`rota schedules run` enqueues one now."
        )
    # No computer ticked before 1970, and the calendar ends (in an error) with the year 1.
    start = max(begin, EPOCH).astimezone(UTC) - timedelta(microseconds=1)
    ticks = list(
        islice(takewhile(lambda tick: tick <= end, times_of(spec.timing, spec.tz).after(start)), MOST + 1)
    )
    if len(ticks) > MOST:
        raise ScheduleError(f"the range holds more than {MOST:,} ticks. Backfill a part of it at a time.")
    return ticks


def altered(record: ScheduleRecord, edits: Edits, back: Collection[str] = ()) -> Edits:
    """What operators said of it before and now together; of the fields in `back`, nothing any more."""
    return record.edits._replace(**(dict.fromkeys(back) | edits.said))


def _as_it_is(record: ScheduleRecord) -> ScheduleChange:
    return ScheduleChange(record.name, record.version, record.edits, record.paused_at is not None)


def _words(record: ScheduleRecord, change: ScheduleChange | None = None) -> str:
    """The operators' part of a schedule, for the audit."""
    edits = record.edits if change is None else change.edits
    paused = record.paused_at is not None if change is None else change.paused
    said: dict[str, Any] = edits.said
    if edits.payload_json is not None:
        said["payload_json"] = redacted_json(edits.payload_json)
    return ", ".join(["paused" if paused else "active", *(f"{name}={value}" for name, value in said.items())])


def check_job(name: str, edits: Edits) -> None:
    """Refuse what no job could have, before every tick fails by it."""
    said = edits.said
    try:
        options.terms({option: said[option] for option in said if option in {"queue", "priority"}})
    except (ValueError, TypeError) as error:
        raise ScheduleError(f"schedule {name!r} cannot be edited so: {error}") from None
    if edits.payload_json is None:
        return
    trouble = problem(edits.payload_json)
    if trouble is None and not isinstance(json.loads(edits.payload_json), dict):
        trouble = "arguments are a JSON object"
    if trouble is not None:
        raise ScheduleError(f"the arguments of schedule {name!r} cannot be stored: {trouble}.")
