"""Did the nightly run happen? The ticks of thirty days: one mark each, or one a day where they are too many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from rota._core.job import State
from rota._core.schedule import Fate, Origin, ScheduleSpec, TickDay, TickRecord
from rota._core.schedule_plan import Times, delay
from rota.errors import ScheduleError
from rota.schedule_times import times_of
from rota.web.pages.ticks import Mark, has, marked

if TYPE_CHECKING:
    from rota.stores.contract import Store

DAYS = 30
ONE_BY_ONE = 400
"""Of a schedule that ticks more often in that time, each day is one mark."""
COUNTED = 100_000
"""So many ticks are counted at most; what ticks more often than twice a minute is shown for fewer days."""
RANKS = ("dead", "missed", "skipped", "late", "completed", "cancelled", "unfinished", "no longer kept")
"""What may be said of ticks, the worst first: it gives the day its colour."""
TONES = ("bad", "hollow", "hollow", "warn", "ok", "off", "warn", "off")
WORDS = {
    State.COMPLETED: "completed",
    State.PARTIAL: "completed",
    State.DEAD: "dead",
    State.CANCELLED: "cancelled",
    None: "no longer kept",
}


class DayMark(NamedTuple):
    """One day of a schedule that ticks often; the worst that happened gives it its colour."""

    day: date
    tone: str
    word: str
    job_id: None = None

    @property
    def when(self) -> str:
        return self.day.isoformat()

    @property
    def title(self) -> str:
        return f"{self.when}: {self.word}"


async def month_of(
    store: Store, spec: ScheduleSpec, now: datetime
) -> tuple[bool, Sequence[Mark] | Sequence[DayMark]]:
    """The last thirty days, oldest first; and whether each mark is a day."""
    since = now - timedelta(days=DAYS)
    ticks = await store.ticks(spec.name, limit=ONE_BY_ONE)
    full = len(ticks) == ONE_BY_ONE and ticks[-1].tick > since
    begun = max(since, ticks[-1].tick) if ticks else now  # of what was before its first tick nothing is drawn
    if not full and _times_in(spec, begun, now) <= ONE_BY_ONE:
        return False, [mark for mark in marked(spec, ticks, now, ONE_BY_ONE) if mark.tick >= since]
    first = datetime.combine((now - timedelta(days=DAYS - 1)).astimezone(UTC).date(), time(), UTC)
    late = spec.grace + delay(spec).total_seconds()
    days = _whole(await store.tick_days(spec.name, first, late=late, limit=COUNTED))
    # Counting the times of a month takes a while for what ticks each minute: others are answered meanwhile.
    return True, await asyncio.to_thread(folded, spec, days, ticks, first, now)


def _whole(days: Sequence[TickDay]) -> Sequence[TickDay]:
    """Without the day in which counting stopped, unless it is all there is."""
    if sum(one.ticks for one in days) < COUNTED:
        return days
    begun = min(one.day for one in days)
    return [one for one in days if one.day > begun] or days


def folded(
    spec: ScheduleSpec, days: Sequence[TickDay], ticks: Sequence[TickRecord], first: datetime, now: datetime
) -> list[DayMark]:
    """One mark a day. Before the first tick that is known, and of other times than it has now, nothing was missed."""
    said: dict[date, Counter[str]] = {}
    for one in days:
        said.setdefault(one.day, Counter())[_word(one)] += one.ticks
    for day, missed in _missed(spec, days, ticks, first, now):
        said.setdefault(day, Counter())["missed"] += missed
    return [_mark(day, counts) for day, counts in sorted(said.items())]


def _word(one: TickDay) -> str:
    if one.fate is Fate.OVERLAP:
        return "skipped"
    word = WORDS.get(one.state, "unfinished")
    return "late" if one.late and word == "completed" else word


def _mark(day: date, counts: Counter[str]) -> DayMark:
    there = [(word, counts[word]) for word in RANKS if counts[word]]
    worst = RANKS.index(there[0][0])
    return DayMark(day, TONES[worst], ", ".join(f"{number:,} {word}" for word, number in there))


def _missed(
    spec: ScheduleSpec, days: Sequence[TickDay], ticks: Sequence[TickRecord], first: datetime, now: datetime
) -> Iterator[tuple[date, int]]:
    """How many ticks of each day nobody took."""
    until = now - timedelta(seconds=spec.grace) - delay(spec)
    try:
        times = times_of(spec.timing, spec.tz)
    except ScheduleError:  # its zone is unknown here
        return
    own = [one for one in days if one.origin is not Origin.RUN]
    older = any(tick.tick < first and tick.origin is not Origin.RUN for tick in ticks)
    if not own and not older:
        return
    begin = first.date() if older else min(one.day for one in own) + timedelta(days=1)
    strange = [one.day for one in own if not has(times, one.newest)]
    if strange:  # it ticked at other times then
        begin = max(begin, max(strange) + timedelta(days=1))
    taken: Counter[date] = Counter()
    for one in own:
        taken[one.day] += one.ticks
    while begin <= until.date():
        missed = _due(spec, begin, until) - taken[begin]
        if missed > 0:
            yield begin, missed
        begin += timedelta(days=1)


def _due(spec: ScheduleSpec, day: date, until: datetime) -> int:
    start = datetime.combine(day, time(), UTC)
    if until >= start + timedelta(days=1):
        return _due_in_a_day(spec.timing, spec.tz, day)
    return _count(times_of(spec.timing, spec.tz), start, until)


@lru_cache(maxsize=5_000)
def _due_in_a_day(timing: str, tz: str, day: date) -> int:
    start = datetime.combine(day, time(), UTC)
    return _count(times_of(timing, tz), start, start + timedelta(days=1) - timedelta(microseconds=1))


def _count(times: Times, start: datetime, until: datetime) -> int:
    begin = start - timedelta(microseconds=1)
    return sum(1 for _ in takewhile(lambda tick: tick <= until, times.after(begin)))


def _times_in(spec: ScheduleSpec, since: datetime, now: datetime) -> int:
    """How often it ticks in this time; not counted further than it matters."""
    try:
        times = times_of(spec.timing, spec.tz)
    except ScheduleError:
        return 0
    return sum(1 for _ in islice(takewhile(lambda tick: tick <= now, times.after(since)), ONE_BY_ONE + 1))
