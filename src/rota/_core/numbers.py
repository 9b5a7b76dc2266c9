"""Numbers about work: counts, waits and durations in log-scale histograms that can be added up. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import frexp, inf
from typing import NamedTuple

PER_OCTAVE = 4
"""Buckets for each doubling: a percentile is off by less than an eighth."""
LAST = 1 + 30 * PER_OCTAVE
"""The bucket of everything from 12 days on."""
LONGEST = 2.0**30
OTHERS = "(others)"
"""The tenant under which all are counted that are too many to be kept apart."""


class Ending(StrEnum):
    """How an attempt ended, as it is counted."""

    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"  # and is tried again
    DEAD = "dead"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"


FAULTS = frozenset({Ending.FAILED, Ending.DEAD})
JUDGED = frozenset({Ending.COMPLETED, Ending.PARTIAL, Ending.FAILED, Ending.DEAD})
"""What an error rate is a share of: attempts that came to a verdict."""


class Total(NamedTuple):
    """What is known of the attempts of one queue and task that ended in one way."""

    queue: str
    task: str
    ending: str
    jobs: int
    wait_sum: float = 0.0
    """Seconds from being due to being claimed, all together."""
    run_sum: float = 0.0
    """Seconds from the claim to the end."""
    waits: Mapping[int, int] = {}
    """How many waited how long, by bucket."""
    runs: Mapping[int, int] = {}


class TenantTotal(NamedTuple):
    """What is known of one tenant's attempts."""

    tenant: str
    """Empty: jobs of no tenant."""
    jobs: int
    faults: int = 0
    run_sum: float = 0.0


class LaneTotal(NamedTuple):
    """How full a lane was: slots that were busy, added up over so many looks."""

    lane: str
    slots: int
    """Slots, added up over the looks too."""
    busy: int

    @property
    def used(self) -> float | None:
        """The share of its slots that was busy; None when nobody looked."""
        return self.busy / self.slots if self.slots else None


class Minute(NamedTuple):
    """The totals of one session in one minute; absolute, so that writing them again changes nothing."""

    start: datetime
    totals: Sequence[Total] = ()
    tenants: Sequence[TenantTotal] = ()
    lanes: Sequence[LaneTotal] = ()


class Figures(NamedTuple):
    """What all sessions did in a stretch of time, added up."""

    since: datetime
    until: datetime
    totals: tuple[Total, ...] = ()
    tenants: tuple[TenantTotal, ...] = ()
    lanes: tuple[LaneTotal, ...] = ()

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    def by_queue(self) -> dict[str, Summary]:
        return _grouped((total.queue, total) for total in self.totals)

    def by_task(self) -> dict[str, Summary]:
        return _grouped((total.task, total) for total in self.totals)

    def whole(self) -> Summary:
        return Summary.of(self.totals)


class Summary(NamedTuple):
    """Attempts of one kind, added up: how many, how fast, how well."""

    endings: Mapping[str, int]
    waits: Mapping[int, int]
    runs: Mapping[int, int]
    wait_sum: float = 0.0
    run_sum: float = 0.0

    @classmethod
    def of(cls, totals: Iterable[Total]) -> Summary:
        endings: Counter[str] = Counter()
        waits: Counter[int] = Counter()
        runs: Counter[int] = Counter()
        wait_sum = run_sum = 0.0
        for total in totals:
            endings[total.ending] += total.jobs
            waits.update(total.waits)
            runs.update(total.runs)
            wait_sum += total.wait_sum
            run_sum += total.run_sum
        return cls(endings, waits, runs, wait_sum, run_sum)

    @property
    def attempts(self) -> int:
        return sum(self.endings.values())

    @property
    def done(self) -> int:
        return self.endings.get(Ending.COMPLETED, 0) + self.endings.get(Ending.PARTIAL, 0)

    @property
    def faults(self) -> int:
        return sum(self.endings.get(ending, 0) for ending in FAULTS)

    @property
    def error_rate(self) -> float | None:
        """The share of attempts that failed; None when none came to a verdict."""
        judged = sum(self.endings.get(ending, 0) for ending in JUDGED)
        return self.faults / judged if judged else None

    def wait(self, share: float) -> float | None:
        """The wait, in seconds, that this share of attempts did not exceed: 0.95 is the P95."""
        return percentile(self.waits, share)

    def run(self, share: float) -> float | None:
        """The same of how long they ran."""
        return percentile(self.runs, share)


