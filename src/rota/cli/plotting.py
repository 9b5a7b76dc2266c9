"""`rota stats --plot`: done, failed and waits along time, as columns of blocks. Pure: no terminal is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import NamedTuple

from rota._core.series import Chart, Point
from rota.cli.words import span

NARROWEST = 30
"""Columns; in fewer than that nobody can read a chart."""
LABEL = 9
"""Columns before each row, for the scale."""
BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " ..::||##"
"""The same where the terminal cannot show blocks."""
DAY = 86_400


class Row(NamedTuple):
    """One line of the chart, and the style of its columns."""

    label: str
    text: str
    style: str = ""


class Panel(NamedTuple):
    """One measure along time."""

    name: str
    style: str
    height: int
    of: Callable[[Sequence[Point]], float | None]
    """What a column shows of the slices in it; None: nothing can be said."""
    say: Callable[[float], str]


def plotted(chart: Chart, width: int, *, zone: tzinfo | None = None, blocks: str = BLOCKS) -> list[Row]:
    """The chart in lines of at most `width` columns; each panel begins with its name and what its highest column is."""
    room = width - LABEL
    columns, wide = _columns(chart.points, room)
    stretch = chart.step * len(columns[0])
    rows: list[Row] = []
    for panel in _panels(stretch):
        rows += _drawn(panel, [panel.of(column) for column in columns], wide, blocks)
    rows.append(_times([column[0].start for column in columns], wide, zone))
    each = f"Each column is {span(stretch)}; the last one is still going on."
    return [*rows, Row("", each if len(each) <= room else f"{span(stretch)} a column")]


def _columns(points: Sequence[Point], room: int) -> tuple[list[Sequence[Point]], int]:
    """The slices of each column, and how wide columns are: wide ones where there is room, several slices where not."""
    together = -(-len(points) // room)
    columns = [points[place : place + together] for place in range(0, len(points), together)]
    return columns, max(1, min(4, room // len(columns)))


def _panels(stretch: float) -> tuple[Panel, ...]:
    def rate(jobs: float) -> str:
        a_minute = jobs * 60 / stretch
        return f"{a_minute:,.0f}/min" if a_minute >= 10 else f"{a_minute:.1f}/min"

    return (
        Panel("done", "green", 6, lambda column: sum(one.completed for one in column), rate),
        Panel("failed", "red", 3, lambda column: sum(one.failed + one.dead for one in column), rate),
        Panel("wait p95", "blue", 4, _longest_wait, span),
    )


def _longest_wait(column: Sequence[Point]) -> float | None:
    return max((one.wait_p95 for one in column if one.wait_p95 is not None), default=None)


def _drawn(panel: Panel, values: Sequence[float | None], wide: int, blocks: str) -> list[Row]:
    most = max((value for value in values if value is not None), default=0)
    if not most:
        return [Row(panel.name, "none")]
    rows = [Row(panel.name, f"at most {panel.say(most)}")]
    eighths = [_eighths(value, most, panel.height) for value in values]
    for level in reversed(range(panel.height)):
        cells = "".join(blocks[min(8, max(0, eighth - level * 8))] * wide for eighth in eighths)
        label = panel.say(most) if level == panel.height - 1 else "0" if level == 0 else ""
        rows.append(Row(label, cells.rstrip(), panel.style))
    return rows


def _eighths(value: float | None, most: float, height: int) -> int:
    """How high a column is. What is there at all is seen, however small it is beside the rest."""
    if not value:
        return 0
    return max(1, round(value / most * height * 8))


def _times(starts: Sequence[datetime], wide: int, zone: tzinfo | None) -> Row:
    """When the columns are: the first one, and one every so often, each where its column begins."""
    form = "%H:%M" if (starts[-1] - starts[0]).total_seconds() < DAY else "%d %b"
    text = ""
    for place, start in enumerate(starts):
        at = place * wide
        said = start.astimezone(zone).strftime(form)
        if at >= len(text) + (6 if text else 0) and at + len(said) <= len(starts) * wide:
            text = text.ljust(at) + said
    return Row("", text, "dim")
