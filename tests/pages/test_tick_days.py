"""Did the nightly run happen? Thirty days of ticks on the page of a schedule: one by one, or day by day."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from build import Clock, a_session, claim, completed, failed
from page_kit import PageSite, paged, words
from rota._core.failure import ErrorClass
from rota._core.schedule import Firing, Overlap, ScheduleSpec, TickJob, job_for
from rota.new_ids import new_id
from rota.stores.memory import MemoryStore
from rota.web.pages import tick_days
from rota.web.pages.tick_days import month_of

DAY = timedelta(days=1)


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


@pytest.fixture
def few(monkeypatch) -> None:
    """So few ticks are shown one by one that a test need not make hundreds."""
    monkeypatch.setattr(tick_days, "ONE_BY_ONE", 20)


def died(job):
    return failed(job, ErrorClass.NON_RETRYABLE)


def spec(timing: str) -> ScheduleSpec:
    return ScheduleSpec("it", "mail", '{"payload": {"to": "ann"}}', timing, overlap=Overlap.ALLOW)


async def ticked(site: PageSite, what: ScheduleSpec, tick, ends=completed) -> None:
    """One tick at its time or, by the clock, later; `ends` says how its job ends."""
    [record] = (await site.store.roster([what.name])).schedules
    given = (TickJob(tick, tick, job_for(what, tick, new_id())),)
    await site.store.fire(Firing(what.name, given, version=record.version, cursor=tick))
    if ends is not None:
        session = await a_session(site.store, lease=1e9)
        await site.store.settle([ends(job) for job in await claim(site.store, session)])


async def test_a_nightly_schedule_has_one_mark_for_each_of_thirty_nights(site, clock):
    what = spec("0 2 * * *")
    await site.store.publish_schedules([what])
    night = clock.now.replace(hour=2, minute=0, second=0)
    for number in range(1, 41):
        tick = night + number * DAY
        clock.now = tick + timedelta(seconds=3600 if number == 39 else 0)
        if number != 37:
            await ticked(site, what, tick, died if number == 38 else completed)
    clock.advance(7200)

    folded, marks = await month_of(site.store, what, clock.now)
    page = words(await (await site.visitor("viewer")).get("/schedules/it"))

    assert not folded
    assert [mark.tone for mark in marks] == ["ok"] * 26 + ["hollow", "bad", "warn", "ok"]
    assert "Ticks of the last 30 days" in page
    assert "missed: nobody took it" in page
    assert "completed, 1h late" in page


async def test_a_schedule_that_ticks_often_has_one_mark_a_day_and_the_worst_gives_its_colour(
    site, clock, few
):
    what = spec("0 * * * *")
    await site.store.publish_schedules([what])
    midnight = clock.now.replace(hour=0, minute=0, second=0) + DAY
    for number in range(1, 5 * 24):
        tick = midnight + timedelta(hours=number)
        clock.now = tick
        if tick.day == (midnight + 2 * DAY).day and tick.hour in (5, 6):
            continue  # nobody was there
        await ticked(site, what, tick, died if (tick - midnight).days == 3 and tick.hour == 7 else completed)
    clock.advance(1800)

    folded, marks = await month_of(site.store, what, clock.now)
    page = words(await (await site.visitor("viewer")).get("/schedules/it"))

    assert folded
    assert [(mark.tone, mark.word) for mark in marks] == [
        ("ok", "23 completed"),
        ("ok", "24 completed"),
        ("hollow", "2 missed, 22 completed"),
        ("bad", "1 dead, 23 completed"),
        ("ok", "24 completed"),
    ]
    assert "The last 30 days, day by day" in page
    assert f"{midnight + 2 * DAY:%Y-%m-%d}: 2 missed, 22 completed" in page


async def test_a_day_of_which_nothing_is_known_any_more_is_unknown_and_not_missed(site, clock, few):
    what = spec("0 * * * *")
    await site.store.publish_schedules([what])
    midnight = clock.now.replace(hour=0, minute=0, second=0) + DAY
    for number in range(1, 25):
        clock.now = midnight + timedelta(hours=number)
        await ticked(site, what, clock.now)
    jobs = list(site.store._book.jobs)  # as if somebody had deleted them, with their summaries
    for job_id in jobs:
        del site.store._book.jobs[job_id]

    _, marks = await month_of(site.store, what, clock.now)

    assert [(mark.tone, mark.word) for mark in marks] == [
        ("off", "23 no longer kept"),
        ("off", "1 no longer kept"),
    ]


async def test_other_times_than_it_has_now_missed_nothing(site, clock, few):
    often = spec("*/30 * * * *")
    await site.store.publish_schedules([often])
    midnight = clock.now.replace(hour=0, minute=0, second=0) + DAY
    for number in range(1, 3 * 48, 2):  # a half past each hour only
        clock.now = midnight + timedelta(minutes=30 * number)
        await ticked(site, often, clock.now)
    clock.now = midnight + 3 * DAY

    _, missing = await month_of(site.store, often, clock.now)
    _, other = await month_of(site.store, often._replace(timing="0 * * * *"), clock.now)

    assert [mark.word for mark in missing] == [
        "24 completed",
        "24 missed, 24 completed",
        "24 missed, 24 completed",
    ]
    assert [mark.word for mark in other] == ["24 completed"] * 3


async def test_a_schedule_that_was_asleep_all_month_missed_it_all(site, clock):
    what = spec("0 * * * *")
    await site.store.publish_schedules([what])
    clock.now = clock.now.replace(minute=0, second=0) + timedelta(hours=1)
    await ticked(site, what, clock.now)
    clock.advance(60 * 86_400)

    _, marks = await month_of(site.store, what, clock.now)

    assert len(marks) == 30
    assert {mark.tone for mark in marks} == {"hollow"}
    assert marks[0].word == "24 missed"


async def test_of_a_schedule_that_ticks_without_end_only_whole_days_are_shown(site, clock, few, monkeypatch):
    monkeypatch.setattr(tick_days, "COUNTED", 30)
    what = spec("0 * * * *")
    await site.store.publish_schedules([what])
    midnight = clock.now.replace(hour=0, minute=0, second=0) + DAY
    for number in range(3 * 24):
        clock.now = midnight + timedelta(hours=number)
        await ticked(site, what, clock.now)

    _, marks = await month_of(site.store, what, clock.now)
    monkeypatch.setattr(tick_days, "COUNTED", 10)
    _, few_marks = await month_of(site.store, what, clock.now)

    assert [mark.word for mark in marks] == ["24 completed"]
    assert [mark.word for mark in few_marks] == ["10 completed"]
