"""The page of all jobs: found by filter, paged, chosen by columns, exported, and acted on one by one."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import threading
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, quote, urlsplit
from uuid import UUID

import pytest

from build import a_job, a_session, claim, completed, failed
from page_kit import PageSite, followed, paged, words
from rota._core.failure import ErrorClass
from rota._core.filtering import quoted
from rota._core.ids import public_id
from rota._core.job import State
from rota._core.task_spec import TaskSpec
from rota.errors import StoreUnavailable
from rota.stores.memory import MemoryStore
from rota.stores.search_contract import SearchTooWide
from rota.web import searching
from rota.web.pages import jobs_export
from rota.web.pages.job_list import with_word
from web_kit import streamed

XSS = "<script>alert(1)</script>"


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        yield site


async def waiting(site: PageSite, count: int = 1, **options) -> list[UUID]:
    jobs = [a_job("mail", {"to": f"ann-{at}"}, queue="post", **options) for at in range(count)]
    await site.store.enqueue(jobs)
    return [job.id for job in jobs]


async def dead(site: PageSite, **options) -> UUID:
    [job_id] = await waiting(site, **options)
    jobs = await claim(site.store, await a_session(site.store, lease=1e6))
    [job] = [one for one in jobs if one.id == job_id]
    now = await site.store.now()
    await site.store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such address", now=now)])
    return job_id


async def state_of(site: PageSite, job_id: UUID) -> State:
    [job] = await site.store.get([job_id])
    return job.state


def at(job_id: UUID) -> str:
    """Where the page of a job is."""
    return f"/jobs/{quote(public_id(job_id))}"


def rows_of(page) -> list[str]:
    """The ids of the jobs that the page lists."""
    return [part.partition('"')[0] for part in page.text.split('id="row-')[1:]]


async def test_an_empty_store_teaches_how_to_enqueue(site):
    page = await (await site.visitor("viewer")).get("/jobs")

    assert "No jobs yet" in words(page)
    assert "rota enqueue TASK name=value" in words(page)


async def test_a_job_is_a_row_with_what_people_look_for(site):
    [job_id] = await waiting(site)
    page = await (await site.visitor("viewer")).get("/jobs")

    for said in ("pending", "why?", "mail", "to=ann-0", "post", "0 /5", "rota jobs list"):
        assert said in words(page), said
    assert at(job_id) in page.text


async def test_the_chips_count_what_waits_and_died_and_narrow_to_it(site):
    await dead(site)
    await waiting(site, 3)
    page = await (await site.visitor("viewer")).get("/jobs", params={"filter": "queue:post"})

    assert "pending 3" in words(page)
    assert "dead 1" in words(page)
    assert "/jobs?filter=state%3Adead+queue%3Apost" in page.text
    assert "pending 0" in words(await (await site.visitor("viewer")).get("/jobs?filter=queue:other"))


async def test_somebody_of_one_tenant_sees_chips_without_the_numbers_of_others(site):
    [own, _other] = [(await waiting(site, tenant=tenant))[0] for tenant in ("red", "blue")]
    page = await (await site.visitor("viewer", "red")).get("/jobs")

    assert rows_of(page) == [str(own)]
    assert "pending 1" not in words(page)
    assert "pending 2" not in words(page)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("stat:dead", "Did you mean state:dead?"),
        ("state:failed", "Did you mean state:dead?"),
        ('subject:"open', "a double quote is not closed"),
        ("x" * 2001, "2,000 are the most"),
    ],
)
async def test_what_is_wrong_with_a_filter_stands_beside_it_and_nothing_is_lost(site, typed, said):
    await waiting(site)
    page = await (await site.visitor("viewer")).get("/jobs", params={"filter": typed, "cols": "state"})

    assert page.status_code == 422
    assert said in words(page)
    assert f'value="{typed.replace(chr(34), "&#34;")}"' in page.text
    assert 'aria-describedby="filter-wrong"' in page.text
    assert rows_of(page) == []


async def test_an_argument_that_is_hidden_cannot_be_guessed_by_a_filter(site):
    await site.store.enqueue([a_job("mail", {"api_token": "hunter2"})])

    asked = {"filter": "args.api_token:hunter2"}
    assert "cannot be searched" in words(await (await site.visitor("viewer")).get("/jobs", params=asked))
    assert len(rows_of(await (await site.visitor("manager")).get("/jobs", params=asked))) == 1


async def test_an_id_in_the_search_box_leads_to_its_job(site):
    [job_id] = await waiting(site)
    client = await site.visitor("viewer")
    for typed in (str(job_id), public_id(job_id), f" {public_id(job_id).lower()} "):
        answer = await client.get("/jobs", params={"filter": typed})
        assert (answer.status_code, answer.headers["location"]) == (303, at(job_id))


@pytest.mark.parametrize("order", ["", "order:oldest", "order:priority"])
async def test_pages_follow_each_other_without_a_gap_and_lead_back(site, order):
    made = [str(one) for one in await waiting(site, 120)]
    client = await site.visitor("viewer")
    page = await client.get("/jobs", params={"filter": order} if order else {})
    seen, links = rows_of(page), []
    while 'rel="next"' in page.text:
        link = page.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        links.append(link)
        page = await client.get(link)
        seen += rows_of(page)

    assert seen == (made if order else made[::-1])
    if order != "order:priority":
        link = page.text.partition('rel="prev" href="')[2].partition('"')[0].replace("&amp;", "&")
        assert rows_of(await client.get(link)) == seen[50:100]
    assert "First page" in words(page)


async def test_the_first_page_is_shown_whole_on_the_way_back(site):
    made = [str(one) for one in await waiting(site, 60)]
    page = await (await site.visitor("viewer")).get("/jobs", params={"above": made[20]})

    assert rows_of(page) == made[::-1][:50]


@pytest.mark.parametrize("place", ["nonsense", "1-2-3", "0" * 90])
async def test_a_place_that_is_none_is_refused(site, place):
    page = await (await site.visitor("viewer")).get("/jobs", params={"below": place})

    assert page.status_code == 422


async def test_columns_are_chosen_in_the_address_and_stay_when_one_clicks_on(site):
    await waiting(site, 60, tenant="red", tags=("import",))
    page = await (await site.visitor("viewer")).get("/jobs?cols=task&cols=tags&cols=nonsense&cols=priority")

    heads = page.text.partition("<thead>")[2].partition("</thead>")[0]
    assert [word for word in ("Task", "Priority", "Tags", "State", "Worker") if f">{word}<" in heads] == [
        "Task",
        "Priority",
        "Tags",
    ]
    assert page.text.partition('rel="next" href="')[2].count("cols=") >= 2


async def test_a_viewer_has_no_buttons_and_is_refused(site):
    job_id = await dead(site)
    client = await site.visitor("viewer")
    page = await client.get("/jobs")

    assert "formaction" not in page.text
    assert "data-tick" not in page.text
    for path in (f"/jobs/{job_id}/retry", "/jobs/ticked", "/jobs/all"):
        answer = await client.post(path, data={"id": str(job_id), "verb": "retry"})
        assert answer.status_code == 403, path
    assert await state_of(site, job_id) is State.DEAD


@pytest.mark.req("D35")
async def test_the_filter_survives_an_action(site):
    job_id = await dead(site)
    client = await site.visitor("operator")
    asked = "/jobs?filter=state%3Adead+task%3Amail&cols=state&cols=task"
    page = await client.get(asked)
    assert f'formaction="{at(job_id)}/retry"' in page.text
    assert f'name="next" value="{asked.replace("&", "&amp;")}"' in page.text

    answer = await client.post(f"{at(job_id)}/retry", data={"next": asked})

    assert (answer.status_code, answer.headers["location"]) == (303, asked)
    after = await client.get(asked)
    assert "was dead and runs again" in words(after)
    assert await state_of(site, job_id) is State.PENDING


async def test_a_form_leads_nobody_to_another_site(site):
    [job_id] = await waiting(site)
    answer = await (await site.visitor("operator")).post(
        f"/jobs/{job_id}/hold", data={"next": "https://evil.example/"}
    )

    assert answer.headers["location"] == at(job_id)


async def test_strings_that_would_be_code_are_text(site):
    await site.store.publish([TaskSpec(XSS, queue=XSS)])
    hostile = a_job(
        XSS, {XSS: XSS}, queue=XSS, tenant=XSS, tags=(XSS,), subject=XSS, created_by=XSS, category=XSS
    )
    await site.store.enqueue([hostile])
    client = await site.visitor("manager")
    every = "state,task,args,queue,worker,id,tenant,subject,tags,category,key,error,creator"
    for path in (f"/jobs?cols={every}", f"/jobs?filter=queue:{quoted(XSS)}", f"/jobs?filter={XSS}"):
        page = await client.get(path)
        assert XSS not in page.text, path
        assert "&lt;script&gt;" in page.text, path


async def test_secrets_are_hidden_in_the_list_and_in_both_files(site):
    await site.store.enqueue([a_job("mail", {"to": "ann", "api_token": "hunter2"})])
    client = await site.visitor("manager")
    for path in ("/jobs", "/jobs/export.csv", "/jobs/export.json"):
        answer = await client.get(path)
        assert answer.status_code == 200
        assert "hunter2" not in answer.text, path
        assert "***" in answer.text, path


async def test_the_files_have_what_matches_and_nothing_else(site):
    [wanted] = await waiting(site, tenant="red", subject="=cmd()")
    await waiting(site, 2, tenant="blue")
    client = await site.visitor("viewer")

    answer = await client.get("/jobs/export.csv", params={"filter": "tenant:red"})
    [row] = list(csv.DictReader(io.StringIO(answer.text)))
    assert (row["id"], row["payload"], row["subject"]) == (str(wanted), '{"to": "ann-0"}', "'=cmd()")
    assert answer.headers["content-disposition"] == 'attachment; filename="jobs.csv"'
    found = json.loads((await client.get("/jobs/export.json", params={"filter": "tenant:red"})).text)
    assert [job["id"] for job in found["jobs"]] == [str(wanted)]
    assert found["jobs"][0]["payload"] == {"to": "ann-0"}
    assert found["note"] is None
    scoped = await (await site.visitor("viewer", "red")).get("/jobs/export.json")
    assert [job["id"] for job in json.loads(scoped.text)["jobs"]] == [str(wanted)]


@pytest.mark.parametrize("order", ["", "order:oldest", "order:priority"])
async def test_a_file_that_is_cut_says_so(site, monkeypatch, order):
    monkeypatch.setattr(jobs_export, "PAGE", 10)
    monkeypatch.setattr(jobs_export, "MOST", 20)
    await waiting(site, 25)
    client = await site.visitor("viewer")

    found = json.loads((await client.get("/jobs/export.json", params={"filter": order})).text)
    lines = (await client.get("/jobs/export.csv", params={"filter": order})).text.splitlines()

    assert len({job["id"] for job in found["jobs"]}) == 20
    assert found["note"].startswith("cut: only the first")
    assert len(lines) == 1 + 20 + 1
    assert lines[-1].startswith('"# cut')


@pytest.mark.parametrize("name", ["csv", "json"])
async def test_others_are_answered_while_a_file_is_written(site, monkeypatch, name):
    await waiting(site)
    client, record = await site.visitor("viewer"), jobs_export.record
    begun, go_on = threading.Event(), threading.Event()

    def slow(job):
        begun.set()
        assert go_on.wait(3), "nothing else ran meanwhile"
        return record(job)

    monkeypatch.setattr(jobs_export, "record", slow)
    file = asyncio.create_task(client.get(f"/jobs/export.{name}"))
    async with asyncio.timeout(10):
        while not begun.is_set():
            await asyncio.sleep(0.005)
    assert (await client.get("/jobs")).status_code == 200
    go_on.set()
    assert (await file).status_code == 200


async def test_who_reads_files_slowly_may_search_meanwhile(site, monkeypatch):
    monkeypatch.setattr(searching, "WAITING_SECONDS", 0.1)
    client = await site.visitor("viewer")
    file = site.asgi, "/jobs/export.csv", client.headers, {}
    async with streamed(*file, stuck=True), streamed(*file, stuck=True):
        assert (await client.get("/jobs")).status_code == 200


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (SearchTooWide(5), "broken off: jobs were looked at for 5 s"),
        (StoreUnavailable("away from 10.0.0.7"), "broken off: the store did not answer. Ask again."),
    ],
)
@pytest.mark.parametrize("most", [10, 100])
async def test_a_file_that_is_broken_off_says_why(site, monkeypatch, error, says, most):
    monkeypatch.setattr(jobs_export, "PAGE", 10)
    monkeypatch.setattr(jobs_export, "MOST", most)
    await waiting(site, 15)
    find = site.store.find

    async def fails_below(wanted):
        if wanted.before is not None:
            raise error
        return await find(wanted)

    monkeypatch.setattr(site.store, "find", fails_below)
    found = json.loads((await (await site.visitor("viewer")).get("/jobs/export.json")).text)

    assert len(found["jobs"]) == 10
    assert found["note"].startswith(says)
    assert "10.0.0.7" not in found["note"]


async def test_a_file_for_a_wrong_filter_is_a_page_that_says_why(site):
    answer = await (await site.visitor("viewer")).get("/jobs/export.csv?filter=stat:dead")

    assert answer.status_code == 422
    assert "Did you mean state:dead?" in words(answer)


def test_a_click_changes_one_word_of_the_filter():
    assert with_word('state:dead subject:"a b"', "state", "held") == 'state:held subject:"a b"'
    assert with_word("queue:mail state:dead", "state", None) == "queue:mail"
    assert with_word('broken:"', "state", "dead") == "state:dead"
    assert quoted('a "b"') == '"a \\"b\\""'


async def test_finished_jobs_show_how_long_they_waited_and_ran(site):
    [job_id] = await waiting(site)
    [job] = await claim(site.store, await a_session(site.store, "web-1", lease=1e6))
    await site.store.settle([completed(job, {"ok": True})])
    page = await (await site.visitor("viewer")).get("/jobs", params={"filter": "state:completed"})

    assert rows_of(page) == [str(job_id)]
    assert "web-1:4711" in words(page)
    assert "1 /5" in words(page)
    link = urlsplit(page.text.partition('href="/jobs/export.csv')[2].partition('"')[0])
    assert parse_qs(link.query) == {"filter": ["state:completed"]}


async def test_counts_are_those_after_ones_own_action(site):
    [job_id] = await waiting(site)
    client = await site.visitor("operator")
    assert "pending 1 running 0 held 0" in words(await client.get("/jobs"))

    held = await followed(client, f"/jobs/{job_id}/hold", next="/jobs")
    assert "pending 0 running 0 held 1" in words(held)


async def test_one_form_after_another_tells_what_it_did(site):
    [job_id] = await waiting(site)
    client = await site.visitor("manager")
    asked = "/jobs?filter=task%3Amail"

    held = await followed(client, f"/jobs/{job_id}/hold", next=asked)
    assert "is held until somebody releases it" in words(held)
    assert f'action="{at(job_id)}/release"' in held.text  # undo
    released = await followed(client, f"/jobs/{job_id}/release", next=asked)
    assert "is back on the list" in words(released)
    cancelled = await followed(client, f"/jobs/{job_id}/cancel", next=asked, reason="not needed")
    assert "is cancelled" in words(cancelled)
    deleted = await followed(client, f"/jobs/{job_id}/delete", next=asked)
    assert "is deleted with its history" in words(deleted)
    assert await site.store.get([job_id]) == []
