"""Pictures in numbers: where bars, lines and segments lie in a box. Templates make them SVG; nothing needs a script."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import NamedTuple


class Bar(NamedTuple):
    """A rectangle of one tone."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    title: str = ""


def spark(values: Sequence[float | None], width: float = 96, height: float = 24) -> str:
    """The `d` of a small line, the newest value at the right; unknown values leave gaps."""
    known = [value for value in values if value is not None]
    if len(values) < 2 or not known:
        return ""
    top = max(known) or 1.0
    step = width / (len(values) - 1)
    parts, pen = [], "M"
    for at, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        parts.append(f"{pen}{at * step:.1f} {height - 1 - value / top * (height - 2):.1f}")
        pen = "L"
    return "".join(parts)


def stacked(
    columns: Sequence[Sequence[float | None]], tones: Sequence[str], width: float = 600, height: float = 120
) -> list[Bar]:
    """Columns of stacked bars; each column has one value for each tone."""
    top = max((sum(value or 0 for value in column) for column in columns), default=0) or 1.0
    step = width / max(len(columns), 1)
    found = []
    for at, column in enumerate(columns):
        y = height
        for value, tone in zip(column, tones, strict=True):
            if not value:
                continue
            tall = max(value / top * height, 1.0)
            y -= tall
            found.append(
                Bar(round(at * step, 2), round(y, 2), round(max(step - 1, 0.5), 2), round(tall, 2), tone)
            )
    return found


def lines(columns: Sequence[Sequence[float | None]], width: float = 600, height: float = 120) -> list[str]:
    """One `d` for each series, all on one scale; `columns` as for `stacked`."""
    if not columns:
        return []
    top = max((value for column in columns for value in column if value is not None), default=0) or 1.0
    step = width / max(len(columns) - 1, 1)
    found = []
    for series in zip(*columns, strict=True):
        parts, pen = [], "M"
        for at, value in enumerate(series):
            if value is None:
                pen = "M"
                continue
            parts.append(f"{pen}{at * step:.1f} {height - value / top * (height - 2):.1f}")
            if pen == "M" and (at + 1 == len(series) or series[at + 1] is None):
                parts.append("h2")  # a value without neighbours is no line
            pen = "L"
        found.append("".join(parts))
    return found


def weight(value: float, most: float, steps: int = 5) -> int:
    """How strongly a cell of a heatmap is coloured: 0 (nothing) to `steps`, by orders of magnitude."""
    if value <= 0:
        return 0
    if most <= 1:
        return steps
    return max(1, min(steps, 1 + round(log10(max(value, 1)) / log10(most) * (steps - 1))))


def meter(part: float | None, whole: float | None) -> float:
    """How much of a bar of 100 is full."""
    if not part or not whole or part < 0:
        return 0.0
    return round(min(part / whole, 1.0) * 100, 1)
