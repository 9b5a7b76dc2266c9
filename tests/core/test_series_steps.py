"""How long the slices of a chart are, where they begin, and what is drawn of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from rota._core.numbers import Ending, Total, bucket
from rota._core.series import Point, Series, Slice, charted, starts, step_for

HOUR = 3600.0
DAY = 24 * HOUR
NOW = datetime(2031, 5, 4, 13, 37, 21, 5000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "step"),
    [
        (900.0, 60.0), (HOUR, 60.0), (6 * HOUR, 300.0), (DAY, 900.0), (2 * DAY, 1800.0), (7 * DAY, 7200.0),
        (30 * DAY, 21_600.0), (90 * DAY, DAY),
    ],
)  # fmt: skip
def test_a_stretch_is_drawn_in_slices_that_can_be_told_apart(since: float, step: float):
    assert step_for(since) == step
    assert len(starts(NOW, since, step)) <= 121


def test_slices_begin_at_multiples_of_the_step_in_utc():
    assert starts(NOW, 900.0, 600.0) == [datetime(2031, 5, 4, 13, minute, tzinfo=UTC) for minute in (20, 30)]
    kabul = NOW.astimezone(timezone(timedelta(hours=4.5)))
    assert starts(kabul, 1.0, HOUR) == [datetime(2031, 5, 4, 13, tzinfo=UTC)]
    assert starts(NOW, DAY, DAY) == [datetime(2031, 5, day, tzinfo=UTC) for day in (3, 4)]


def test_a_point_has_what_charts_draw_of_all_queues_and_tasks_together():
    fast, slow = bucket(0.1), bucket(10.0)
    totals = (
        Total("mail", "send", Ending.COMPLETED, 8, waits={fast: 8}, runs={fast: 8}),
        Total("mail", "post", Ending.PARTIAL, 1, waits={slow: 1}, runs={slow: 1}),
        Total("mail", "send", Ending.FAILED, 3, runs={slow: 1}),
        Total("slow", "send", Ending.DEAD, 2),
        Total("slow", "send", Ending.SNOOZED, 1),
        Total("slow", "send", Ending.CANCELLED, 1),
    )
    series = Series(NOW, NOW, 60.0, (Slice(NOW, totals), Slice(NOW + timedelta(minutes=1))))

    busy, idle = charted(series).points
    assert (busy.completed, busy.failed, busy.dead, busy.other, busy.attempts) == (9, 3, 2, 2, 16)
    assert busy.runs == {fast: 8, slow: 2}
    assert busy.wait_p50 == pytest.approx(0.1, rel=0.25)
    assert busy.wait_p95 == pytest.approx(10.0, rel=0.25)
    assert busy.run_p50 == pytest.approx(0.1, rel=0.25)
    assert busy.run_p95 == pytest.approx(10.0, rel=0.25)
    assert idle == Point(NOW + timedelta(minutes=1))
    assert (idle.attempts, idle.run_p95) == (0, None)
