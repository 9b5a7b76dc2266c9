"""Numbers about work along time: slices of equal length, for charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from rota._core.numbers import HOURS_KEPT, KEPT, Ending, Summary, Total, added

MINUTE = 60
HOUR = 3600
STEPS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
"""The lengths of slices that people read with ease. Numbers are kept by the minute: none is shorter."""
DRAWN = 120
"""So many slices at most where the step is not asked for: more are no longer told apart."""
MOST = 1500
"""So many slices at most: a day by the minute."""


class Slice(NamedTuple):
    """What ended in one slice of time, added up."""

    start: datetime
    totals: tuple[Total, ...] = ()


class Series(NamedTuple):
    """Slices of equal length, oldest first and without gaps; the last one is still going on."""

    since: datetime
    until: datetime
    step: float
    slices: tuple[Slice, ...]


class TenantSlice(NamedTuple):
    """What ran for whom in one slice of time."""

    start: datetime
    ran: tuple[float, ...]
    """Seconds that attempts took which ended then: of each of the tenants that are told apart, then of all others."""


class TenantSeries(NamedTuple):
    """Slices of equal length, oldest first and without gaps, with the tenants that took most of the time told apart."""

    since: datetime
    until: datetime
    step: float
    tenants: tuple[str, ...]
    """Those who took most of the time first; an empty name stands for jobs of none."""
    slices: tuple[TenantSlice, ...]


class Point(NamedTuple):
    """One slice as charts draw it. Lengths of time are in seconds, and None where nothing ended."""

    start: datetime
    completed: int = 0
    """With those that completed in part."""
    failed: int = 0
    """Attempts that failed and are tried again."""
    dead: int = 0
    other: int = 0
    """Cancelled or snoozed."""
    wait_p50: float | None = None
    wait_p95: float | None = None
    run_p50: float | None = None
    run_p95: float | None = None
    runs: Mapping[int, int] = {}
    """How many ran how long, by bucket (`numbers.edges`): a column of a heatmap."""

    @property
    def attempts(self) -> int:
        return self.completed + self.failed + self.dead + self.other


class Chart(NamedTuple):
    """A series as charts draw it."""

    since: datetime
    until: datetime
    step: float
    points: tuple[Point, ...]


def step_for(since: float) -> float:
    """How long slices should be, so that a stretch of so many seconds is drawn in 30 to 120 of them where it can."""
    return float(next((step for step in STEPS if since / step <= DRAWN), STEPS[-1]))


def starts(now: datetime, since: float, step: float) -> list[datetime]:
    """Where the slices begin that hold the last so many seconds: at multiples of the step, in UTC."""
    size = checked(since, step)
    last = int(now.timestamp()) // size * size
    first = int(now.timestamp() - since) // size * size
    return [datetime.fromtimestamp(moment, UTC) for moment in range(first, last + 1, size)]


def checked(since: float, step: float) -> int:
    """The step in whole seconds, if what is kept can be cut so."""
    if not (MINUTE <= step <= STEPS[-1] and step % MINUTE == 0):
        raise ValueError(
            f"a step of {step:g} s cannot be drawn: numbers are kept by the minute, so give whole minutes, "
            "a day at most, such as 60, 900 or 3600."
        )
    if not 0 < since <= HOURS_KEPT.total_seconds():
        raise ValueError(f"{since:g} s back cannot be drawn: numbers are kept for {HOURS_KEPT.days} days.")
    if since > KEPT.total_seconds() and step % HOUR:
        raise ValueError(
            f"a step of {step:g} s is too fine: what is older than {KEPT.days} days is kept by the hour. "
            "Give whole hours, such as 3600, or a shorter stretch."
        )
    if since / step > MOST:
        raise ValueError(
            f"{since:g} s in steps of {step:g} s are {since / step:,.0f} slices, and {MOST:,} are the most: "
            "give a longer step or a shorter stretch."
        )
    return int(step)


def together(series: Series) -> Series:
    """All queues and tasks as one, under empty names."""
    slices = (
        one._replace(totals=added(total._replace(queue="", task="") for total in one.totals))
        for one in series.slices
    )
    return series._replace(slices=tuple(slices))


def by_tenant(
    begin: Sequence[datetime],
    until: datetime,
    step: float,
    ran: Iterable[tuple[int, str | None, float]],
    top: int,
) -> TenantSeries:
    """A series of what ran for whom, from the number of a slice, a tenant (None: others) and how long it ran."""
    rows = [row for row in ran if row[0] < len(begin)]  # a worker whose clock is ahead may be in the next one
    wholes: dict[str, float] = {}
    for _, tenant, seconds in rows:
        if tenant is None:
            continue
        wholes[tenant] = wholes.get(tenant, 0.0) + seconds
    tenants = tuple(sorted(wholes, key=lambda tenant: (-wholes[tenant], tenant))[:top])
    places = {tenant: place for place, tenant in enumerate(tenants)}
    found = [[0.0] * (len(tenants) + 1) for _ in begin]
    for number, tenant, seconds in rows:
        found[number][-1 if tenant is None else places.get(tenant, -1)] += seconds
    slices = (TenantSlice(start, tuple(there)) for start, there in zip(begin, found, strict=True))
    return TenantSeries(begin[0], until, step, tenants, tuple(slices))


def charted(series: Series) -> Chart:
    """A series with what charts draw, whichever queues and tasks are in it."""
    points = tuple(_point(one.start, one.totals) for one in series.slices)
    return Chart(series.since, series.until, series.step, points)


def _point(start: datetime, totals: Sequence[Total]) -> Point:
    if not totals:
        return Point(start)
    whole = Summary.of(totals)
    failed, dead = whole.endings.get(Ending.FAILED, 0), whole.endings.get(Ending.DEAD, 0)
    return Point(
        start,
        whole.done,
        failed,
        dead,
        whole.attempts - whole.done - failed - dead,
        whole.wait(0.5),
        whole.wait(0.95),
        whole.run(0.5),
        whole.run(0.95),
        dict(sorted(whole.runs.items())),
    )
