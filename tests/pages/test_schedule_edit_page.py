"""The form that edits a schedule: what holds, whose word it is, and what would come of it before it is saved."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from build import Clock
from page_kit import PageSite, followed, paged, words
from rota._core.schedule import Edits, Misfire, Overlap, ScheduleSpec
from rota.admin import Admin

PLACE = "/edit/schedules/nightly"
SPEC = ScheduleSpec(
    "nightly",
    "mail",
    '{"payload": {"to": "ann", "api_token": "sesame"}, "queue": "post"}',
    "30 2 * * *",
    tz="Europe/Berlin",
    jitter=90.0,
    windows=("0 1 * * SUN for 2h",),
)


@pytest.fixture
async def site(store, clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(store) as site:
        await store.publish([task.spec() for task in site.app.tasks.values()])
        await store.publish_schedules([SPEC])
        yield site


async def record(site: PageSite):
    return await Admin(site.store, actor="x").schedule("nightly")


def value(page, name: str) -> str:
    """What stands in a field of the form."""
    field = re.search(rf'<(input|textarea|select) id="{name}"[^>]*>', page.text)
    assert field is not None, name
    if field[1] == "input":
        return re.search(r'value="([^"]*)"', field[0])[1]
    inside = page.text[field.end() :].partition(f"</{field[1]}>")[0]
    return inside.strip() if field[1] == "textarea" else re.search(r"<option selected>(\w+)", inside)[1]


async def test_the_form_shows_what_holds_and_whose_word_it_is(site):
    await Admin(site.store, actor="ann").edit_schedule("nightly", Edits(timing="0 4 * * *", grace=600.0))

    page = await (await site.visitor("manager")).get(PLACE)

    assert [value(page, name) for name in ("timing", "tz", "jitter", "grace", "windows", "queue", "priority")] == [
        "0 4 * * *", "Europe/Berlin", "90s", "10m", "0 1 * * SUN for 2h", "post", "100",
    ]  # fmt: skip
    assert (value(page, "overlap"), value(page, "misfire")) == ("skip", "last")
    assert "Time set by people; the code says 30 2 * * *" in words(page)
    assert "Time zone the code's word" in words(page)
    assert "At 04:00 every day, Europe/Berlin" in words(page)
    assert "sesame" not in page.text


async def test_what_would_come_of_it_is_shown_before_it_is_saved(site, clock):
    clock.now = clock.now.replace(year=2027, month=3, day=27, hour=12)
    mona = await site.visitor("manager")

    shown = await mona.post(PLACE, data={"timing": "0 3 * * *", "do": "show"})

    assert shown.status_code == 200
    assert "Time 30 2 * * * 0 3 * * *" in words(shown)
    assert "Sun 2027-03-28 03:00" in words(shown)  # with its jitter
    assert "the clocks go forward that day" in words(shown)
    assert 'value="save"' in shown.text
    assert (await record(site)).edits == Edits()


async def test_everything_can_be_set_at_once_and_stands_in_the_audit_with_who_and_why(site):
    mona = await site.visitor("manager")
    version = (await record(site)).version

    page = await followed(
        mona,
        PLACE,
        do="save",
        version=str(version),
        timing=" every  10m ",
        tz="UTC",
        jitter="30",
        overlap="allow",
        misfire="all",
        cap="7",
        grace="2m",
        windows="0 1 * * SUN for 2h\r\n\r\n 0 3 * * SAT for 1h ",
        queue="slow",
        priority="5",
        reason="the bank is late",
    )
    now = await record(site)
    [row] = await site.store.audit(about="schedule:nightly")

    assert now.edits == Edits(
        timing="every 10m",
        tz="UTC",
        jitter=30.0,
        overlap=Overlap.ALLOW,
        misfire=Misfire.ALL,
        cap=7,
        grace=120.0,
        windows=("0 1 * * SUN for 2h", "0 3 * * SAT for 1h"),
        queue="slow",
        priority=5,
    )
    assert (row.action, row.actor.partition(" (")[0]) == ("edit", "manager of all")
    assert row.reason == "the bank is late"
    assert "Changed time, time zone, jitter, overlap, missed ticks" in words(page)
    assert "Every 10m" in words(page)


async def test_what_is_left_as_it_stands_is_no_edit(site):
    mona = await site.visitor("manager")
    opened = await mona.get(PLACE)
    form = {name: value(opened, name) for name in ("timing", "tz", "jitter", "overlap", "misfire", "windows")}

    page = await followed(mona, PLACE, do="save", **form)

    assert "Nothing was changed." in words(page)
    assert await site.store.audit(about="schedule:nightly") == []


async def test_a_field_that_says_what_the_code_says_or_nothing_lets_the_code_speak_again(site):
    await Admin(site.store, actor="ann").edit_schedule(
        "nightly", Edits(timing="0 4 * * *", tz="UTC", cap=5, windows=())
    )
    mona = await site.visitor("manager")

    await followed(mona, PLACE, do="save", timing="30 2 * * *", tz="", windows="0 1 * * SUN for 2h")
    one_left = (await record(site)).edits
    await followed(mona, PLACE, do="save", windows="")
    no_windows = (await record(site)).edits

    assert one_left == Edits(cap=5)
    assert no_windows == Edits(cap=5, windows=())


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("timing", "30 2 * *", "has 4 fields instead of five"),
        ("timing", "every 0.2s", "a schedule ticks at most once a second"),
        ("tz", "Berlin", "did you mean &#39;Europe/Berlin&#39;?"),
        ("jitter", "soon", "is not understood"),
        ("jitter", "2d", "at most a day"),
        ("cap", "many", "&#39;many&#39; is not a whole number."),
        ("cap", "5000", "is not a whole number from 1 to 1000"),
        ("grace", "9w", "at most a week"),
        ("windows", "all night", "is not understood"),
        ("misfire", "all", "Use overlap="),
        ("overlap", "twice", "choose one of skip, allow"),
        ("priority", "99999", "32767"),
        ("queue", "q" * 2000, "queue"),
    ],
)
async def test_what_does_not_fit_is_said_beside_its_field_and_nothing_typed_is_lost(site, field, typed, said):
    mona = await site.visitor("manager")

    page = await mona.post(PLACE, data={field: typed, "reason": "it must", "do": "save"})
    beside = page.text.partition(f'id="{field}-error"')[2].partition("</p>")[0]

    assert page.status_code == 422
    assert said in beside
    assert "it must" in page.text
    if field != "overlap":  # a choice keeps what can be chosen
        assert value(page, field) == typed
    assert (await record(site)).edits == Edits()


async def test_arguments_are_edited_by_fields_and_what_is_hidden_stays(site):
    mona = await site.visitor("manager")
    opened = await mona.get(PLACE)
    form = dict(re.findall(r'name="(arg[^"]*)" [^>]*value="([^"]*)"', opened.text))
    [to] = [name for name, typed in form.items() if typed == "ann"]

    shown = await mona.post(PLACE, data=form | {to: "bob", "do": "show"})
    await followed(mona, PLACE, **form | {to: "bob", "do": "save"})
    edited = (await record(site)).edits.payload_json
    await followed(mona, PLACE, **form | {to: "ann", "do": "save"})

    assert "sesame" not in shown.text
    assert '"to": "bob"' in edited
    assert '"api_token": "sesame"' in edited
    assert (await record(site)).edits == Edits()


async def test_who_saves_over_somebody_elses_change_is_told_and_loses_nothing(site):
    mona = await site.visitor("manager")
    version = str((await record(site)).version)
    await Admin(site.store, actor="ann").edit_schedule("nightly", Edits(cap=3))

    late = await mona.post(PLACE, data={"timing": "0 5 * * *", "version": version, "do": "save"})
    newer = re.search(r'name="version" value="(\d+)"', late.text)[1]
    again = await mona.post(PLACE, data={"timing": "0 5 * * *", "version": newer, "do": "save"})

    assert late.status_code == 409
    assert "somebody changed the schedule since this form was opened" in words(late)
    assert value(late, "timing") == "0 5 * * *"
    assert again.status_code == 303
    assert (await record(site)).edits == Edits(timing="0 5 * * *", cap=3)


async def test_an_error_in_a_late_form_does_not_hide_that_somebody_changed_the_schedule(site):
    mona = await site.visitor("manager")
    form = {"timing": "0 5 * * *", "cap": "1", "version": str((await record(site)).version), "do": "save"}
    await Admin(site.store, actor="ann").edit_schedule("nightly", Edits(cap=3))

    late = await mona.post(PLACE, data=form | {"jitter": "soon"})

    assert late.status_code == 409
    assert "somebody changed the schedule since this form was opened" in words(late)
    assert "Some settings do not fit; see below." in words(late)
    assert "save again" not in words(late)
    assert (value(late, "timing"), value(late, "jitter")) == ("0 5 * * *", "soon")
    assert "At most 3 1" in words(late)
    assert (await record(site)).edits == Edits(cap=3)


async def test_a_schedule_that_cannot_be_read_here_can_be_put_right(site):
    await site.store.publish_schedules([SPEC._replace(tz="Mars/Olympus")])
    mona = await site.visitor("manager")

    opened = await mona.get(PLACE)
    saved = await mona.post(PLACE, data={"tz": "UTC", "do": "save"})

    assert opened.status_code == 200
    assert "there is no time zone" in words(opened)
    assert saved.status_code == 303


async def test_only_managers_edit_and_only_where_all_tenants_are_theirs(site):
    otto, red = await site.visitor("operator"), await site.visitor("manager", "red")

    seen = await otto.get("/schedules/nightly")

    assert PLACE not in seen.text
    assert (await otto.get(PLACE)).status_code == 403
    assert (await red.get(PLACE)).status_code == 403
    assert PLACE in (await (await site.visitor("manager")).get("/schedules/nightly")).text