def _grouped(pairs: Iterable[tuple[str, Total]]) -> dict[str, Summary]:
    groups: dict[str, list[Total]] = {}
    for name, total in pairs:
        groups.setdefault(name, []).append(total)
    return {name: Summary.of(groups[name]) for name in sorted(groups)}


def bucket(seconds: float) -> int:
    """The number of the bucket that a length of time falls into: 0 is below a millisecond."""
    milliseconds = seconds * 1000.0
    if not milliseconds >= 1.0:  # also what is not a number, and a clock that ran backwards
        return 0
    if milliseconds >= LONGEST:
        return LAST
    mantissa, exponent = frexp(milliseconds)
    # A mantissa is in [0.5, 1), which is one octave: cut into its pieces.
    return 1 + (exponent - 1) * PER_OCTAVE + int((mantissa - 0.5) * 2 * PER_OCTAVE)


def edges(number: int) -> tuple[float, float]:
    """Where a bucket begins and ends, in seconds."""
    if number <= 0:
        return 0.0, 0.001
    if number >= LAST:
        return _edge(LAST - 1), inf
    return _edge(number - 1), _edge(number)


def _edge(steps: int) -> float:
    octave, piece = divmod(steps, PER_OCTAVE)
    return 2.0**octave * (1 + piece / PER_OCTAVE) / 1000.0


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """The length, in seconds, that this share did not exceed, reckoned inside its bucket; None of nothing."""
    whole = sum(counts.values())
    if not whole:
        return None
    wanted, before = share * whole, 0
    for number in sorted(counts):
        count = counts[number]
        if before + count >= wanted:
            low, high = edges(number)
            return low if high == inf else low + (high - low) * max(0.0, wanted - before) / count
        before += count
    return edges(max(counts))[0]


def minute_of(moment: datetime) -> datetime:
    """The minute that a moment is in."""
    return moment.replace(second=0, microsecond=0)


def hour_of(moment: datetime) -> datetime:
    """The hour that a moment is in."""
    return minute_of(moment.astimezone(UTC)).replace(minute=0)


def added(totals: Iterable[Total]) -> tuple[Total, ...]:
    """Totals of the same queue, task and ending as one."""
    groups: dict[tuple[str, str, str], list[Total]] = {}
    for total in totals:
        groups.setdefault(total[:3], []).append(total)
    return tuple(_sum(groups[key]) for key in sorted(groups))


def _sum(totals: Sequence[Total]) -> Total:
    whole, first = Summary.of(totals), totals[0]
    return first._replace(
        jobs=whole.attempts,
        wait_sum=whole.wait_sum,
        run_sum=whole.run_sum,
        waits=dict(whole.waits),
        runs=dict(whole.runs),
    )


def added_tenants(totals: Iterable[TenantTotal]) -> tuple[TenantTotal, ...]:
    """Totals of the same tenant as one."""
    found: dict[str, TenantTotal] = {}
    for total in totals:
        old = found.get(total.tenant, TenantTotal(total.tenant, 0))
        found[total.tenant] = TenantTotal(
            total.tenant, old.jobs + total.jobs, old.faults + total.faults, old.run_sum + total.run_sum
        )
    return tuple(found[name] for name in sorted(found))


def added_lanes(totals: Iterable[LaneTotal]) -> tuple[LaneTotal, ...]:
    """Totals of the same lane as one, whichever worker has it."""
    found: dict[str, LaneTotal] = {}
    for total in totals:
        old = found.get(total.lane, LaneTotal(total.lane, 0, 0))
        found[total.lane] = LaneTotal(total.lane, old.slots + total.slots, old.busy + total.busy)
    return tuple(found[name] for name in sorted(found))


OPEN = timedelta(minutes=30)
"""So long a session may still correct what it said of a minute."""
MERGED_AFTER = timedelta(minutes=40)
"""Later than that, sessions' minutes are merged into one."""
KEPT = timedelta(days=14)
"""How long merged minutes are kept."""
HOURS_KEPT = timedelta(days=90)
"""How long it is known by the hour what was done: what is older than minutes are kept is read so."""


def begins(now: datetime, since: float) -> datetime:
    """From when on numbers of the last so many seconds are read: a whole minute, or hour where no minutes are left."""
    start = minute_of(now - timedelta(seconds=since))
    return hour_of(start) if start <= now - KEPT else start
