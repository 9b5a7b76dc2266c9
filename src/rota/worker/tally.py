"""The tally: what this worker's jobs did, minute by minute. A few numbers in memory for each job, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rota._core.job import State
from rota._core.numbers import (
    FAULTS,
    LAST,
    OTHERS,
    Ending,
    LaneTotal,
    Minute,
    TenantTotal,
    Total,
    added,
    bucket,
)

if TYPE_CHECKING:
    from rota._core.outcome import Transition
    from rota.worker.execution import Run
    from rota.worker.lanes import Lane

PENDING = State.PENDING
KEPT = 20
"""So many minutes are kept while the store cannot be reached. Nothing ends meanwhile, so that is what came before."""
TENANTS = 1000
"""So many tenants are counted apart in a minute."""

STEPS = 8000
"""Steps a second of the table below."""
TABLE = bytes(bucket(step / STEPS) for step in range(STEPS))
"""The buckets of everything below a second, so that a quick job costs one look at it."""
LONG = len(TABLE)


class _Cell:
    __slots__ = ("jobs", "run_sum", "runs", "wait_sum", "waits")

    def __init__(self) -> None:
        self.jobs = 0
        self.wait_sum = self.run_sum = 0.0
        self.waits = [0] * (LAST + 1)
        self.runs = [0] * (LAST + 1)


_NOWHERE = _Cell()


class _Page:
    """One minute."""

    __slots__ = ("cells", "ends", "lanes", "looks", "tenants", "written")

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str, str, State], _Cell] = {}
        self.tenants: dict[str, list[float]] = {}
        self.lanes: dict[str, list[int]] = {}
        self.ends = self.looks = 0
        """How often something was added: what tells whether it has been written."""
        self.written = (0, 0)

    def cell(self, key: tuple[str, str, str, State]) -> _Cell:
        found = self.cells.get(key)
        if found is None:
            found = self.cells[key] = _Cell()
        return found

    def tenant(self, name: str) -> list[float]:
        found = self.tenants.get(name)
        if found is None:
            kept = name if len(self.tenants) < TENANTS else OTHERS
            found = self.tenants.setdefault(kept, [0, 0, 0.0])
        return found

    @property
    def state(self) -> tuple[int, int]:
        return self.ends, self.looks


class Tally:
    """Counts ends that were written, by the store's minute."""

    def __init__(self) -> None:
        self._pages: dict[int, _Page] = {}

    def add(self, runs: Sequence[Run]) -> None:
        """Count these ends. They were written just now, by one statement: one look at the clock does for all."""
        if not runs:
            return
        page = self._page(runs[0].store_time())
        page.ends += 1
        task = queue = verb = to = run_at = created = arrived = None
        cell, wait, place = _NOWHERE, 0.0, 0
        for run in runs:
            transition, job = run.transition, run.job
            if transition is None:
                continue
            # Neighbours are mostly alike: comparing four words is cheaper than a look into a dictionary.
            if task != job.task or queue != job.queue or verb != transition.verb or to is not transition.to:
                task, queue, verb, to = job.task, job.queue, transition.verb, transition.to
                cell = page.cell((queue, task, verb, to))
            cell.jobs += 1
            took = run.took
            cell.run_sum += took
            step = int(took * STEPS)
            cell.runs[TABLE[step] if 0 <= step < LONG else bucket(took)] += 1
            # Those of one bulk were due at one moment; those that arrived together were claimed at one.
            if arrived is not run.arrived or run_at != job.run_at or created != job.created_at:
                run_at, created, arrived = job.run_at, job.created_at, run.arrived
                # Nobody waited before it was there, however long ago it was due then.
                due = max(run_at, created)
                wait = 0.0 if job.claimed_at is None else (job.claimed_at - due).total_seconds()
                place = bucket(wait)
            cell.wait_sum += wait
            cell.waits[place] += 1
            if job.tenant is not None and (to is not PENDING or transition.failure is not None):
                tenant = page.tenant(job.tenant)
                tenant[0] += 1
                tenant[1] += transition.failure is not None
                tenant[2] += took

    def lost(self, ends: Iterable[Transition], now: datetime) -> None:
        """Count attempts of workers that are gone: nobody else can."""
        for end in ends:
            job, page = end.job, self._page(now)
            page.ends += 1
            began = job.claimed_at or now
            due = max(job.run_at, job.created_at)
            took, wait = (now - began).total_seconds(), (began - due).total_seconds()
            cell = page.cell((job.queue, job.task, end.verb, end.to))
            cell.jobs += 1
            cell.run_sum += took
            cell.runs[bucket(took)] += 1
            cell.wait_sum += wait
            cell.waits[bucket(wait)] += 1
            if job.tenant is not None:
                tenant = page.tenant(job.tenant)
                tenant[0] += 1
                tenant[1] += end.failure is not None
                tenant[2] += took

    def look(self, lanes: Iterable[Lane], now: datetime) -> None:
        """Note how full the lanes are at this moment."""
        page = self._page(now)
        page.looks += 1
        for lane in lanes:
            noted = page.lanes.setdefault(lane.name, [0, 0])
            noted[0] += lane.slots
            noted[1] += min(lane.seated, lane.slots)

    def unwritten(self, now: datetime) -> list[tuple[Minute, tuple[int, int]]]:
        """The minutes that the store must be told of, each with what to say to `written` afterwards.

        Ends are told soon; how full the lanes were, once the minute is over or with them.
        """
        current = _number(now)
        for number in [number for number in self._pages if number < current - KEPT]:
            del self._pages[number]
        return [
            (_minute(number, page), page.state)
            for number, page in sorted(self._pages.items())
            if page.ends != page.written[0] or (number < current and page.state != page.written)
        ]

    def written(self, minute: Minute, state: tuple[int, int], now: datetime) -> None:
        """The store knows this minute as it was then."""
        number = _number(minute.start)
        page = self._pages.get(number)
        if page is not None:
            page.written = state
            if number < _number(now) - 1 and page.state == state:
                del self._pages[number]

    def _page(self, moment: datetime) -> _Page:
        number = _number(moment)
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = _Page()
        return page


