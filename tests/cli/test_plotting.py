"""`rota stats --plot`: a chart that is honest on any terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pexpect
import pytest

from build import new_id
from rota._core.numbers import Ending, Minute, Total, bucket, minute_of
from rota._core.series import Chart, Point
from rota.cli import plotting
from rota.cli.plotting import LABEL, plotted

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def a_chart(*points: Point, step: float = 60.0) -> Chart:
    placed = [point._replace(start=START + timedelta(seconds=step * n)) for n, point in enumerate(points)]
    return Chart(placed[0].start, placed[-1].start + timedelta(seconds=step), step, tuple(placed))


def slices(number: int, **fields: float) -> list[Point]:
    return [Point(START, **fields) for _ in range(number)]


def drawn(chart: Chart, width: int = 80, **options: str) -> list[str]:
    return [f"{row.label}|{row.text}" for row in plotted(chart, width, zone=UTC, **options)]


def test_a_column_is_as_high_as_its_share_of_the_highest():
    chart = a_chart(Point(START, completed=60), Point(START, completed=30), Point(START))
    rows = plotted(chart, 80, zone=UTC)[1:7]

    assert rows[0].text == "████"
    assert rows[-1].text == "████████"
    assert [row.text for row in rows[:3]] == ["████"] * 3
    assert (rows[0].label, rows[-1].label) == ("60/min", "0")


def test_one_failure_beside_thousands_is_seen_and_is_red():
    chart = a_chart(*slices(10, completed=5000), Point(START, failed=3000), Point(START, dead=1))
    failed = [row for row in plotted(chart, 80, zone=UTC) if row.style == "red"]

    assert failed[-1].text.endswith("▁▁▁▁")


def test_what_failed_is_told_by_a_word_and_not_by_its_colour_alone():
    lines = drawn(a_chart(*slices(5, completed=4), Point(START, failed=2)))

    assert "failed|at most 2.0/min" in lines
    assert "wait p95|none" in lines


def test_nothing_at_all_is_said_and_not_drawn():
    lines = drawn(a_chart(*slices(60)))

    assert lines[:3] == ["done|none", "failed|none", "wait p95|none"]


@pytest.mark.parametrize("width", [plotting.NARROWEST, 47, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    chart = a_chart(*slices(121, completed=7, failed=1, wait_p95=3.5))

    assert all(len(row.text) <= width - LABEL for row in plotted(chart, width, zone=UTC))
    assert all(len(row.label) < LABEL + 1 for row in plotted(chart, width, zone=UTC))


def test_on_a_narrow_terminal_several_slices_are_one_column_and_the_rate_stays_true():
    chart = a_chart(*slices(120, completed=10, wait_p95=1.0), Point(START, completed=0, wait_p95=9.0))
    lines = drawn(chart, width=48)

    assert "done|at most 10/min" in lines
    assert "wait p95|at most 9s" in lines
    assert lines[-1] == "|4m a column"


def test_times_stand_under_the_columns_that_they_name():
    chart = a_chart(*slices(60, completed=1))
    times = next(row for row in plotted(chart, 80, zone=UTC) if row.style == "dim")

    assert times.text.startswith("09:00")
    for place in (times.text.index(said) for said in times.text.split()):
        assert times.text[place : place + 5] == (START + timedelta(minutes=place)).strftime("%H:%M")


def test_days_are_named_where_hours_would_repeat():
    chart = a_chart(*slices(30, completed=1), step=86_400.0)

    assert next(row for row in plotted(chart, 80, zone=UTC) if row.style == "dim").text.startswith("01 Mar")


def test_a_terminal_without_blocks_gets_other_characters():
    text = "".join(drawn(a_chart(*slices(9, completed=3)), blocks=plotting.PLAIN))

    assert text.isascii()
    assert "#" in text


@pytest.fixture
def worked(jobs):
    """Ninety mails were sent in this minute, and ten attempts failed."""

    async def fill(store) -> None:
        totals = [
            Total("mail", "send", Ending.COMPLETED, 90, 9.0, 45.0, {bucket(0.1): 90}, {bucket(0.5): 90}),
            Total("mail", "send", Ending.FAILED, 10, 1.0, 5.0, {bucket(0.1): 10}, {bucket(0.5): 10}),
        ]
        await store.note_minutes(new_id(), [Minute(minute_of(await store.now()), totals, [], [])])

    jobs.do(fill)
    return jobs


def test_a_pipe_gets_the_chart_without_colours(rota, worked):
    said = rota("stats", "--plot")

    assert said.code == 0
    assert "\x1b" not in said.out
    assert "    done at most 90/min" in said.lines
    assert "  failed at most 10/min" in said.lines
    assert all(len(line) <= 80 for line in said.lines)


def test_scripts_get_the_points(rota, worked):
    chart = json.loads(rota("stats", "--plot", "--json").out)

    assert chart["step"] == 60.0
    assert sum(point["completed"] for point in chart["points"]) == 90
    assert sum(point["failed"] for point in chart["points"]) == 10


def test_a_chart_of_nothing_says_so(rota, jobs):
    said = rota("stats", "--plot", "--since", "2h")

    assert (said.code, said.err) == (0, "Nothing ended in the last 2 hours.\n")


def test_a_terminal_that_is_too_narrow_is_told_what_a_chart_needs(rota, jobs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    said = rota("stats", "--plot")

    assert (said.code, said.out) == (1, "")
    assert "the terminal has 20 columns, and a chart needs 30." in said.err


def test_payloads_have_no_chart(rota, jobs):
    assert rota("stats", "--plot", "--payloads").code == 2


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_red_for_what_failed_unless_it_wants_no_colour(worked, more, coloured):
    import os
    import sys

    wanted = {**os.environ, "TERM": "xterm-256color", **more}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", "stats", "--plot"],
        env=wanted,
        encoding="utf-8",
        dimensions=(40, 100),
        timeout=60,
    )
    child.expect(pexpect.EOF)

    assert "at most 10/min" in child.before
    assert ("\x1b[31m" in child.before) is coloured
