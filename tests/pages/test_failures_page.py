"""The failures page: like failures together, when they came, and what is decided about them."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from build import a_job, a_session, claim, failed
from page_kit import PageSite, followed, paged, words
from rota._core.dead_letter import DeadFilter
from rota._core.failure import ErrorClass, Failure
from rota._core.numbers import Minute, Total
from rota._core.outcome import Raised, decide
from rota._core.retry import Retry
from rota._core.review import Review
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.stores.memory import MemoryStore
from rota.web.pages import failures

STACK = (
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.12/asyncio/base.py", line 3, in run\n    go()\n'
    '  File "/srv/shop/mail.py", line 7, in send\n    post(to, password="hunter2")\n'
    "ValueError: no such address\n"
)


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        await site.store.publish([TaskSpec("mail", queue="post")])
        yield site


async def dies(site: PageSite, tenant: str | None = None, message: str = "no such address", **fields) -> UUID:
    job = a_job("mail", fields.pop("args", {"to": "ann"}), tenant=tenant, **fields)
    await site.store.enqueue([job])
    jobs = await claim(site.store, await a_session(site.store, lease=1e6))
    [running] = [one for one in jobs if one.id == job.id]
    failure = Failure(ErrorClass.NON_RETRYABLE, "ValueError", message, STACK)
    now = await site.store.now()
    await site.store.settle([decide(running, Raised(failure), retry=Retry(), now=now)])
    return job.id


async def group_of(site: PageSite) -> str:
    [group] = await Admin(site.store, actor="tests").failures(DeadFilter(reviews=tuple(Review)))
    return group.fingerprint


async def reviews(site: PageSite) -> list[str]:
    return [letter.review.value for letter in await site.store.dead_letters(DeadFilter())]


async def test_a_new_store_teaches_what_comes_here(site):
    page = await (await site.visitor("viewer")).get("/failures")

    assert "Nothing waits for review" in words(page)
    assert "rota failures list" in words(page)


async def test_like_failures_are_one_row_with_count_trend_and_share_of_runs(site):
    for _ in range(3):
        await dies(site)
    session, now = await a_session(site.store, lease=1e6), await site.store.now()
    minute = Minute(
        now.replace(second=0, microsecond=0),
        [Total("post", "mail", "completed", 27), Total("post", "mail", "dead", 3)],
    )
    await site.store.note_minutes(session, [minute])

    page = await (await site.visitor("viewer")).get("/failures")

    said = words(page)
    assert "ValueError in mail no such address shop/mail.py in send 3" in said
    assert "3 jobs died in the last 24 hours, 3 of them in the last one" in said
    assert "new" in said
    assert "10 %" in said
    assert "waits for review 3" in said
    assert "100 % of these jobs" in said


async def test_a_group_shows_its_trace_with_own_frames_marked_and_nothing_secret(site):
    await dies(site, message="login failed: password=hunter2", args={"to": "ann", "api_token": "hunter2"})

    page = await (await site.visitor("viewer")).get(f"/failures/{await group_of(site)}")

    assert "hunter2" not in page.text
    assert '<span class="ours">  File &#34;/srv/shop/mail.py&#34;, line 7, in send</span>' in page.text
    assert "<span>  File &#34;/usr/lib" in page.text
    assert "to=ann, api_token=***" in words(page)
    assert f"rota failures show {await group_of(site)}" in words(page)
    assert "hunter2" not in (await (await site.visitor("viewer")).get("/failures")).text


async def test_the_filter_of_the_job_list_means_its_jobs(site):
    dead = await dies(site)
    visitor = await site.visitor("viewer")
    page = await visitor.get(f"/failures/{await group_of(site)}")

    assert "filter=state%3Adead+task%3Amail+error%3AValueError" in page.text
    listed = await site.visitor("viewer")
    found = await listed.get("/api/v1/jobs", params={"filter": "state:dead task:mail error:ValueError"})
    assert [job["id"] for job in found.json()["items"]] == [str(dead)]


@pytest.mark.parametrize(
    ("verb", "ends"),
    [("reprocess", "reprocessing"), ("acknowledge", "acknowledged"), ("discard", "discarded")],
)
async def test_a_group_is_decided_about_as_a_tracked_operation_with_its_own_page(site, verb, ends):
    for _ in range(2):
        await dies(site)
    otto = await site.visitor("operator")

    page = await followed(
        otto,
        f"/failures/{await group_of(site)}",
        verb=verb,
        reason="known",
        rate="500",
        **{"expected.pending_review": "2"},
    )
    await site.asgi.state.drivers.idle()

    assert "/activity/operations/" in str(page.url)
    assert await reviews(site) == [ends, ends]
    [operation] = await site.store.operations()
    assert (operation.reason, operation.rate, operation.total) == ("known", 500.0, 2)


async def test_giving_work_up_needs_a_reason_and_what_was_typed_stays(site):
    await dies(site)
    otto = await site.visitor("operator")

    page = await otto.post(
        f"/failures/{await group_of(site)}",
        data={"verb": "discard", "rate": "7", "expected.pending_review": "1"},
    )

    assert page.status_code == 422
    assert "Say why" in words(page)
    assert 'value="7"' in page.text
    assert await reviews(site) == ["pending_review"]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"rate": "fast"}, "The pace must be a number"),
        ({"rate": "0"}, "The pace must be a number"),
        ({"rate": "nan"}, "The pace must be a number"),
        ({"which": "acknowledged"}, "Nothing of this group stands there any more"),
        ({"verb": "bury"}, "'bury' cannot be done here"),
        ({"verb": ""}, "Nothing was filled in for 'verb'"),
        ({"which": "lost"}, "There is no review 'lost'"),
    ],
)
async def test_what_does_not_fit_is_said_and_nothing_is_done(site, typed, says):
    await dies(site)
    form = {"verb": "reprocess", "expected.pending_review": "1"} | typed

    page = await (await site.visitor("operator")).post(f"/failures/{await group_of(site)}", data=form)

    assert page.status_code == 422
    assert says in words(page)
    assert await reviews(site) == ["pending_review"]


async def test_many_need_their_number_typed_and_many_more_than_shown_are_asked_again(site, monkeypatch):
    for _ in range(3):
        await dies(site)
    otto, path = await site.visitor("operator"), f"/failures/{await group_of(site)}"
    monkeypatch.setattr(failures, "TYPED_FROM", 2)
    form = {"verb": "reprocess", "expected.pending_review": "3"}

    page = await otto.get(path)
    without = await otto.post(f"{path}", data=form)
    monkeypatch.setattr(failures, "grown", lambda expected, found: found > expected)
    grown = await otto.post(f"{path}", data=form | {"expected.pending_review": "2", "number": "2"})
    begun = await otto.post(f"{path}", data=form | {"number": "3"})

    assert "type how many you mean (3)" in words(page)
    assert "Type 3, the number of jobs" in words(without)
    assert "There are 3 jobs by now, and you were shown 2" in words(grown)
    assert begun.status_code == 303


async def test_more_than_are_counted_are_never_named_as_an_exact_number(site, monkeypatch):
    monkeypatch.setattr(failures, "COUNTED", 3)
    monkeypatch.setattr(failures, "TYPED_FROM", 2)
    for _ in range(5):
        await dies(site)
    otto, path = await site.visitor("operator"), f"/failures/{await group_of(site)}"
    form = {"verb": "reprocess", "expected.pending_review": "3"}

    page = await otto.get(path)
    fewer = await otto.post(path, data=form | {"expected.pending_review": "2", "number": "2"})
    untyped = await otto.post(path, data=form)

    assert "type how many you mean (3+)" in words(page)
    assert page.text.count("of 3+ jobs") == 3
    assert "There are 3 jobs or more by now, and you were shown 2." in words(fewer)
    assert "Type 3, where counting stopped" in words(untyped)
    assert await site.store.operations() == []
    assert (await otto.post(path, data=form | {"number": "3+"})).status_code == 303


async def test_what_is_acknowledged_is_not_acknowledged_again_and_the_reason_stays(site):
    known, _ = await dies(site), await dies(site)
    otto, path = await site.visitor("operator"), f"/failures/{await group_of(site)}"
    await followed(otto, f"/failures/letters/{known}", verb="acknowledge", reason="ticket 12")

    form = {"verb": "acknowledge", "which": "acknowledged", "reason": "kept", "expected.acknowledged": "1"}
    page = await otto.post(path, data=form)

    assert page.status_code == 422
    assert "Acknowledge is not for what is acknowledged. Choose others above." in words(page)
    assert 'value="kept"' in page.text


@pytest.mark.req("D35")
async def test_one_dead_letter_is_reprocessed_and_its_new_job_is_linked(site):
    dead = await dies(site)
    otto, group = await site.visitor("operator"), await group_of(site)

    page = await followed(
        otto, f"/failures/letters/{dead}", verb="reprocess", next=f"/failures/{group}?review=all"
    )

    [letter] = await site.store.dead_letters(DeadFilter())
    assert "A new job does the work again" in words(page)
    assert letter.review is Review.REPROCESSING
    assert str(page.url).endswith(f"/failures/{group}?review=all")


async def test_a_letter_that_is_closed_is_offered_nothing_and_refused(site):
    dead = await dies(site)
    otto = await site.visitor("operator")
    await followed(otto, f"/failures/letters/{dead}", verb="discard", reason="test data")

    page = await otto.get(f"/failures/{await group_of(site)}")
    again = await otto.post(f"/failures/letters/{dead}", data={"verb": "acknowledge"})

    assert "test data" in words(page)
    assert "/failures/letters/" not in page.text
    assert "Nothing of it waits for a decision" in words(page)
    assert again.status_code == 409


async def test_chips_narrow_groups_and_letters_by_their_review(site):
    dead = await dies(site)
    await dies(site)
    otto, group = await site.visitor("operator"), await group_of(site)
    await followed(otto, f"/failures/letters/{dead}", verb="acknowledge", reason="ticket 12")

    known = await otto.get("/failures?review=acknowledged")
    letters = await otto.get(f"/failures/{group}?review=acknowledged")
    resolved = await otto.get("/failures?review=resolved")
    bad = await otto.get("/failures?review=lost")

    assert "ValueError in mail" in words(known)
    assert "ticket 12" in words(letters)
    assert letters.text.count("<tr data-row>") == 1
    assert "Nothing is resolved" in words(resolved)
    assert bad.status_code == 422


async def test_a_viewer_has_no_buttons_and_may_not_decide(site):
    dead = await dies(site)
    vera, group = await site.visitor("viewer"), await group_of(site)

    page = await vera.get(f"/failures/{group}")

    assert "Decide for the group" not in page.text
    assert 'name="verb"' not in page.text
    for path in (f"/failures/{group}", f"/failures/letters/{dead}"):
        assert (await vera.post(path, data={"verb": "discard", "reason": "x"})).status_code == 403
    assert await reviews(site) == ["pending_review"]


@pytest.mark.req("W36")
async def test_somebody_of_one_tenant_sees_and_decides_about_his_own_alone(site):
    mine, theirs = await dies(site, "red"), await dies(site, "blue", message="secret of blue")
    red, group = await site.visitor("operator", "red"), await group_of(site)

    listed, page = await red.get("/failures"), await red.get(f"/failures/{group}")
    foreign = await red.post(f"/failures/letters/{theirs}", data={"verb": "acknowledge", "reason": "x"})
    await followed(
        red, f"/failures/{group}", verb="discard", reason="mine", **{"expected.pending_review": "1"}
    )
    await site.asgi.state.drivers.idle()

    assert "secret of blue" not in listed.text + page.text
    assert "waits for review 1" in words(page)
    assert "Last 24 hours 1 jobs died so" in words(page)
    assert "unknown" in words(listed)
    assert foreign.status_code == 404
    after = {letter.job.id: letter.review.value for letter in await site.store.dead_letters(DeadFilter())}
    assert after == {mine: "discarded", theirs: "pending_review"}


async def test_letters_are_turned_over_page_by_page(site):
    for _ in range(3):
        await dies(site)
    vera, path = await site.visitor("viewer"), f"/failures/{await group_of(site)}?limit=2"

    first = await vera.get(path)
    href = first.text.partition('">Older</a>')[0].rpartition('href="')[2].replace("&amp;", "&")
    second = await vera.get(href)

    assert first.text.count("<tr data-row>") == 2
    assert second.text.count("<tr data-row>") == 1


async def test_an_unknown_group_is_not_here(site):
    page = await (await site.visitor("viewer")).get("/failures/000000000000")

    assert page.status_code == 404
    assert "Not here" in words(page)


async def test_hostile_texts_are_shown_as_text(site):
    hostile = '<script>alert(1)</script>"><img src=x>'
    job = a_job(hostile, {"to": hostile}, queue="q")
    await site.store.enqueue([job])
    [running] = await claim(site.store, await a_session(site.store, lease=1e6))
    await site.store.settle([failed(running, ErrorClass.NON_RETRYABLE, hostile, now=await site.store.now())])
    visitor = await site.visitor("operator")
    narrowed = await visitor.get("/failures", params={"task": hostile})

    assert f"rota failures list --task '{hostile}'" in html.unescape(narrowed.text)
    for path in ("/failures", f"/failures/{await group_of(site)}"):
        page = await visitor.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img" not in page.text


async def test_the_question_before_a_mass_discard_claims_no_number_where_there_is_a_choice(site, monkeypatch):
    """It is written before the choice is made: it named those that wait, and those acknowledged went."""
    monkeypatch.setattr(failures, "TYPED_FROM", 1)
    known = [await dies(site) for _ in range(2)]
    otto, path = await site.visitor("operator"), f"/failures/{await group_of(site)}"
    alone = html.unescape((await otto.get(path)).text)
    for one in known:
        await followed(otto, f"/failures/letters/{one}", verb="acknowledge", reason="ticket 12")
    await dies(site)

    page = html.unescape((await otto.get(path)).text)

    assert 'data-ask="Give up the work of 2 jobs?"' in alone
    told = "Waiting for review: 1. Acknowledged: 2."
    assert f'data-ask="Give up the work of the jobs that you chose under Which? {told}"' in page
    assert f"again, each in a new job with its payload? {told}" in page
    assert "type how many you mean (the number beside your choice under Which)" in page


async def test_what_was_not_counted_to_its_end_says_so_and_claims_no_share(site, monkeypatch):
    monkeypatch.setattr(failures, "COUNTED", 3)
    for _ in range(3):
        await dies(site)
    session, now = await a_session(site.store, lease=1e6), await site.store.now()
    minute = Minute(now.replace(second=0, microsecond=0), [Total("post", "mail", "dead", 30)])
    await site.store.note_minutes(session, [minute])
    vera = await site.visitor("viewer")

    listed = words(await vera.get("/failures"))
    one = words(await vera.get(f"/failures/{await group_of(site)}"))

    assert "3+ jobs died in the last 24 hours" in listed
    assert "10 %" not in listed
    assert "Last hour 3+" in one
    assert "Last 24 hours 3+" in one
    assert re.search(r"Share of runs \W of 30 runs in 24 hours", one)


async def test_hours_in_numbers_say_that_they_are_utc(site):
    await dies(site)
    page = await (await site.visitor("viewer")).get("/failures")

    assert "Hour from (UTC)" in words(page)
