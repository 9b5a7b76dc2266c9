"""When schedules tick: cron and intervals over changes of the clocks, and the windows in which they do not."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota._core.schedule_plan import newest_ticks
from rota.errors import ScheduleError
from rota.schedule_times import times_of, windows_of, zone_of

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo", "UTC"]
EXPRESSIONS = [
    "30 2 * * *", "0 0 * * *", "15,45 0,1,2,3 * * *", "*/20 2 * * *", "0 */2 * * *", "7 * * * *", "*/10 * * * *",
    "0 12 1 * *", "30 2 * * SUN", "5 1-3 * 3,10 *",
]  # fmt: skip


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def between(timing: str, tz: str, begin: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda tick: tick <= end, times_of(timing, tz).after(begin)))


@pytest.mark.scenario(19)
def test_a_local_time_that_is_skipped_ticks_once_at_the_end_of_the_gap():
    # In Berlin 02:00 became 03:00 on 2026-03-29.
    ticks = between("30 2 * * *", "Europe/Berlin", utc(2026, 3, 27, 12), utc(2026, 3, 30, 12))

    assert ticks == [utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1, 0), utc(2026, 3, 30, 0, 30)]


@pytest.mark.scenario(19)
def test_a_local_time_that_comes_twice_ticks_the_first_time_only():
    # In Berlin 03:00 became 02:00 on 2026-10-25.
    ticks = between("30 2 * * *", "Europe/Berlin", utc(2026, 10, 23, 12), utc(2026, 10, 26, 12))

    assert ticks == [utc(2026, 10, 24, 0, 30), utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)]


def test_several_times_in_one_gap_tick_once_together():
    spring = between("*/15 2 * * *", "Europe/Berlin", utc(2026, 3, 28, 12), utc(2026, 3, 29, 12))
    autumn = between("*/15 2 * * *", "Europe/Berlin", utc(2026, 10, 24, 12), utc(2026, 10, 25, 12))

    assert spring == [utc(2026, 3, 29, 1, 0)]
    assert autumn == [utc(2026, 10, 25, 0, minute) for minute in (0, 15, 30, 45)]


def test_every_second_hour_keeps_to_the_clock_on_the_wall():
    spring = between("0 */2 * * *", "Europe/Berlin", utc(2026, 3, 28, 22), utc(2026, 3, 29, 4))
    autumn = between("0 */2 * * *", "Europe/Berlin", utc(2026, 10, 24, 21), utc(2026, 10, 25, 5))

    assert spring == [utc(2026, 3, 28, 23), utc(2026, 3, 29, 1), utc(2026, 3, 29, 2), utc(2026, 3, 29, 4)]
    assert autumn == [utc(2026, 10, 24, 22), utc(2026, 10, 25, 0), utc(2026, 10, 25, 3), utc(2026, 10, 25, 5)]


@pytest.mark.parametrize(("timing", "step"), [("*/10 * * * *", 600), ("every 10m", 600), ("0 * * * *", 3600)])
@pytest.mark.parametrize("month", [3, 10])
def test_what_runs_every_hour_or_oftener_follows_real_time(timing: str, step: int, month: int):
    ticks = between(timing, "Europe/Berlin", utc(2026, month, 20), utc(2026, month, 31))

    assert {(later - tick).total_seconds() for tick, later in pairwise(ticks)} == {step}


@settings(max_examples=150, deadline=None)
@given(
    tz=st.sampled_from(ZONES),
    at=st.times(min_value=time(0, 0), max_value=time(4, 0)).map(lambda t: t.replace(second=0, microsecond=0)),
    day=st.integers(0, 364),
)
def test_a_daily_schedule_ticks_once_for_each_local_day_at_its_time_or_the_gaps_end(
    tz: str, at: time, day: int
):
    zone = ZoneInfo(tz)
    date = datetime(2026, 1, 1) + timedelta(days=day)
    wanted = datetime.combine(date, at, tzinfo=zone)
    while wanted.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wanted.replace(tzinfo=None):
        wanted += timedelta(minutes=1)  # it does not exist: the clocks jump over it
    begin = datetime.combine(date, time(0), tzinfo=zone).astimezone(UTC) - timedelta(hours=1, seconds=1)
    ticks = between(f"{at.minute} {at.hour} * * *", tz, begin, begin + timedelta(hours=30))

    local_days = [tick.astimezone(zone).date() for tick in ticks]
    assert wanted.astimezone(UTC) in ticks
    assert local_days.count(date.date()) == 1


@settings(max_examples=150, deadline=None)
@given(
    tz=st.sampled_from(ZONES),
    timing=st.sampled_from([*EXPRESSIONS, "every 7m", "every 5h"]),
    begin=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1)),
    hours=st.floats(0, 80),
)
def test_ticks_are_the_same_from_wherever_one_begins_to_count(
    tz: str, timing: str, begin: datetime, hours: float
):
    early = begin.replace(tzinfo=UTC)
    late = early + timedelta(hours=hours)
    end = late + timedelta(days=2)

    whole = between(timing, tz, early, end)

    assert whole == sorted(set(whole))
    assert between(timing, tz, late, end) == [tick for tick in whole if tick > late]
    assert newest_ticks(times_of(timing, tz), early, end, 5) == whole[-5:]


def test_from_within_the_second_coming_of_an_hour_no_tick_of_its_first_is_told_again():
    times = times_of("30 2 * * *", "Europe/Berlin")
    first, again = utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 9)  # 02:30, and 02:09 an hour later

    assert next(times.after(first - timedelta(minutes=1))) == first
    assert next(times.after(again)) == utc(2026, 10, 26, 1, 30)


@pytest.mark.req("V33")
def test_the_four_periodic_jobs_of_docverse_tick_at_their_times():
    day = lambda timing: [  # noqa: E731
        f"{tick:%a %H:%M}" for tick in between(timing, "UTC", utc(2026, 5, 2), utc(2026, 5, 3, 23))
    ]

    assert day("0 3 * * *") == ["Sat 03:00", "Sun 03:00"]
    assert day("0 4 * * *") == ["Sat 04:00", "Sun 04:00"]
    assert day("0 5 * * *") == ["Sat 05:00", "Sun 05:00"]
    assert day("0 2 * * SUN") == ["Sun 02:00"]


def test_intervals_are_counted_from_1970_so_all_schedulers_agree():
    ticks = list(islice(times_of("every 6h", "Europe/Berlin").after(utc(2026, 5, 4, 12, 0)), 3))

    assert ticks == [utc(2026, 5, 4, 18), utc(2026, 5, 5, 0), utc(2026, 5, 5, 6)]
    assert next(times_of("every 90", "UTC").after(utc(1970, 1, 1))) == utc(1970, 1, 1, 0, 1, 30)


def test_the_usual_nicknames_are_understood_and_can_be_said_in_words():
    assert next(times_of("@daily", "UTC").after(utc(2026, 5, 4, 12))) == utc(2026, 5, 5)
    assert times_of("30 2 * * *", "Europe/Berlin").words() == "At 02:30 every day"
    assert times_of("every 5m", "UTC").words() == "Every 5m"


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        ("30 2 * *", "the schedule '30 2 * *' has 4 fields instead of five. Write five fields such as"),
        ("61 * * * *", "the schedule '61 * * * *' cannot be read: bad minute."),
        ("0 0 30 2 *", "cannot be read: bad day-of-month"),
        ("*/5 * * * * *", "has six fields, and seconds are too frequent for cron. Leave the first one out, or write"),
        ("@often", "the schedule '@often' is not known; there are @yearly,"),
        ("every 0.5s", "every('0.5s') is too frequent: a schedule ticks at most once a second."),
        ("every now", "every(…) 'now' is not understood; write it like"),
    ],
)  # fmt: skip
def test_a_time_that_cannot_be_says_what_is_wrong_and_what_to_write(timing: str, words: str):
    with pytest.raises(ScheduleError) as raised:
        times_of(timing, "UTC")

    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("tz", "words"),
    [
        ("Berlin", "there is no time zone 'Berlin'; did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("new york", "did you mean 'America/New_York'?"),
        ("nowhere", 'zones are named like "Europe/Berlin".'),
        ("../../etc/passwd", "there is no time zone"),
    ],
)  # fmt: skip
def test_a_zone_that_is_not_there_is_named_with_the_nearest(tz: str, words: str):
    with pytest.raises(ScheduleError) as raised:
        zone_of(tz)

    assert words in str(raised.value)


def test_a_window_is_closed_from_its_start_to_its_end_in_the_schedules_zone():
    windows = windows_of(("0 1 * * SUN for 2h", "2026-05-06T10:00 to 2026-05-06T12:00"), "Europe/Berlin")

    assert windows.reopens(utc(2026, 5, 2, 22, 59, 59)) is None
    assert windows.reopens(utc(2026, 5, 2, 23, 0)) == utc(2026, 5, 3, 1, 0)
    assert windows.reopens(utc(2026, 5, 3, 1, 0)) is None
    assert windows.reopens(utc(2026, 5, 6, 9)) == utc(2026, 5, 6, 10)


def test_windows_that_follow_at_once_or_overlap_are_one():
    windows = windows_of(("0 1 * * * for 1h", "0 2 * * * for 30m", "15 2 * * * for 1h"), "UTC")

    assert windows.reopens(utc(2026, 5, 4, 1, 30)) == utc(2026, 5, 4, 3, 15)
    assert windows.back(utc(2026, 5, 4, 3, 15, 20), 60) == utc(2026, 5, 4, 0, 59, 20)
    assert windows.back(utc(2026, 5, 4, 0, 30), 60) == utc(2026, 5, 4, 0, 29)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("sundays", "the window 'sundays' is not understood. Write \"0 1 * * SUN for 2h\", or"),
        ("0 1 * * SUN for long", "cannot be used: a window's length 'long' is not understood"),
        ("0 1 * * SUN for 8d", "must be longer than nothing and at most 7 days. Pause the schedule for longer times."),
        ("2026-05-06 to 2026-05-05", "needs two moments, the earlier one first."),
        ("0 1 * * SUN to 2026-05-05", "needs two moments"),
        ("0 0 * * * for 1d", "leaves no time in which the schedule may tick."),
        ("0 99 * * * for 1h", "cannot be read: bad hour"),
    ],
)  # fmt: skip
def test_a_window_that_cannot_be_says_what_is_wrong(window: str, words: str):
    with pytest.raises(ScheduleError) as raised:
        windows_of((window,), "UTC")

    assert words in str(raised.value)
