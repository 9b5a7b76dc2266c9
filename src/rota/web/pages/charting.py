"""The charts that several pages have, as rows of a table: a moment and its values. Templates draw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from rota._core.depths import Depths
from rota._core.lengths import many, span
from rota._core.numbers import PER_OCTAVE, Summary, Total, edges
from rota._core.room import RoomSample
from rota._core.series import MINUTE, Chart, Series
from rota.admin.numbers import QueueView
from rota.admin.scope import OutOfScope
from rota.errors import StoreError
from rota.web.pages.drawing import weight

T = TypeVar("T")
Rows = list[tuple[datetime, list[float | None]]]
"""What `chart` of parts.html draws."""

THROUGHPUT = (("completed", "ok", "bar"), ("failed, tried again", "warn", "bar"), ("dead", "bad", "bar"))
WAITS = (("p50", "run", "line"), ("p95", "warn", "line"))
DEPTH = (("waiting", "wait", "area"), ("running", "run", "line"))
FLOW = (("came in", "accent", "gap"), ("went out", "ok", "line"))
"""`gap`: what is between the first two lines is filled."""
ROOM = {
    "size": (("megabytes", "run", "area"),),
    "dead": (("dead rows", "warn", "area"),),
    "oldest": (("oldest", "bad", "area"),),
}
"""What the database suffers from, one unit each on the same axis of time."""
COLUMNS = {"throughput": THROUGHPUT, "waits": WAITS, "depth": DEPTH, "flow": FLOW}
WIDE, TALL = 8, 14
"""The box of one cell of a heatmap."""


class Cell(NamedTuple):
    """One rectangle of a heatmap."""

    x: int
    y: int
    weight: int
    title: str


class Heat(NamedTuple):
    """How long runs took, along time: the longest at the top, so that two bands are seen as two."""

    labels: tuple[str, ...]
    """Of the rows, from the top."""
    cells: tuple[Cell, ...]
    width: int
    height: int
    since: datetime
    until: datetime
    table: tuple[tuple[datetime, tuple[int, ...]], ...]
    """The numbers: of each slice in which something ended, in the order of `labels`."""


async def known(read: Awaitable[T]) -> T | None:
    """What was read; None: the store did not answer this one question, or it is about everybody."""
    try:
        return await read
    except (StoreError, OutOfScope):
        return None


def throughput(chart: Chart | None) -> Rows:
    points = () if chart is None else chart.points
    return [(point.start, [point.completed, point.failed, point.dead]) for point in points]


def waits(chart: Chart | None) -> Rows:
    points = () if chart is None else chart.points
    return [(point.start, [point.wait_p50, point.wait_p95]) for point in points]


def depth(depths: Depths | None, queue: str | None = None) -> Rows:
    """Of one queue, or of all together."""
    rows: Rows = []
    for one in () if depths is None else depths.slices:
        found = one.whole if queue is None else one.of(queue)
        rows.append((one.start, [None, None] if found is None else [found.pending, found.running]))
    return rows


def flow(chart: Chart | None, depths: Depths | None, queue: str | None = None) -> Rows:
    """Jobs a minute that came and went, of one queue or of all: are we keeping up?

    Nobody counts what comes: it is what went, and what there is more of than a slice before.
    """
    rows: Rows = []
    before: float | None = None
    deep = dict(depth(depths, queue))
    for point in () if chart is None else chart.points:
        waiting, running = deep.get(point.start, [None, None])
        there = None if waiting is None or running is None else waiting + running
        gone = point.completed + point.dead
        came = None if there is None or before is None else max(0.0, gone + there - before)
        seconds = _lasted(point.start, chart)
        rows.append((point.start, [_a_minute(came, seconds), _a_minute(gone, seconds)]))
        before = there
    return rows


def _lasted(start: datetime, chart: Chart | None) -> float | None:
    """How long a slice lasted so far; None: too short to tell a pace, for depths are looked at each minute."""
    passed = 0.0 if chart is None else min(chart.step, (chart.until - start).total_seconds())
    return passed if passed >= MINUTE else None


def _a_minute(jobs: float | None, seconds: float | None) -> float | None:
    return None if jobs is None or seconds is None else round(jobs / seconds * 60, 1)


def room(samples: Sequence[RoomSample] | None) -> dict[str, Rows]:
    """What took room, by the names of `ROOM`; nothing where nobody ever looked."""
    if not samples or all(sample.bytes is None for sample in samples):
        return {}
    return {
        "size": [
            (one.start, [None if one.bytes is None else round(one.bytes / 1_000_000, 1)]) for one in samples
        ],
        "dead": [(one.start, [one.dead]) for one in samples],
        "oldest": [(one.start, [one.oldest_transaction]) for one in samples],
    }


def pending(depths: Depths | None, queue: str) -> list[float | None]:
    """How many waited, for a small line."""
    return [values[0] for _, values in depth(depths, queue)]


def ended(series: Series | None, of: Callable[[Total], str], name: str) -> list[float | None]:
    """How many attempts of one queue or task ended in each slice, for a small line."""
    slices = () if series is None else series.slices
    return [sum(total.jobs for total in one.totals if of(total) == name) for one in slices]


def heat(chart: Chart | None) -> Heat | None:
    """Durations by their magnitude; None: unknown, or nothing ran."""
    if chart is None:
        return None
    columns = [_octaves(point.runs) for point in chart.points]
    seen = [octave for column in columns for octave in column]
    if not seen:
        return None
    rows = list(range(max(seen), min(seen) - 1, -1))
    most = max(count for column in columns for count in column.values())
    labels = tuple(_label(octave) for octave in rows)
    cells = tuple(
        Cell(
            x * WIDE,
            y * TALL,
            weight(column[octave], most),
            f"{point.start:%d %b %H:%M} UTC: {many(column[octave], 'run')} of {labels[y]}",
        )
        for x, (point, column) in enumerate(zip(chart.points, columns, strict=True))
        for y, octave in enumerate(rows)
        if column.get(octave)
    )
    table = tuple(
        (point.start, tuple(column.get(octave, 0) for octave in rows))
        for point, column in zip(chart.points, columns, strict=True)
        if column
    )
    return Heat(
        labels, cells, len(columns) * WIDE, len(rows) * TALL, chart.points[0].start, chart.until, table
    )


def pace(a_minute: float | None) -> str:
    """How many a minute, or an hour where that is easier to grasp: `3.1/min`, `12/h`."""
    if a_minute is None:
        return "unknown"
    if a_minute == 0:
        return "0"
    number, unit = (a_minute, "min") if a_minute >= 1 else (a_minute * 60, "h")
    return f"{number:,.0f}/{unit}" if number >= 10 else f"{number:.1f}/{unit}"


def drains(waiting: int | None, a_minute: float | None, *, capped: bool) -> str:
    """When a backlog would be gone at this pace; of one that was not counted to its end, at the earliest."""
    if waiting is None or a_minute is None:
        return "unknown"
    if not waiting:
        return "empty"
    if not a_minute:
        return "stands still"
    return f"{'>' if capped else '~'}{span(float(round(waiting / a_minute * 60))).split(' ')[0]}"


def busiest(view: QueueView) -> tuple[bool, int, str]:
    """The order of queues: those that are late first, then by their work."""
    return (not view.late, -(view.pending or 0) - (view.running or 0), view.queue)


def of_queue(totals: Sequence[Total], queue: str) -> dict[str, Summary]:
    """What each task did in one queue, the busiest first."""
    groups: dict[str, list[Total]] = {}
    for total in totals:
        if total.queue == queue:
            groups.setdefault(total.task, []).append(total)
    found = {task: Summary.of(group) for task, group in groups.items()}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].attempts, pair[0])))


def _octaves(runs: object) -> Counter[int]:
    """Counts by the doubling that their bucket is in; -1 is below a millisecond."""
    found: Counter[int] = Counter()
    assert hasattr(runs, "items")
    for bucket, count in runs.items():
        found[(bucket - 1) // PER_OCTAVE if bucket > 0 else -1] += count
    return found


def _label(octave: int) -> str:
    if octave < 0:
        return "below 1ms"
    low, high = edges(1 + octave * PER_OCTAVE)[0], edges((octave + 1) * PER_OCTAVE)[1]
    return f"{span(low)} to {span(high)}" if high < 1e9 else f"over {span(low)}"
