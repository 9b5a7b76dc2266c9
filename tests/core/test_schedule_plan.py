"""Which ticks become jobs: on time, missed by an outage, or inside a maintenance window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rota._core.schedule import Misfire, ScheduleSpec
from rota._core.schedule_plan import AT_ONCE, Plan, delay, plan
from rota.schedule_times import times_of, windows_of

MINUTE = timedelta(minutes=1)


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 5, 4, hour, minute, second, tzinfo=UTC)


def planned(cursor: datetime, now: datetime, timing: str = "*/10 * * * *", **options) -> Plan:
    spec = ScheduleSpec("nightly", "report", "{}", timing, **options)
    return plan(spec, cursor, now, times_of(spec.timing, spec.tz), windows_of(spec.windows, spec.tz))


def test_nothing_is_due_before_its_time_and_the_tick_is_due_at_it():
    early = planned(at(12), at(12, 9, 59))

    assert early == Plan((), None, at(12, 10))
    assert planned(at(12), at(12, 10)) == Plan((at(12, 10),), at(12, 10), at(12, 20))


@pytest.mark.scenario(19)
@pytest.mark.parametrize(
    ("misfire", "ticks"),
    [
        (Misfire.SKIP, []),
        (Misfire.LAST, [at(14, 50)]),
        (Misfire.ALL, [at(14, 30), at(14, 40), at(14, 50)]),
    ],
)
def test_after_an_outage_the_misfire_policy_says_what_runs(misfire: Misfire, ticks: list[datetime]):
    found = planned(at(12), at(14, 55), misfire=misfire, cap=3)

    assert list(found.ticks) == ticks
    assert (found.cursor, found.look_at, found.missed) == (at(14, 50), at(15), True)


@pytest.mark.parametrize(
    ("misfire", "ticks"),
    [
        (Misfire.SKIP, [at(15)]),
        (Misfire.LAST, [at(15)]),
        (Misfire.ALL, [at(14, 40), at(14, 50), at(15)]),
    ],
)
def test_a_tick_within_the_grace_is_on_time_whatever_was_missed_before(
    misfire: Misfire, ticks: list[datetime]
):
    found = planned(at(12), at(15, 0, 59), misfire=misfire, cap=2)

    assert list(found.ticks) == ticks


def test_a_short_hiccup_loses_no_tick_of_a_quick_schedule():
    found = planned(at(12), at(12, 0, 7), "every 1s", misfire=Misfire.SKIP)

    assert list(found.ticks) == [at(12, 0, second) for second in range(1, 8)]
    assert not found.missed


def test_how_long_a_tick_may_be_late_is_its_own_grace():
    late = at(12, 14)

    assert planned(at(12), late, misfire=Misfire.SKIP).ticks == ()
    assert planned(at(12), late, misfire=Misfire.SKIP, grace=300.0).ticks == (at(12, 10),)


def test_a_great_many_ticks_are_taken_a_round_at_a_time():
    options = {"timing": "every 1s", "misfire": Misfire.ALL, "cap": 800, "grace": 0.0}
    first = planned(at(12), at(13), **options)
    assert first.cursor is not None
    second = planned(first.cursor, at(13), **options)

    assert len(first.ticks) == AT_ONCE
    assert first.look_at == at(13), "at once"
    assert [*first.ticks, *second.ticks] == [at(13) - timedelta(seconds=n) for n in range(800, -1, -1)]


def test_years_of_missed_ticks_are_not_counted_one_by_one():
    found = planned(
        datetime(1990, 1, 1, tzinfo=UTC), at(12, 0, 30), "every 1s", misfire=Misfire.LAST, grace=5.0
    )

    assert found.ticks == tuple(at(12, 0, second) for second in range(25, 31))


def test_jitter_is_a_delay_of_the_schedules_own_and_always_the_same():
    spec = ScheduleSpec("nightly", "report", "{}", "*/10 * * * *", jitter=300.0)
    shift = delay(spec)

    assert timedelta(0) < shift < timedelta(minutes=5)
    assert delay(spec._replace(name="other")) != shift
    assert planned(at(12), at(12, 10), jitter=300.0) == Plan((), None, at(12, 10) + shift)
    assert planned(at(12), at(12, 10) + shift, jitter=300.0).ticks == (at(12, 10),)


WINDOW = {"windows": ("0 13 * * * for 1h",)}


@pytest.mark.req("V34")
@pytest.mark.parametrize(
    ("misfire", "ticks"),
    [
        (Misfire.SKIP, [at(14)]),
        (Misfire.LAST, [at(14)]),
        (Misfire.ALL, [at(13, 40), at(13, 50), at(14)]),
    ],
)
def test_ticks_inside_a_maintenance_window_follow_the_misfire_policy_at_its_end(
    misfire: Misfire, ticks: list[datetime]
):
    inside = planned(at(12, 50), at(13, 20), misfire=misfire, cap=2, **WINDOW)
    after = planned(at(12, 50), at(14), misfire=misfire, cap=2, **WINDOW)

    assert inside == Plan((), None, at(14))
    assert list(after.ticks) == ticks


def test_the_only_tick_of_a_day_that_falls_into_a_window_runs_at_its_end_or_not_at_all():
    daily = {"timing": "30 13 * * *", **WINDOW}

    assert planned(at(12), at(14), misfire=Misfire.LAST, **daily).ticks == (at(13, 30),)
    assert planned(at(12), at(14), misfire=Misfire.SKIP, grace=3600.0, **daily).ticks == ()


def test_a_tick_just_before_a_window_is_not_lost_when_the_window_is_faster():
    daily = {"timing": "59 12 * * *", "misfire": Misfire.SKIP, **WINDOW}

    assert planned(at(12), at(13, 0, 1), **daily).ticks == ()
    assert planned(at(12), at(14, 0, 0), **daily).ticks == (at(12, 59),)
    assert planned(at(12), at(14, 0, 1), **daily).ticks == (), (
        "a minute and a second late, the window not counted"
    )


def test_a_schedule_that_never_ticks_again_needs_no_look():
    class Never:
        def after(self, moment):
            return iter(())

    found = plan(ScheduleSpec("n", "t", "{}", ""), at(12), at(13), Never(), windows_of((), "UTC"))

    assert found == Plan((), None, None)
