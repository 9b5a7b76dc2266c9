"""Minutes that sessions report, and what they make together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from rota._core.job import State
from rota._core.numbers import (
    KEPT,
    MERGED_AFTER,
    OPEN,
    Figures,
    Minute,
    added,
    added_lanes,
    added_tenants,
    minute_of,
)
from rota.stores.memory.book import Book
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
        del book.minutes[name]
    return len(closed)


def figures(book: Book, since: float, now: datetime) -> Figures:
    """All minutes from then on, added up."""
    start = minute_of(now - timedelta(seconds=since))
    found = [minute for (at, _), minute in book.minutes.items() if at >= start]
    return Figures(start, now, *_together(found))


def heads(book: Book) -> list[Head]:
    """The oldest waiting job of each queue."""
    oldest: dict[str, datetime] = {}
    for job in book.in_state(State.PENDING):
        if job.parked is None:
            oldest[job.queue] = min(job.run_at, oldest.get(job.queue, job.run_at))
    return [Head(queue, oldest[queue]) for queue in sorted(oldest)]


def _together(minutes: Iterable[Minute]) -> tuple[tuple, tuple, tuple]:  # type: ignore[type-arg]
    several = list(minutes)
    return (
        added(total for minute in several for total in minute.totals),
        added_tenants(total for minute in several for total in minute.tenants),
        added_lanes(total for minute in several for total in minute.lanes),
    )
