"""When a schedule ticks, and when it may not: cron expressions and intervals in a time zone, and maintenance windows.

Cron arithmetic is cronsim's. A schedule with a time of day (`30 2 * * *`) keeps
it over changes of the clocks: a time that is skipped ticks once, at the end of
the gap, and a time that comes twice ticks the first time. One for every hour
(`*/10 * * * *`) and every interval follow real time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from rota._core.durations import seconds
from rota.errors import ScheduleError

SHORTEST = 1.0
"""Seconds between two ticks, at least."""
LONGEST_WINDOW = 7 * 86_400.0
EVERY = "every "
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOPS = 1000
"""Windows in a row that are walked through; more leave no time open."""
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
HOW = 'Write five fields such as "30 2 * * *" (minute hour day month weekday), or every("5m").'


class CronTimes:
    """The ticks of a cron expression in a zone."""

    def __init__(self, text: str, zone: tzinfo) -> None:
        self.text, self._zone = text, zone
        self._expression = _by_time_of_day(text)

    def after(self, moment: datetime) -> Iterator[datetime]:
        from cronsim import CronSim

        last = moment
        for local in CronSim(self._expression, moment.astimezone(self._zone)):
            tick = local.astimezone(UTC)
            # In an hour that comes twice cronsim begins with its first coming, which may be past.
            if tick > last:
                last = tick
                yield tick

    def words(self) -> str:
        """In plain English."""
        from cronsim import CronSim

        return CronSim(self.text, EPOCH).explain()


class IntervalTimes:
    """Ticks at a fixed distance, counted from 1970 in UTC: the same wherever and whenever one begins."""

    def __init__(self, text: str, length: float) -> None:
        self.text, self.length = text, length
        self._micros = round(length * 1_000_000)

    def after(self, moment: datetime) -> Iterator[datetime]:
        number = (moment - EPOCH) // timedelta(microseconds=self._micros)
        while True:
            number += 1
            yield EPOCH + timedelta(microseconds=number * self._micros)

    def words(self) -> str:
        return f"Every {self.text.removeprefix(EVERY).strip()}"


def zone_of(name: str) -> tzinfo:
    """The time zone of this name."""
    if name.upper() in ("UTC", "ETC/UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        known = available_timezones()
        # Cities are what people mistype: London, europe/berlin, Berlin.
        by_city = {zone.rpartition("/")[2].lower(): zone for zone in sorted(known)}
        by_name = {zone.lower(): zone for zone in known}
        text = str(name).strip().lower()
        near = by_name.get(text) or by_city.get(text.replace(" ", "_"))
        near = near or next((by_name[close] for close in get_close_matches(text, by_name, n=1)), None)
        hint = f"did you mean {near!r}?" if near else 'zones are named like "Europe/Berlin".'
        if not known:
            hint = "this machine has no time zones at all: pip install tzdata."
        raise ScheduleError(f"there is no time zone {name!r}; {hint}") from None


@lru_cache(maxsize=1024)
def times_of(timing: str, tz: str) -> CronTimes | IntervalTimes:
    """When a schedule ticks, or `ScheduleError` if it cannot be read."""
    zone = zone_of(tz)
    text = " ".join(timing.split())
    if text.lower().startswith(EVERY):
        return IntervalTimes(text, _interval(text[len(EVERY) :]))
    text = ALIASES.get(text.lower(), text)
    _check_cron(text, timing)
    return CronTimes(text, zone)


def _interval(text: str) -> float:
    try:
        length = seconds(float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text, "every(…)")
    except ValueError as error:
        raise ScheduleError(str(error)) from None
    if length < SHORTEST:
        raise ScheduleError(
            f"every({text!r}) is too frequent: a schedule ticks at most once a second. For a steady flow let "
            "one job do the work of many ticks, or enqueue from your own loop."
        )
    return length


def _check_cron(text: str, given: str) -> None:
    from cronsim import CronSim, CronSimError

    fields = len(text.split())
    if text.startswith("@"):
        raise ScheduleError(f"the schedule {given!r} is not known; there are {', '.join(ALIASES)}. {HOW}")
    if fields == 6:
        raise ScheduleError(
            f"the schedule {given!r} has six fields, and seconds are too frequent for cron. "
            'Leave the first one out, or write every("10s").'
        )
    if fields != 5:
        raise ScheduleError(f"the schedule {given!r} has {fields} fields instead of five. {HOW}")
    try:
        soonest = next(CronSim(_by_time_of_day(text), EPOCH), None)
    except CronSimError as error:
        raise ScheduleError(f"the schedule {given!r} cannot be read: {str(error).lower()}. {HOW}") from None
    if soonest is None:
        raise ScheduleError(f"the schedule {given!r} never ticks: no date fits it. {HOW}")


def _by_time_of_day(text: str) -> str:
    """Tell cronsim which expressions keep their time of day over changes of the clocks: all but those for every hour.

    It looks whether the fields for minutes and hours begin with a star.
    """
    fields = text.split()
    if len(fields) != 5 or fields[1] == "*":
        return text
    minute, hour, *rest = fields
    return " ".join([re.sub(r"^\*", "0-59", minute), re.sub(r"^\*", "0-23", hour), *rest])


class Span(NamedTuple):
    """One time in which nothing ticks."""

    start: datetime
    end: datetime


class Window:
    """A maintenance window that comes again and again, or once."""

    def __init__(
        self, length: timedelta, *, times: CronTimes | IntervalTimes | None = None, once: Span | None = None
    ) -> None:
        self._times, self._length, self._once = times, length, once

    def between(self, begin: datetime, end: datetime) -> Iterator[Span]:
        """Its spans that have a part in (begin, end), oldest first."""
        if self._once is not None:
            if self._once.start < end and self._once.end > begin:
                yield self._once
            return
        assert self._times is not None
        for start in self._times.after(begin - self._length):
            if start >= end:
                return
            yield Span(start, start + self._length)


class Windows:
    """All windows of a schedule."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self._windows = windows

    def reopens(self, moment: datetime) -> datetime | None:
        """When the window ends that `moment` lies in, with those that follow at once; None: it lies in none."""
        end = moment
        for _ in range(HOPS):
            later = max(
                (span.end for span in self._between(end, end + _INSTANT) if span.start <= end), default=end
            )
            if later == end:
                break
            end = later
        return None if end == moment else end

    def back(self, moment: datetime, seconds: float) -> datetime:
        """The moment `seconds` before, not counting time inside windows."""
        left = timedelta(seconds=seconds)
        for _ in range(HOPS):
            before = [span for span in self._between(moment - left, moment) if span.start < moment]
            if not before:
                break
            start, end = max(before, key=lambda span: (span.end, -span.start.timestamp()))
            left -= max(moment - end, timedelta(0))
            moment = start
        return moment - left

    def _between(self, begin: datetime, end: datetime) -> Iterator[Span]:
        for window in self._windows:
            yield from window.between(begin, end)


