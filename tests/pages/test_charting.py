"""Charts as numbers: what came and went, and values that have no neighbours."""

from __future__ import annotations

from datetime import timedelta

from build import NOON
from rota._core.depths import Depth, Depths, DepthSlice
from rota._core.series import Chart, Point
from rota.web.pages import charting, drawing
from rota.web.pages.spans import Range


def chart(*completed: int, step: float = 60.0) -> Chart:
    points = tuple(
        Point(NOON + timedelta(seconds=at * step), completed=done) for at, done in enumerate(completed)
    )
    return Chart(NOON, NOON + timedelta(seconds=step * len(points)), step, points)


def depths(*waiting: int | None, step: float = 60.0) -> Depths:
    slices = tuple(
        DepthSlice(NOON + timedelta(seconds=at * step), None if deep is None else Depth(pending=deep))
        for at, deep in enumerate(waiting)
    )
    return Depths(NOON, NOON + timedelta(seconds=step * len(slices)), step, slices)


def test_what_came_is_what_went_and_what_there_is_more_of():
    rows = charting.flow(chart(5, 5, 5), depths(0, 10, 7))

    assert [values for _, values in rows] == [[None, 5.0], [15.0, 5.0], [2.0, 5.0]]


def test_rates_are_by_the_minute_whatever_a_slice_is_long():
    rows = charting.flow(chart(60, 60, step=600.0), depths(0, 0, step=600.0))

    assert rows[-1][1] == [6.0, 6.0]


def test_where_nobody_looked_nothing_is_claimed_to_have_come():
    rows = charting.flow(chart(1, 1, 1, 1), depths(0, None, 3, 3))

    assert [values[0] for _, values in rows] == [None, None, None, 1.0]
    assert charting.flow(None, None) == []


def test_a_value_without_neighbours_is_drawn_as_a_dot():
    [lonely] = drawing.lines([[None], [2.0], [None], [1.0], [2.0]])

    assert lonely.count("h2") == 1
    assert lonely.startswith("M150.0 2.0h2M")


def test_a_range_is_told_as_people_say_it():
    told = [Range(word).words for word in ("15m", "1h", "24h", "7d")]

    assert told == ["the last 15 minutes", "the last hour", "the last 24 hours", "the last 7 days"]


def test_the_slice_that_still_goes_on_is_divided_by_how_long_it_has():
    """Keeping up must not seem to dive at its right end, each time that somebody looks."""
    whole = chart(60, 60, 12, step=600.0)
    late = whole._replace(until=whole.points[-1].start + timedelta(seconds=120))
    early = whole._replace(until=whole.points[-1].start + timedelta(seconds=5))
    deep = depths(0, 0, 0, step=600.0)

    assert [values[1] for _, values in charting.flow(late, deep)] == [6.0, 6.0, 6.0]
    assert [values for _, values in charting.flow(early, deep)][1:] == [[6.0, 6.0], [None, None]]