def _minute(number: int, page: _Page) -> Minute:
    totals = added(_totals(page))
    return Minute(
        datetime.fromtimestamp(number * 60, UTC),
        totals,
        tuple(_tenants(page, totals)),
        tuple(LaneTotal(name, slots, busy) for name, (slots, busy) in page.lanes.items()),
    )


def _number(moment: datetime) -> int:
    return int(moment.timestamp() // 60)


def _totals(page: _Page) -> Iterator[Total]:
    for (queue, task, verb, to), cell in page.cells.items():
        ending = ending_of(verb, to)
        if ending is not None:
            yield Total(
                queue,
                task,
                ending,
                cell.jobs,
                cell.wait_sum,
                cell.run_sum,
                _filled(cell.waits),
                _filled(cell.runs),
            )


def _tenants(page: _Page, totals: Iterable[Total]) -> Iterator[TenantTotal]:
    """The tenants, and what is left for jobs of none: they are not counted one by one."""
    rest = TenantTotal("", 0)
    for total in totals:
        if total.ending != Ending.SNOOZED:
            faults = total.jobs if total.ending in FAULTS else 0
            rest = TenantTotal("", rest.jobs + total.jobs, rest.faults + faults, rest.run_sum + total.run_sum)
    for name, (number, failed, took) in page.tenants.items():
        yield TenantTotal(name, int(number), int(failed), took)
        left = max(0.0, rest.run_sum - took)
        rest = TenantTotal("", rest.jobs - int(number), rest.faults - int(failed), left)
    if rest.jobs:
        yield rest


def _filled(counts: list[int]) -> dict[int, int]:
    return {place: count for place, count in enumerate(counts) if count}


def ending_of(verb: str, to: State) -> Ending | None:
    """How an attempt is counted; None: it was handed back unharmed, and is none."""
    match to:
        case State.COMPLETED:
            return Ending.COMPLETED
        case State.PARTIAL:
            return Ending.PARTIAL
        case State.DEAD:
            return Ending.DEAD
        case State.CANCELLED:
            return Ending.CANCELLED
        case State.PENDING if verb in ("retry", "suspect"):
            return Ending.FAILED
        case State.PENDING if verb == "snooze":
            return Ending.SNOOZED
        case _:
            return None
