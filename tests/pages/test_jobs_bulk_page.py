"""One verb on many jobs: on the rows that are ticked, and on all that match as an operation that was asked about."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from starlette.requests import Request
from starlette.responses import Response

from build import a_job, a_session, claim, failed
from page_kit import PageSite, followed, paged, words
from rota._core.actions import AuditFilter
from rota._core.failure import ErrorClass
from rota._core.filtering import FilterError
from rota._core.job import State
from rota._core.job_filter import JobFilter
from rota.admin import Admin
from rota.stores.memory import MemoryStore
from rota.stores.search_contract import SearchesBusy, SearchTooWide
from rota.web.asking import Asking
from rota.web.driving import drivers_of
from rota.web.pages import jobs_bulk
from rota.web.pages.notices import Notice, give, taken
from web_kit import HOST

LONG = "/jobs?ids=" + "".join(f"{number * 7919:x}" for number in range(2000))
FACES = "".join(map(chr, random.Random(7).sample(range(0x10000, 0xF0000), 600)))


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        yield site


async def made(site: PageSite, count: int, queue: str = "post", **options) -> list[UUID]:
    jobs = [a_job("mail", {"to": "ann"}, queue=queue, **options) for _ in range(count)]
    await site.store.enqueue(jobs)
    return [job.id for job in jobs]


async def dead(site: PageSite, count: int, queue: str = "post", **options) -> list[UUID]:
    ids = await made(site, count, queue, **options)
    now = await site.store.now()
    for job in await claim(site.store, await a_session(site.store, lease=1e6)):
        await site.store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such address", now=now)])
    return ids


async def states(site: PageSite, ids: list[UUID]) -> list[State]:
    return [job.state for job in await site.store.get(ids)]


async def count(site: PageSite, state: State) -> int:
    return len(await site.store.find(JobFilter(states=(state,), limit=1000)))


@pytest.mark.parametrize(
    ("verb", "after", "said"),
    [
        ("hold", State.HELD, "2 jobs held."),
        ("cancel", State.CANCELLED, "2 jobs cancelled."),
    ],
)
async def test_what_is_ticked_is_done_and_nothing_else(site, verb, after, said):
    first, second, third = await made(site, 3)
    client = await site.visitor("operator")
    asked = "/jobs?filter=queue%3Apost"
    answer = await client.post(
        "/jobs/ticked", data={"id": [str(first), str(second)], "verb": verb, "next": asked}
    )

    assert (answer.status_code, answer.headers["location"]) == (303, asked)
    assert said in words(await client.get(asked))
    assert await states(site, [first, second]) == [after, after]
    assert await states(site, [third]) == [State.PENDING]


async def test_rows_that_are_held_can_be_released_by_undo(site):
    ids = await made(site, 2)
    client = await site.visitor("operator")
    page = await followed(client, "/jobs/ticked", id=[str(one) for one in ids], verb="hold", next="/jobs")
    undo = page.text.partition('class="notice good"')[2].partition('action="')[2].partition('"')[0]

    assert "2 jobs released." in words(await followed(client, undo.replace("&amp;", "&"), next="/jobs"))
    assert await states(site, ids) == [State.PENDING, State.PENDING]


async def test_undo_is_not_offered_where_it_would_release_what_others_hold(site):
    mine, others = await made(site, 2)
    await Admin(site.store, actor="ann").hold(others)
    client = await site.visitor("operator")
    page = await followed(client, "/jobs/ticked", id=[str(mine), str(others)], verb="hold", next="/jobs")

    assert "1 job held." in words(page)
    assert "Undo" not in page.text


@pytest.mark.parametrize(
    ("notice", "kept"),
    [
        (Notice("Held.", link="/jobs", undo="/undo"), Notice("Held.", link="/jobs", undo="/undo")),
        (Notice("Held.", link="/jobs", undo=LONG), Notice("Held.", link="/jobs")),
        (Notice("Held.", link=LONG, undo="/undo"), Notice("Held.")),
        (Notice(FACES, link=LONG, undo=LONG), Notice(FACES)),
    ],
)
async def test_a_notice_is_never_too_large_for_a_browser(site, notice, kept):
    request = Request({"type": "http", "scheme": "https", "path": "/", "headers": [], "server": (HOST, 443)})
    asked, told = Asking(request, site.asgi.state.desk, None), Response()
    give(asked, told, notice)
    cookie = told.headers["set-cookie"]

    assert len(cookie) <= 4096
    sent = [(b"cookie", cookie.partition(";")[0].encode())]
    reader = Asking(Request(dict(request.scope) | {"headers": sent}), site.asgi.state.desk, None)
    assert taken(reader, Response()) == kept


async def test_ticked_rows_whose_state_does_not_allow_it_are_told(site):
    [one] = await dead(site, 1)
    [other] = await made(site, 1)
    page = await followed(
        await site.visitor("operator"), "/jobs/ticked", id=[str(one), str(other)], verb="hold", next="/jobs"
    )

    assert "1 job held. 1 left as they are: their state does not allow it." in words(page)
    assert await states(site, [one]) == [State.DEAD]


async def test_ticked_rows_that_have_not_ended_are_not_deleted_and_that_is_told(site):
    ended, waiting = await dead(site, 1), await made(site, 2)
    gone = await made(site, 1)
    manager = await site.visitor("manager")
    for job_id in gone:
        await Admin(site.store, actor="ann").delete(job_id)

    alone = await followed(manager, "/jobs/ticked", id=[*map(str, waiting)], verb="delete", next="/jobs")
    ids = [str(one) for one in (*ended, *waiting, *gone)]
    mixed = await followed(manager, "/jobs/ticked", id=ids, verb="delete", next="/jobs")

    only = "2 left as they are: only jobs that have ended are deleted. Cancel them first."
    assert f"0 jobs deleted. {only}" in words(alone)
    assert f"1 job deleted. {only} 1 no longer there: deleted by somebody else" in words(mixed)
    assert await states(site, waiting) == [State.PENDING, State.PENDING]


async def test_ticked_rows_that_are_gone_meanwhile_are_told(site):
    first, second, third = await made(site, 3)
    await Admin(site.store, actor="ann").delete(third)

    page = await followed(
        await site.visitor("operator"),
        "/jobs/ticked",
        id=[str(first), str(second), str(third)],
        verb="hold",
        next="/jobs",
    )

    assert "2 jobs held. 1 no longer there: deleted by somebody else, or by retention." in words(page)


async def test_nothing_ticked_does_nothing(site):
    await made(site, 1)
    page = await followed(await site.visitor("operator"), "/jobs/ticked", verb="cancel", next="/jobs")

    assert "No row was ticked" in words(page)
    assert await count(site, State.PENDING) == 1


async def test_ticked_rows_get_another_priority_or_queue(site):
    ids = await made(site, 2)
    client = await site.visitor("operator")
    chosen = [str(one) for one in ids]

    page = await followed(client, "/jobs/ticked", id=chosen, verb="priority", priority="7", next="/jobs")
    assert "2 jobs now with priority 7." in words(page)
    await followed(client, "/jobs/ticked", id=chosen, verb="queue", queue="slow", next="/jobs")
    assert {(job.priority, job.queue) for job in await site.store.get(ids)} == {(7, "slow")}
    wrong = await client.post("/jobs/ticked", data={"id": chosen, "verb": "priority", "priority": "soon"})
    assert wrong.status_code == 422
    assert "is no priority" in words(wrong)


async def test_deleting_many_is_for_managers(site):
    ids = await dead(site, 1)
    form = {"id": [str(ids[0])], "verb": "delete", "next": "/jobs"}
    operator = await site.visitor("operator")

    assert 'value="delete"' not in (await operator.get("/jobs")).text
    assert (await operator.post("/jobs/ticked", data=form)).status_code == 403
    assert (await operator.get("/jobs/all?verb=delete")).status_code == 403
    assert (await operator.post("/jobs/all", data={"verb": "delete", "expected": "1"})).status_code == 403
    assert await states(site, ids) == [State.DEAD]
    assert "1 job deleted." in words(await followed(await site.visitor("manager"), "/jobs/ticked", **form))
    assert await states(site, ids) == []


@pytest.mark.parametrize("form", [{"verb": "explode"}, {"verb": "hold", "id": "nonsense"}, {"verb": ""}])
async def test_what_cannot_be_meant_is_refused(site, form):
    [job_id] = await made(site, 1)
    answer = await (await site.visitor("operator")).post("/jobs/ticked", data={"id": str(job_id)} | form)

    assert answer.status_code == 422
    assert await states(site, [job_id]) == [State.PENDING]


async def test_more_rows_than_a_page_has_are_refused(site):
    form = {"verb": "hold", "id": [str(one) for one in await made(site, 201)]}
    answer = await (await site.visitor("operator")).post("/jobs/ticked", data=form)

    assert answer.status_code == 422
    assert "200 are the most" in words(answer)


async def test_all_that_match_is_asked_about_before_anything_is_done(site):
    await dead(site, 3)
    client = await site.visitor("operator")
    answer = await client.post("/jobs/ticked", data={"every": "yes", "verb": "retry", "filter": "queue:post"})
    assert answer.headers["location"] == "/jobs/all?verb=retry&filter=queue%3Apost"
    page = await client.get(answer.headers["location"])

    assert "Matches now 3 jobs" in words(page)
    assert "dead, because the filter names none" in words(page)
    assert "rota jobs retry queue:post" in words(page)
    assert await count(site, State.DEAD) == 3


@pytest.mark.req("D35")
async def test_all_that_match_hits_only_the_filter(site):
    mine = await dead(site, 3)
    others = await dead(site, 2, "other")
    client = await site.visitor("operator")
    form = {"verb": "retry", "filter": "state:dead queue:post", "expected": "3", "reason": "fixed"}
    answer = await client.post("/jobs/all", data=form)

    assert answer.status_code == 303, words(answer)
    assert answer.headers["location"].startswith("/activity/operations/")
    await drivers_of(site.asgi).idle()
    assert set(await states(site, mine)) == {State.PENDING}
    assert set(await states(site, others)) == {State.DEAD}
    trail = await Admin(site.store, actor="tests").trail(AuditFilter(action="retry"))
    assert {row.reason for row in trail} == {"fixed"}


async def test_somebody_of_one_tenant_moves_only_his_own(site):
    mine, others = await dead(site, 2, tenant="red"), await dead(site, 2, tenant="blue")
    client = await site.visitor("operator", "red")

    assert "Matches now 2 jobs" in words(await client.get("/jobs/all?verb=retry"))
    answer = await client.post("/jobs/all", data={"verb": "retry", "filter": "", "expected": "2"})
    assert answer.status_code == 303, words(answer)
    await drivers_of(site.asgi).idle()
    ticked = {"verb": "retry", "id": [str(one) for one in others], "next": "/jobs"}
    assert "0 jobs retried." in words(await followed(client, "/jobs/ticked", **ticked))
    assert set(await states(site, mine)) == {State.PENDING}
    assert set(await states(site, others)) == {State.DEAD}


async def test_above_a_thousand_the_number_must_be_typed(site, monkeypatch):
    monkeypatch.setattr(jobs_bulk, "TYPED_FROM", 2)
    await dead(site, 3)
    client = await site.visitor("operator")
    form = {"verb": "retry", "filter": "", "expected": "3", "reason": "kept"}

    assert "Type 3 to go on" in words(await client.get("/jobs/all?verb=retry"))
    for typed in ({}, {"number": "2"}, {"number": "many"}):
        answer = await client.post("/jobs/all", data=form | typed)
        assert answer.status_code == 422
        assert "The number that was typed is another one." in words(answer)
        assert 'value="kept"' in answer.text
    assert await count(site, State.DEAD) == 3
    assert (await client.post("/jobs/all", data=form | {"number": "3"})).status_code == 303


async def test_what_grew_meanwhile_is_shown_again_with_its_new_number(site):
    await dead(site, 100)
    client = await site.visitor("operator")
    answer = await client.post("/jobs/all", data={"verb": "retry", "filter": "", "expected": "3"})

    assert answer.status_code == 409
    assert "100 jobs match now, and you were shown 3. Nothing was begun." in words(answer)
    assert 'name="expected" value="100"' in answer.text
    assert await count(site, State.DEAD) == 100


@pytest.mark.parametrize("rate", ["fast", "0", "-1", "nan", "1e9"])
async def test_a_pace_that_is_none_is_said_and_nothing_is_lost(site, rate):
    await dead(site, 1)
    form = {"verb": "retry", "filter": "", "expected": "1", "rate": rate, "reason": "kept"}
    answer = await (await site.visitor("operator")).post("/jobs/all", data=form)

    assert answer.status_code == 422
    assert "a number of jobs a second" in words(answer)
    assert 'value="kept"' in answer.text
    assert await count(site, State.DEAD) == 1


async def test_a_wrong_filter_for_all_is_said(site):
    page = await (await site.visitor("operator")).get("/jobs/all?verb=retry&filter=stat:dead")

    assert page.status_code == 422
    assert "Did you mean state:dead?" in words(page)
    assert "Matches now unknown" in words(page)


@pytest.mark.parametrize(
    "error", [SearchTooWide(5), SearchesBusy(5), FilterError("a:b", "it means nothing.")]
)
@pytest.mark.parametrize("always", [True, False])
async def test_a_search_that_fails_at_the_beginning_loses_nothing_of_what_was_typed(
    site, monkeypatch, error, always
):
    await dead(site, 2)
    count, fails = site.store.count_found, [False, True]

    async def counted(*args, **more):
        if always or fails.pop():
            raise error
        return await count(*args, **more)

    monkeypatch.setattr(site.store, "count_found", counted)
    form = {"verb": "retry", "filter": "", "expected": "2", "rate": "7", "reason": "kept"}
    answer = await (await site.visitor("operator")).post("/jobs/all", data=form)

    assert answer.status_code == 422
    assert str(error)[1:] in words(answer)
    assert 'value="kept"' in answer.text
    assert 'value="7"' in answer.text
    assert 'name="expected" value="2"' in answer.text
    assert ("Matches now unknown" if always else "Matches now 2 jobs") in words(answer)


async def test_a_number_of_jobs_that_is_none_is_not_told_as_a_bad_pace(site):
    await dead(site, 1)
    form = {"verb": "retry", "filter": "", "expected": "some", "reason": "kept"}
    answer = await (await site.visitor("operator")).post("/jobs/all", data=form)

    assert answer.status_code == 422
    assert "How many jobs you were shown" in words(answer)
    assert "jobs a second, such as" not in words(answer)
    assert 'value="kept"' in answer.text


async def test_states_that_the_verb_implies_are_told_unless_the_filter_names_some(site):
    client = await site.visitor("operator")
    argument = await client.get("/jobs/all?verb=retry&filter=args.state:7")
    named = await client.get("/jobs/all?verb=retry&filter=state:dead")

    assert "dead, because the filter names none" in words(argument)
    assert "because the filter names none" not in words(named)
