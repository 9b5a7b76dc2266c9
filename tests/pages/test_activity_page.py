"""The activity page: bulk operations with their progress, and the audit."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from build import a_job
from page_kit import PageSite, followed, paged, words
from rota._core.actions import Audit, Verb
from rota._core.dead_letter import DeadFilter
from rota._core.operation import OperationState
from rota._core.review import ReviewVerb
from rota.admin import Admin, scope
from rota.stores.memory import MemoryStore
from web_routes import Stage


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        yield site


async def an_operation(site: PageSite, tenant: str | None = None, dead: int = 2, **options):
    stage = Stage(site.store)
    for _ in range(dead):
        await stage.dead(tenant)
    ann = Admin(site.store, actor="ann@office")
    return await ann.begin_operation(
        ReviewVerb.ACKNOWLEDGE, DeadFilter(task="mail", tenant=tenant), reason="known outage", **options
    )


async def test_a_new_store_teaches_how_activity_comes_about(site):
    page = await (await site.visitor("viewer")).get("/activity")

    assert "Nothing was done in bulk yet" in words(page)
    assert "rota audit list" in words(page)


async def test_an_operation_shows_who_does_what_to_how_many_why_and_how_far_it_is(site):
    operation = await an_operation(site, rate=5.0)
    await site.store.advance_operation(operation.id, operation.driver, operation.progress._replace(done=1))
    visitor = await site.visitor("viewer")

    listed, shown = await visitor.get("/activity"), await visitor.get(f"/activity/operations/{operation.id}")

    for page in (listed, shown):
        assert "cknowledge 2 dead letters (task=mail)" in words(page)
        assert "ann@office" in words(page)
        assert "known outage" in words(page)
        assert "1 of 2 met" in words(page)
        assert "running" in words(page)
    assert "5 a second" in words(shown)
    assert "operation begun" in words(shown)


async def test_an_operator_stops_an_operation_and_resumes_it_until_it_is_done(site):
    operation = await an_operation(site)
    otto, where = await site.visitor("operator"), f"/activity/operations/{operation.id}"

    stopped = await followed(otto, f"{where}/stop", reason="wrong filter?")
    again = await otto.post(f"{where}/stop")
    resumed = await followed(otto, f"{where}/resume", reason="no, it was right")
    await site.asgi.state.drivers.idle()
    done = await otto.get(where)

    assert "Stopped after 0 of 2" in words(stopped)
    assert "wrong filter?" in words(stopped)
    assert (again.status_code, "It has changed" in again.text) == (409, True)
    assert "It goes on" in words(resumed)
    assert "2 done" in words(await otto.get("/activity"))
    assert "it is over" in words(done)
    assert "acknowledged" in words(done)


async def test_an_operation_on_jobs_stands_beside_and_only_a_manager_goes_on_with_deleting(site):
    await Stage(site.store).dead(None)
    boss = Admin(site.store, actor="mona")
    operation = await boss.begin_job_operation(Verb.DELETE, "state:dead task:mail")
    await boss.stop_operation(operation.id)
    otto, mona, where = (
        await site.visitor("operator"),
        await site.visitor("manager"),
        f"/activity/operations/{operation.id}",
    )

    listed, shown = await otto.get("/activity"), await otto.get(where)
    refused = await otto.post(f"{where}/resume")
    await followed(mona, f"{where}/resume")
    await site.asgi.state.drivers.idle()

    assert "delete 1 job (state:dead task:mail)" in words(listed)
    assert "Only a manager may go on with deleting." in words(shown)
    assert refused.status_code == 403
    assert "it is over" in words(await mona.get(where))


async def test_a_form_leads_back_to_the_filter_that_it_was_used_on(site):
    operation = await an_operation(site)
    otto = await site.visitor("operator")

    answer = await otto.post(
        f"/activity/operations/{operation.id}/stop", data={"next": "/activity?actor=ann%40office"}
    )

    assert answer.headers["location"] == "/activity?actor=ann%40office"


async def test_a_viewer_sees_no_button_and_gets_no_further_with_a_form(site):
    operation = await an_operation(site)
    vera, where = await site.visitor("viewer"), f"/activity/operations/{operation.id}"

    pages = [await vera.get("/activity"), await vera.get(where)]

    assert all('method="post" class="act"' not in page.text for page in pages)
    assert "The role operator is needed" in words(pages[1])
    assert (await vera.post(f"{where}/stop")).status_code == 403
    assert (await vera.post(f"{where}/resume")).status_code == 403
    assert (await Admin(site.store, actor="x").operation(operation.id)).state is OperationState.RUNNING


async def test_an_operation_that_nobody_drives_any_more_is_told_apart(clock):
    async with paged(MemoryStore(clock=clock)) as site:
        operation = await an_operation(site)
        clock.advance(600)

        page = await (await site.visitor("operator")).get(f"/activity/operations/{operation.id}")

    assert "No step for 10m" in words(page)
    assert "Resume, 2 left" in words(page)


async def test_people_of_a_tenant_see_what_was_done_to_their_own(site):
    red, blue = await an_operation(site, "red", 1), await an_operation(site, "blue", 1)
    visitor = await site.visitor("viewer", "red")

    page = await visitor.get("/activity")

    assert str(red.id) in page.text
    assert str(blue.id) not in page.text
    assert (await visitor.get(f"/activity/operations/{blue.id}")).status_code == 404


async def test_the_audit_says_who_did_what_to_which_and_leads_there(site):
    stage, ann = Stage(site.store), Admin(site.store, actor="ann@office")
    job_id = await stage.job(None)
    await ann.hold(job_id, reason="wait for the editor")

    page = await (await site.visitor("viewer")).get("/activity")

    assert "ann@office hold" in words(page)
    assert "pending → held wait for the editor" in words(page)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"actor": "ann"}, 1),
        ({"actor": "bob"}, 0),
        ({"action": "hold"}, 1),
        ({"action": "retry"}, 0),
        ({"job": "JOB"}, 1),
        ({"job": str(uuid4())}, 0),
        ({"since": "1h"}, 1),
        ({"until": "1h"}, 0),
        ({"since": "2020-01-01", "until": "2099-01-01T10:00"}, 1),
        ({"about": "schedule:nightly"}, 0),
        ({"actor": "", "action": "", "job": "", "about": "", "since": "", "until": ""}, 1),
    ],
)
async def test_every_field_of_the_filter_narrows_the_audit(site, query, found):
    job_id = await Stage(site.store).job(None)
    await Admin(site.store, actor="ann").hold(job_id, reason="because")
    asked = {name: str(job_id) if value == "JOB" else value for name, value in query.items()}

    page = await (await site.visitor("viewer")).get("/activity", params=asked)

    assert ("pending → held" in words(page)) == bool(found)
    assert all(f'value="{value}"' in page.text for value in asked.values() if value)


async def test_the_filter_is_shown_as_a_command(site):
    page = await (await site.visitor("viewer")).get("/activity", params={"actor": "ann lee", "since": "2h"})

    assert "rota audit list --actor 'ann lee' --since 2h" in words(page)


@pytest.mark.parametrize("query", [{"job": "seven"}, {"since": "yesterday"}, {"cursor": "abc"}])
async def test_what_cannot_be_meant_is_said_on_a_page(site, query):
    page = await (await site.visitor("viewer")).get("/activity", params=query)

    assert page.status_code == 422
    assert "<h1>That does not fit</h1>" in page.text


async def test_older_rows_are_reached_page_by_page_with_the_same_filter(site):
    ann, jobs = Admin(site.store, actor="ann"), [a_job("mail") for _ in range(5)]
    await site.store.enqueue(jobs)
    for number, job in enumerate(jobs):
        await ann.hold(job.id, reason=f"reason-{number}")
    visitor = await site.visitor("viewer")

    first = await visitor.get("/activity?actor=ann&action=&limit=3")
    link = first.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = await visitor.get(link)

    assert ["reason-4" in words(first), "reason-1" in words(first)] == [True, False]
    assert ["reason-4" in words(second), "reason-1" in words(second)] == [False, True]
    assert 'rel="next"' not in second.text


async def test_what_people_wrote_stays_text(site):
    evil = "<script>alert(1)</script>"
    job_id = await Stage(site.store).job(None)
    await Admin(site.store, actor=evil).hold(job_id, reason=evil)

    page = await (await site.visitor("viewer")).get("/activity", params={"actor": evil})

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert evil not in page.text


async def test_somebody_among_busy_others_is_led_on_to_older_rows(site, monkeypatch):
    monkeypatch.setattr(scope, "ROUND", 1)
    mine, theirs = a_job(tenant="red"), a_job(tenant="blue")
    await site.store.enqueue([mine, theirs])
    for job_id in (mine.id, *[theirs.id] * scope.PAGE_ROUNDS):
        await site.store.note(Audit("ann", "reveal", job_id, reason="she called"))
    red = await site.visitor("viewer", "red")

    first = await red.get("/activity")
    [older] = set(re.findall(r'href="([^"]*cursor=[^"]*)"', first.text))

    assert "Nothing of yours among the newest" in words(first)
    assert "she called" in words(await red.get(html.unescape(older)))
