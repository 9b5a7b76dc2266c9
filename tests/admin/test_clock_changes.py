"""Schedules that fall into the hour in which the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rota._core.schedule import ScheduleSpec
from rota.admin import Admin
from rota.admin.clock_changes import clock_findings

AUTUMN = datetime(2026, 9, 1, 12, 34, 56, tzinfo=UTC)
WINTER = datetime(2026, 12, 1, tzinfo=UTC)


def said(timing: str, tz: str, now: datetime = AUTUMN) -> str:
    spec = ScheduleSpec("nightly", "email", '{"payload": {}}', timing, tz=tz)
    [finding] = clock_findings([spec], now)
    assert finding.level == "ok"
    return finding.what


@pytest.mark.parametrize(
    ("timing", "tz", "now", "told"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            AUTUMN,
            "02:30 Europe/Berlin on 2026-10-25 comes twice, and it ticks the first",
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            WINTER,
            "02:30 Europe/Berlin on 2027-03-28 is skipped, and it ticks once",
        ),
        ("0 2 * * 0", "Europe/Berlin", AUTUMN, "02:00 Europe/Berlin on 2026-10-25 comes twice"),
        ("30 1 * * *", "America/New_York", AUTUMN, "01:30 America/New_York on 2026-11-01 comes twice"),
        ("45 1 * * *", "Australia/Lord_Howe", WINTER, "01:45 Australia/Lord_Howe on 2027-04-04 comes twice"),
        ("0 3 * * *", "Europe/Berlin", AUTUMN, "no schedule falls"),
        ("30 2 * * 1-5", "Europe/Berlin", AUTUMN, "no schedule falls"),
        ("30 2 * * *", "UTC", AUTUMN, "no schedule falls"),
        ("*/10 * * * *", "Europe/Berlin", AUTUMN, "no schedule falls"),
        ("every 5m", "Europe/Berlin", AUTUMN, "no schedule falls"),
        ("@hourly", "Europe/Berlin", AUTUMN, "no schedule falls"),
        ("30 2 * * *", "Mars/Olympus_Mons", AUTUMN, "no schedule falls"),  # no zone of this machine
    ],
)
def test_a_time_that_is_skipped_or_comes_twice_is_told_with_what_happens_then(timing, tz, now, told):
    assert told in said(timing, tz, now)


async def test_the_doctor_tells_it_where_there_are_schedules(store):
    before = [finding.what for finding in await Admin(store, actor="ann").examine_work()]
    await store.publish_schedules([ScheduleSpec("nightly", "email", '{"payload": {}}', "0 12 * * *")])
    after = [finding.what for finding in await Admin(store, actor="ann").examine_work()]

    assert not any(what.startswith("clocks") for what in before)
    assert "clocks: no schedule falls into an hour that is skipped or comes twice" in after
