"""The pages of schedules: what ticks when, what became of it, and what people do to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import quote

import pytest

from build import Clock, a_session, claim, completed
from page_kit import PageSite, followed, paged, words
from rota._core.schedule import Edits, Fate, Misfire, Origin, ScheduleSpec, TickJob, job_for
from rota._core.schedule import Firing as Firings
from rota.admin import Admin
from rota.new_ids import new_id
from rota.stores.memory import MemoryStore
from rota.web.pages.ticks import marked

HOSTILE = 'a/b c%?#<i>"'


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


def spec(name: str = "nightly", timing: str = "30 2 * * *", **more) -> ScheduleSpec:
    given = {
        "template_json": '{"payload": {"to": "ann", "api_token": "sesame"}, "queue": "post"}',
        "tz": "Europe/Berlin",
    }
    return ScheduleSpec(name, "mail", timing=timing, **(given | more))


async def fired(site: PageSite, what: ScheduleSpec, *ticks) -> list:
    given = tuple(TickJob(tick, tick, job_for(what, tick, new_id())) for tick in ticks)
    version = (await Admin(site.store, actor="x").schedule(what.name)).version
    return await site.store.fire(Firings(what.name, given, version=version, cursor=ticks[-1]))


async def test_without_schedules_the_page_teaches_how_to_declare_one(site):
    page = await (await site.visitor("viewer")).get("/schedules")

    assert "No schedules yet" in words(page)
    assert "@app.schedule(" in words(page)


async def test_the_list_says_when_each_one_ticks_in_words_and_what_became_of_it(site, clock):
    await site.store.publish_schedules([spec(), spec("poll", "every 5m", tz="UTC")])
    await Admin(site.store, actor="ann").pause_schedule("poll", reason="quiet please")

    page = await (await site.visitor("viewer")).get("/schedules")

    assert "At 02:30 every day, Europe/Berlin" in words(page)
    assert "Every 5m" in words(page)
    assert "paused" in words(page)
    assert "2 schedules" in words(page)
    assert "no tick yet" in words(page)


async def test_a_schedule_shows_its_next_ticks_on_two_clocks_and_its_rules_in_sentences(site):
    await site.store.publish_schedules(
        [spec(misfire=Misfire.ALL, cap=7, windows=("0 1 * * SUN for 2h",), jitter=120.0)]
    )

    page = await (await site.visitor("viewer")).get("/schedules/nightly")

    assert "At 02:30 every day, Europe/Berlin" in words(page)
    assert "CET" in words(page) or "CEST" in words(page)
    assert "all run, the newest 7 of them" in words(page)
    assert "A tick is left out while the job of the last one is unfinished." in words(page)
    assert "chosen within 2m" in words(page)
    assert "not during 0 1 * * SUN for 2h" in words(page)


async def test_a_day_on_which_the_clocks_change_is_marked(clock):
    clock.now = clock.now.replace(year=2027, month=3, day=27)
    async with paged(MemoryStore(clock=clock)) as site:
        await site.store.publish_schedules([spec()])

        page = await (await site.visitor("viewer")).get("/schedules/nightly")

    assert "the clocks go forward that day" in words(page)


async def test_arguments_are_shown_without_their_secrets(site):
    await site.store.publish_schedules([spec()])
    await Admin(site.store, actor="ann").edit_schedule(
        "nightly", Edits(payload_json='{"to": "bob", "api_token": "open sesame"}', timing="0 4 * * *")
    )

    page = await (await site.visitor("manager")).get("/schedules/nightly")

    assert "bob" in words(page)
    assert "sesame" not in page.text
    assert "30 2 * * * 0 4 * * *" in words(page)  # the code says, holds now


async def test_an_operator_pauses_with_a_reason_and_may_take_it_back(site):
    await site.store.publish_schedules([spec()])
    otto = await site.visitor("operator")

    paused = await followed(otto, "/schedules/pause/nightly", reason="the disk is full")
    resumed = await followed(otto, "/schedules/resume/nightly")

    assert "Paused nightly." in words(paused)
    assert (
        'action="/schedules/resume/nightly"'
        in paused.text.partition('id="notice"')[2].partition("</form>")[0]
    )
    assert "the disk is full" in words(paused)
    assert "nightly ticks again" in words(resumed)
    assert "Nobody touched it" not in words(resumed)


async def test_running_it_now_lands_on_its_job(site):
    await site.store.publish_schedules([spec()])
    otto = await site.visitor("operator")

    answer = await otto.post("/schedules/run/nightly", data={"reason": "the customer waits"})
    [tick] = await site.store.ticks("nightly", limit=5)

    assert answer.status_code == 303
    assert "/jobs/" in answer.headers["location"] or "page.job" in answer.headers["location"]
    assert tick.origin is Origin.RUN


async def test_a_manager_lets_the_codes_word_hold_again(site):
    await site.store.publish_schedules([spec()])
    await Admin(site.store, actor="ann").edit_schedule("nightly", Edits(timing="0 4 * * *"))
    mona = await site.visitor("manager")

    page = await followed(mona, "/schedules/reset/nightly", reason="over")

    assert "What the code says of nightly holds again" in words(page)
    assert "At 02:30 every day" in words(page)


async def test_a_backfill_is_shown_before_it_is_done(site, clock):
    await site.store.publish_schedules([spec("poll", "every 1h", tz="UTC")])
    mona = await site.visitor("manager")

    preview = await mona.get("/schedules/poll", params={"begin": "3h", "end": ""})
    begin, end = (
        preview.text.partition(f'type="hidden" name="{name}" value="')[2].partition('"')[0]
        for name in ("begin", "end")
    )
    before = await site.store.ticks("poll", limit=9)
    done = await followed(mona, "/schedules/backfill/poll", begin=begin, end=end, reason="an outage")
    again = await mona.get("/schedules/poll", params={"begin": "3h"})

    assert "4 jobs would be enqueued for 4 ticks" in words(preview)
    assert before == []
    assert "4 ticks of poll made good" in words(done)
    assert "an outage" in words(done)
    assert "0 jobs would be enqueued" in words(again)


async def test_a_backfill_of_very_many_needs_its_number_typed(site):
    await site.store.publish_schedules([spec("poll", "every 1m", tz="UTC")])
    mona = await site.visitor("manager")
    form = {"begin": "1d", "end": "1m"}

    untyped = await mona.post("/schedules/backfill/poll", data=form)
    typed = await mona.post("/schedules/backfill/poll", data=form | {"number": "1440"})

    assert (untyped.status_code, "type 1440 to go on" in words(untyped)) == (422, True)
    assert typed.status_code == 303


@pytest.mark.parametrize(
    "query", [{"begin": "soon"}, {"begin": "1h", "end": "2h"}, {"begin": "2099-01-01", "end": "2099-01-02"}]
)
async def test_a_stretch_of_time_that_makes_no_sense_is_said_on_a_page(site, query):
    await site.store.publish_schedules([spec()])

    page = await (await site.visitor("manager")).get("/schedules/nightly", params=query)

    assert (page.status_code, "That does not fit" in words(page)) == (422, True)


async def test_only_who_may_sees_buttons_and_gets_through(site):
    await site.store.publish_schedules([spec()])
    vera, otto = await site.visitor("viewer"), await site.visitor("operator")

    seen = [await vera.get("/schedules"), await vera.get("/schedules/nightly")]
    operators = await otto.get("/schedules/nightly")

    assert all("Run now" not in words(page) and "Make the past good" not in words(page) for page in seen)
    assert ["Run now" in words(operators), "Make the past good" in words(operators)] == [True, False]
    for verb in ("pause", "resume", "run", "reset", "backfill"):
        assert (await vera.post(f"/schedules/{verb}/nightly")).status_code == 403
    for verb in ("reset", "backfill"):
        assert (await otto.post(f"/schedules/{verb}/nightly")).status_code == 403


async def test_people_of_one_tenant_are_told_that_schedules_are_about_all(site):
    await site.store.publish_schedules([spec()])
    red = await site.visitor("operator", "red")

    listed, shown = await red.get("/schedules"), await red.get("/schedules/nightly")

    assert "Schedules are about all tenants" in words(listed)
    assert "nightly" not in words(listed)
    assert shown.status_code == 403


async def test_any_name_can_be_shown_and_paused(site):
    await site.store.publish_schedules([spec(HOSTILE)])
    otto = await site.visitor("operator")

    listed = await otto.get("/schedules")
    link = listed.text.partition('data-open href="')[2].partition('"')[0]
    shown = await otto.get(link)
    paused = await followed(otto, f"/schedules/pause/{quote(HOSTILE)}")

    assert shown.status_code == 200
    assert HOSTILE not in shown.text
    assert "Paused" in words(paused)
    assert (await otto.get("/schedules/nobody")).status_code == 404


async def test_the_last_ticks_are_marks_with_words(site, clock):
    what = spec("poll", "every 10m", tz="UTC")
    await site.store.publish_schedules([what])
    start = clock.now
    clock.advance(600)
    await fired(site, what, start + timedelta(minutes=10))
    [job] = await claim(site.store, await a_session(site.store, lease=1e6))
    await site.store.settle([completed(job)])
    clock.advance(1500)
    await fired(site, what, start + timedelta(minutes=30))

    page = await (await site.visitor("viewer")).get("/schedules/poll")

    assert "12:10:00 UTC: completed" in words(page)
    assert "12:20:00 UTC: missed: nobody took it" in words(page)
    assert "12:30:00 UTC: waiting, 5m late" in words(page)


async def test_what_was_skipped_is_hollow_and_another_timing_misses_nothing(site, clock):
    what = spec("poll", "*/10 * * * *", tz="UTC")
    await site.store.publish_schedules([what])
    start = clock.now
    clock.advance(1200)
    first, second = await fired(site, what, start + timedelta(minutes=10), start + timedelta(minutes=20))
    ticks = await site.store.ticks("poll", limit=9)

    marks = marked(what, ticks, clock.now)
    other = marked(what._replace(timing="3-59/10 * * * *"), ticks, clock.now)

    assert (first.fate, second.fate) == (Fate.ENQUEUED, Fate.OVERLAP)
    assert [mark.tone for mark in marks] == ["warn", "hollow"]
    assert marks[1].word == "skipped: the last one was unfinished"
    assert not any("missed" in mark.word for mark in other if mark.tick <= second.tick)


async def test_a_schedule_that_was_asleep_for_years_is_drawn_at_once(clock):
    what = spec("poll", "* * * * *", tz="UTC")
    async with paged(MemoryStore(clock=clock)) as site:
        await site.store.publish_schedules([what])
        first = clock.now.replace(second=0) + timedelta(minutes=1)
        clock.advance(60)
        await fired(site, what, first)
        clock.advance(3 * 365 * 86_400)

        marks = marked(what, await site.store.ticks("poll", limit=20), clock.now)

    assert [mark.tone for mark in marks] == ["hollow"] * 20
    assert clock.now - marks[-1].tick < timedelta(minutes=3)
