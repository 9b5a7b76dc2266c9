"""Schedules: what code declares, what operators change, and ticks that become jobs once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from rota._core.actions import Audit
from rota._core.job import State
from rota._core.schedule import (
    Fate,
    Fired,
    Firing,
    Origin,
    Overlap,
    Roster,
    ScheduleChange,
    ScheduleRecord,
    ScheduleSpec,
    TickDay,
    TickJob,
    TickRecord,
)
from rota.stores.memory.book import Book
from rota.stores.memory.enqueueing import enqueue

REMEMBERED = 100
SEEN_EVERY = timedelta(minutes=1)


def publish(book: Book, specs: Sequence[ScheduleSpec], now: datetime) -> None:
    """Note what the code says. Other times count from now."""
    for spec in specs:
        before = book.plans.records.get(spec.name)
        if before is None:
            record = ScheduleRecord(spec, 1, cursor=now, published_at=now, seen_at=now)
        else:
            record = before._replace(spec=spec, published_at=now, seen_at=now)
            if spec != before.spec:
                record = record._replace(version=before.version + 1)
            if _times(record) != _times(before):
                record = record._replace(cursor=max(now, before.cursor))
        book.plans.records[spec.name] = record


def roster(book: Book, declared: Sequence[str] | None, now: datetime) -> Roster:
    records = book.plans.records
    for name in declared or ():
        if name in records and now - records[name].seen_at >= SEEN_EVERY:
            records[name] = records[name]._replace(seen_at=now)
    names = sorted(records) if declared is None else sorted(set(declared) & records.keys())
    return Roster(now, tuple(records[name] for name in names))


def fire(book: Book, firing: Firing, audit: Audit | None, now: datetime) -> list[Fired]:
    """Turn ticks into jobs."""
    record = book.plans.records.get(firing.schedule)
    by_hand = firing.origin is not Origin.TICK
    if record is None or (not by_hand and (record.version != firing.version or record.paused_at is not None)):
        return [Fired(given.tick, Fate.STALE) for given in firing.ticks]
    taken = {given.tick for given in firing.ticks if _taken(book, record.name, given.tick)}
    unfinished = [job_id for job_id in book.plans.open_jobs.get(record.name, ()) if _unfinished(book, job_id)]
    fired = [
        _fire_one(book, record, given, firing.origin, unfinished=unfinished, now=now)
        for given in firing.ticks
    ]
    upto = firing.cursor
    for one in fired:
        if upto is not None and one.fate is Fate.EARLY:
            upto = min(upto, one.tick - timedelta(microseconds=1))
    if upto is not None and upto > record.cursor:
        book.plans.records[record.name] = record._replace(cursor=upto)
    book.plans.open_jobs[record.name] = unfinished[-REMEMBERED:]
    if audit is not None and any(one.job_id is not None and one.tick not in taken for one in fired):
        book.tell(audit, now)
    return fired


def _fire_one(
    book: Book,
    record: ScheduleRecord,
    given: TickJob,
    origin: Origin,
    *,
    unfinished: list[UUID],
    now: datetime,
) -> Fired:
    tick, by_hand = given.tick, origin is not Origin.TICK
    known = book.plans.ticks.get((record.name, tick))
    if given.due > now:
        return Fired(tick, Fate.EARLY)
    if known is not None and known.job_id is not None:
        # The very same call again, after a lost answer, is answered as before.
        same = known.job_id == given.job.id
        return Fired(tick, Fate.ENQUEUED if same else Fate.ALREADY, known.job_id)
    if record.forgotten_until is not None and tick <= record.forgotten_until:
        return Fired(tick, Fate.FORGOTTEN)
    if not by_hand and tick <= record.cursor:
        return Fired(tick, Fate.ALREADY)
    if not by_hand and record.effective.overlap is Overlap.SKIP and unfinished:
        left_out = TickRecord(tick, origin, Fate.OVERLAP, None, now, None)
        book.plans.ticks.setdefault((record.name, tick), left_out)
        return Fired(tick, Fate.OVERLAP)
    answer = enqueue(book, given.job, now)
    fate = Fate.ENQUEUED if answer.created else Fate.DUPLICATE
    book.plans.ticks[record.name, tick] = TickRecord(tick, origin, fate, answer.id, now, None)
    if origin is not Origin.BACKFILL:
        unfinished.append(answer.id)
    return Fired(tick, fate, answer.id)


def change(book: Book, change: ScheduleChange, audit: Audit, now: datetime) -> ScheduleRecord | None:
    """What an operator wants, if the version still holds."""
    record = book.plans.records.get(change.name)
    if record is None or record.version != change.version:
        return None
    record = record._replace(version=record.version + 1, edits=change.edits)
    if not change.paused:
        record = record._replace(paused_at=None, paused_by=None, paused_because=None)
    elif record.paused_at is None:
        record = record._replace(paused_at=now, paused_by=audit.actor, paused_because=change.reason)
    if change.restart:
        record = record._replace(cursor=max(now, record.cursor))
    book.plans.records[change.name] = record
    book.tell(audit, now)
    return record


def delete(book: Book, name: str, version: int, audit: Audit, now: datetime) -> bool:
    """Forget an absent schedule, if the version still holds."""
    record = book.plans.records.get(name)
    if record is None or record.version != version or not record.absent(now):
        return False
    del book.plans.records[name]
    book.plans.open_jobs.pop(name, None)
    for key in [key for key in book.plans.ticks if key[0] == name]:
        del book.plans.ticks[key]
    book.tell(audit, now)
    return True


def ticks(book: Book, schedule: str, limit: int) -> list[TickRecord]:
    """The newest ticks, with what their jobs are now."""
    mine = sorted(key for key in book.plans.ticks if key[0] == schedule)
    found = [book.plans.ticks[key] for key in reversed(mine[-limit:])]
    return [one._replace(state=_state(book, one.job_id)) for one in found]


def tick_days(book: Book, schedule: str, since: datetime, late: float, limit: int) -> list[TickDay]:
    """What became of the newest ticks since a moment, by day."""
    found: dict[tuple[date, Origin, Fate, bool, str], TickDay] = {}
    for one in reversed(ticks(book, schedule, limit)):
        if one.tick < since:
            continue
        was_late = one.origin is Origin.TICK and one.at > one.tick + timedelta(seconds=late)
        day = TickDay(one.tick.astimezone(UTC).date(), one.origin, one.fate, was_late, one.state, 0, one.tick)
        before = found.get((*day[:4], day.state or ""), day)
        found[(*day[:4], day.state or "")] = before._replace(ticks=before.ticks + 1, newest=one.tick)
    return list(found.values())


def forget(book: Book, before: datetime, kept: int) -> int:
    """Let old ticks go, and remember up to where: what is not known must not be enqueued again."""
    gone = 0
    for name, record in list(book.plans.records.items()):
        mine = sorted(key for key in book.plans.ticks if key[0] == name)
        old = [key for key in mine[: max(0, len(mine) - kept)] if key[1] <= before]
        for key in old:
            del book.plans.ticks[key]
        if old:
            book.plans.records[name] = record._replace(forgotten_until=old[-1][1])
        gone += len(old)
    return gone


def _taken(book: Book, schedule: str, tick: datetime) -> bool:
    known = book.plans.ticks.get((schedule, tick))
    return known is not None and known.job_id is not None


def _times(record: ScheduleRecord) -> tuple[str, str]:
    return record.effective.timing, record.effective.tz


def _unfinished(book: Book, job_id: UUID) -> bool:
    state = _state(book, job_id)
    return state is not None and not state.terminal


def _state(book: Book, job_id: UUID | None) -> State | None:
    job = book.jobs.get(job_id) or book.archive.get(job_id) if job_id is not None else None
    return None if job is None else job.state
