"""Which ticks become jobs now: those that are on time, and of the missed ones what the policy says. Pure."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple, Protocol

from rota._core.schedule import Misfire, ScheduleSpec

AT_ONCE = 500
"""Ticks that become jobs in one round; the rest follows in the next."""


class Times(Protocol):
    """When a schedule ticks, whoever asks and from wherever one begins to count."""

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Every tick later than `moment`, oldest first, in UTC."""
        ...


class Closing(Protocol):
    """The maintenance windows of a schedule, seen as one."""

    def reopens(self, moment: datetime) -> datetime | None:
        """When the window ends that `moment` lies in; None: it lies in none."""
        ...

    def back(self, moment: datetime, seconds: float) -> datetime:
        """The moment `seconds` before, not counting time inside windows."""
        ...


class Plan(NamedTuple):
    """What to do for a schedule now."""

    ticks: tuple[datetime, ...]
    """These become jobs, oldest first."""
    cursor: datetime | None
    """Every tick up to here is decided then; None: nothing changes."""
    look_at: datetime | None
    """Nothing happens before; None: it never ticks again."""
    missed: bool = False
    """Whether ticks were missed, whatever becomes of them."""


def plan(spec: ScheduleSpec, cursor: datetime, now: datetime, times: Times, closing: Closing) -> Plan:
    """Decide about every tick after `cursor` that is due at `now`.

    A tick is on time while it is not later than the grace and was not due inside
    a window; any other is missed. Inside a window nothing is decided.
    """
    reopens = closing.reopens(now)
    if reopens is not None:
        return Plan((), None, reopens)
    shift = delay(spec)
    last = now - shift
    soon = closing.back(now, spec.grace) - shift - timedelta(microseconds=1)
    on_time = [
        tick
        for tick in takewhile(lambda tick: tick <= last, times.after(max(cursor, soon)))
        if closing.reopens(tick + shift) is None
    ]
    wanted = spec.cap if spec.misfire is Misfire.ALL else 1
    newest = newest_ticks(times, cursor, last, len(on_time) + wanted)
    missed = sorted(set(newest) - set(on_time))
    chosen = on_time
    if spec.misfire is Misfire.ALL:
        chosen = sorted({*missed[-wanted:], *on_time})
    elif spec.misfire is Misfire.LAST and not on_time:
        chosen = missed[-1:]
    if len(chosen) > AT_ONCE:
        return Plan(tuple(chosen[:AT_ONCE]), chosen[AT_ONCE - 1], now, bool(missed))
    upcoming = next(times.after(last), None)
    return Plan(
        tuple(chosen),
        newest[-1] if newest else None,
        None if upcoming is None else upcoming + shift,
        bool(missed),
    )


def newest_ticks(times: Times, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The newest ticks in (after, until], oldest first. Looks back no further than it must, however long that is."""
    span = timedelta(hours=1)
    while True:
        start = max(after, until - span)
        found = deque(takewhile(lambda tick: tick <= until, times.after(start)), maxlen=limit)
        if len(found) == limit or start <= after:
            return list(found)
        span *= 4


def delay(spec: ScheduleSpec) -> timedelta:
    """How much later than its tick a schedule is due: always the same, so that all schedulers agree."""
    share = int.from_bytes(hashlib.sha256(spec.name.encode()).digest()[:8]) / 2**64
    return timedelta(seconds=round(spec.jitter * share, 3))