_INSTANT = timedelta(microseconds=1)
_WINDOW_HOW = 'Write "0 1 * * SUN for 2h", or "2026-03-01T01:00 to 2026-03-01T05:00".'


@lru_cache(maxsize=1024)
def windows_of(texts: tuple[str, ...], tz: str) -> Windows:
    """The windows of a schedule in its zone, or `ScheduleError` if one cannot be read."""
    windows = Windows([_window(text, tz) for text in texts])
    # Begins inside some window, so that windows which never end are found.
    for text in texts:
        start = next(iter(_window(text, tz).between(EPOCH, datetime.max.replace(tzinfo=UTC))), None)
        if start is not None:
            end = windows.reopens(start.start)
            if end is not None and windows.reopens(end) is not None:
                raise ScheduleError(
                    f"the window {text!r} leaves no time in which the schedule may tick. {_WINDOW_HOW}"
                )
    return windows


def _window(text: str, tz: str) -> Window:
    parts = re.split(r"\s+(for|to)\s+", text.strip())
    if len(parts) != 3:
        raise ScheduleError(f"the window {text!r} is not understood. {_WINDOW_HOW}")
    begin, word, rest = parts
    start = _moment(begin, tz)
    if word == "to":
        end = _moment(rest, tz)
        if start is None or end is None or end <= start:
            raise ScheduleError(
                f"the window {text!r} needs two moments, the earlier one first. {_WINDOW_HOW}"
            )
        return Window(end - start, once=Span(start, end))
    try:
        length = seconds(rest, "a window's length")
    except ValueError as error:
        raise ScheduleError(f"the window {text!r} cannot be used: {error}") from None
    if not 0 < length <= LONGEST_WINDOW:
        raise ScheduleError(
            f"the window {text!r} must be longer than nothing and at most 7 days. Pause the schedule for longer times."
        )
    lasts = timedelta(seconds=length)
    if start is not None:
        return Window(lasts, once=Span(start, start + lasts))
    return Window(lasts, times=times_of(begin, tz))


def _moment(text: str, tz: str) -> datetime | None:
    """An ISO moment, in the schedule's zone unless it names one; None: it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone_of(tz))).astimezone(UTC)
