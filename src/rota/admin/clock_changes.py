"""Schedules whose time of day is skipped, or comes twice, when the clocks change. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from rota._core.schedule import ScheduleSpec
from rota.errors import ScheduleError
from rota.schedule_times import IntervalTimes, times_of, zone_of
from rota.stores.contract import Finding

YEAR = timedelta(days=366)
LOOK = timedelta(minutes=15)
"""Clocks change at quarters of an hour, everywhere."""


class Turn(NamedTuple):
    """One change of a zone's clocks: the local times that are skipped, or that come twice."""

    begins: datetime
    ends: datetime
    """Both without a zone: what a clock on the wall shows, or does not."""
    skipped: bool


def clock_findings(specs: Sequence[ScheduleSpec], now: datetime) -> list[Finding]:
    """One for each schedule that a change of the clocks within a year meets; what it does then is known, and told."""
    found = [finding for spec in specs for finding in _met(spec, now)]
    return found or [Finding("ok", "clocks: no schedule falls into an hour that is skipped or comes twice")]


def _met(spec: ScheduleSpec, now: datetime) -> Iterator[Finding]:
    try:
        zone, times = zone_of(spec.tz), times_of(spec.timing, "UTC")
    except ScheduleError:  # its zone is unknown here, or other code wrote it
        return
    if isinstance(times, IntervalTimes) or times.text.split()[1] == "*":
        return  # it follows real time
    for turn in _turns(zone, now):
        meant = next(times.after(turn.begins.replace(tzinfo=UTC) - timedelta(microseconds=1)), None)
        if meant is not None and meant.replace(tzinfo=None) < turn.ends:
            what = (
                "is skipped, and it ticks once, at the end of the gap"
                if turn.skipped
                else "comes twice, and it ticks the first time only"
            )
            yield Finding(
                "ok",
                f"clocks: schedule {spec.name!r}: {meant:%H:%M} {spec.tz} on {meant:%Y-%m-%d} {what}",
                f"If that is not meant: `rota schedules edit {shlex.quote(spec.name)}` with another time, or UTC.",
            )
            return


def _turns(zone: tzinfo, now: datetime) -> Iterator[Turn]:
    moment = now.replace(minute=0, second=0, microsecond=0)
    before = moment.astimezone(zone).utcoffset() or timedelta(0)
    end = now + YEAR
    while moment < end:
        day = moment + timedelta(days=1)
        after = day.astimezone(zone).utcoffset() or timedelta(0)
        if after != before:
            turned = moment
            while (turned.astimezone(zone).utcoffset() or timedelta(0)) == before:
                turned += LOOK
            wall = turned.astimezone(UTC).replace(tzinfo=None)
            first, last = sorted((wall + before, wall + after))
            yield Turn(first, last, skipped=after > before)
        moment, before = day, after
