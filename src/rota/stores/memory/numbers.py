"""Minutes that sessions report, and what they make together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from rota._core.depths import Depths, sampled, sliced
from rota._core.job import State
from rota._core.numbers import (
    HOURS_KEPT,
    KEPT,
    MERGED_AFTER,
    OPEN,
    Figures,
    Minute,
    Total,
    added,
    added_lanes,
    added_tenants,
    begins,
    hour_of,
    minute_of,
)
from rota._core.series import Series, Slice, TenantSeries, by_tenant, starts
from rota.stores.memory.book import Book
from rota.stores.memory.reading import counts
from rota.stores.numbers_contract import Head

MERGED = UUID(int=0)
"""Stands for all sessions together."""


def note(book: Book, session: UUID, minutes: Sequence[Minute], now: datetime) -> None:
    """Keep a session's last word on each minute that is still open."""
    for minute in minutes:
        if minute.start > now - OPEN:
            book.minutes[minute.start, session] = minute


def roll(book: Book, now: datetime) -> int:
    """Merge closed minutes, and drop old ones."""
    closed = {start for start, session in book.minutes if session != MERGED and start <= now - MERGED_AFTER}
    for start in closed:
        names = [name for name in book.minutes if name[0] == start]
        whole = _together([book.minutes.pop(name) for name in names])
        book.minutes[start, MERGED] = Minute(start, *whole)
    for name in [name for name in book.minutes if name[0] <= now - KEPT]:
        minute, hour = book.minutes.pop(name), hour_of(name[0])
        book.hours[hour] = Minute(hour, *_together([minute, book.hours.get(hour, Minute(hour))]))
    for at in [at for at in book.depths if at <= now - KEPT]:
        del book.depths[at]
    for hour in [hour for hour in book.hours if hour < now - HOURS_KEPT]:
        del book.hours[hour]
    return len(closed)


def figures(book: Book, since: float, now: datetime) -> Figures:
    """All minutes from then on, added up."""
    start = begins(now, since)
    return Figures(start, now, *_together(_from(book, start)))


def series(
    book: Book, since: float, step: float, now: datetime, *, queue: str | None, task: str | None
) -> Series:
    """The same, slice by slice."""
    begin = starts(now, since, step)
    found: dict[datetime, list[Total]] = {start: [] for start in begin}
    for minute in _from(book, begin[0]):
        start = begin[0] + (minute.start - begin[0]) // timedelta(seconds=step) * timedelta(seconds=step)
        wanted = [one for one in minute.totals if queue in (None, one.queue) and task in (None, one.task)]
        found.get(start, []).extend(wanted)
    slices = tuple(Slice(start, added(totals)) for start, totals in found.items())
    return Series(begin[0], now, step, slices)


def tenant_series(book: Book, since: float, step: float, now: datetime, top: int) -> TenantSeries:
    """For whom attempts ran, slice by slice."""
    begin = starts(now, since, step)
    rows = [
        ((minute.start - begin[0]) // timedelta(seconds=step), total.tenant, total.run_sum)
        for minute in _from(book, begin[0])
        for total in minute.tenants
    ]
    return by_tenant(begin, now, step, rows, top)


def heads(book: Book) -> list[Head]:
    """The oldest waiting job of each queue."""
    oldest: dict[str, datetime] = {}
    for job in book.in_state(State.PENDING):
        if job.parked is None:
            oldest[job.queue] = min(job.run_at, oldest.get(job.queue, job.run_at))
    return [Head(queue, oldest[queue]) for queue in sorted(oldest)]


def note_depths(book: Book, now: datetime) -> bool:
    """Look how deep the queues are, unless somebody did in this minute."""
    minute = minute_of(now)
    if minute in book.depths:
        return False
    counted = [(count.queue, count.state.value, count.jobs, count.retrying) for count in counts(book)]
    book.depths[minute] = sampled(counted, heads(book), now)
    return True


def depths(book: Book, since: float, step: float, now: datetime) -> Depths:
    """How deep they were, slice by slice."""
    begin = starts(now, since, step)
    ends = [*begin[1:], now + timedelta(seconds=step)]
    slices = (
        sliced(start, (sample for at, sample in book.depths.items() if start <= at < end))
        for start, end in zip(begin, ends, strict=True)
    )
    return Depths(begin[0], now, step, tuple(slices))


def _from(book: Book, start: datetime) -> list[Minute]:
    hours = [hour for at, hour in book.hours.items() if at >= start]
    return hours + [minute for (at, _), minute in book.minutes.items() if at >= start]


def _together(minutes: Iterable[Minute]) -> tuple[tuple, tuple, tuple]:  # type: ignore[type-arg]
    several = list(minutes)
    return (
        added(total for minute in several for total in minute.totals),
        added_tenants(total for minute in several for total in minute.tenants),
        added_lanes(total for minute in several for total in minute.lanes),
    )
