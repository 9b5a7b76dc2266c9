"""Lengths of time, moments and numbers as people say them. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta


def span(length: timedelta | float) -> str:
    """A length of time in at most two units: `1.2s`, `3m 20s`, `2d 4h`."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 0.9995:
        return f"{round(seconds * 1000)}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s".replace(".0s", "s")
    whole = round(seconds)
    for size, unit, smaller, lesser in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f" {rest}{lesser}" if rest else "")
    return f"{whole}s"


def ago(moment: datetime | None, now: datetime) -> str:
    """A moment as people say it: `3m ago`, `in 5m`, `now`."""
    if moment is None:
        return ""
    passed = (now - moment).total_seconds()
    if abs(passed) < 1:
        return "now"
    return f"{_coarse(passed)} ago" if passed > 0 else f"in {_coarse(-passed)}"


def _coarse(seconds: float) -> str:
    return span(float(round(seconds))).split(" ")[0]


def last(seconds: float) -> str:
    """How far back numbers reach, after "in the last": `hour`, `5 minutes`, `2 days`, `1h 30m`."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            return unit if seconds == size else f"{seconds // size:.0f} {unit}s"
    return span(seconds)


def percent(share: float) -> str:
    """A share as people read it: `31 %`, `2.0 %`, `0 %`."""
    hundredths = share * 100
    return f"{hundredths:.0f} %" if hundredths >= 9.95 or hundredths == 0 else f"{hundredths:.1f} %"


def many(number: int, noun: str) -> str:
    """`1 job`, `2 jobs`, `1,284 jobs`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(number: float) -> str:
    """Bytes: `4.2 kB`."""
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
