"""The page of a job that is heavy: many attempts, large documents. It stays short, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from build import a_job, a_session, claim, failed
from page_kit import PageSite, paged, words
from rota._core.failure import ErrorClass
from rota._core.ids import public_id
from rota.admin import Admin
from rota.stores.memory import MemoryStore
from rota.web.pages import job as job_page

MANY = job_page.ATTEMPTS + 3


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        await site.store.publish([task.spec() for task in site.app.tasks.values()])
        yield site


def at(job) -> str:
    return f"/jobs/{quote(public_id(job.id))}"


async def tried(site: PageSite, times: int, **options):
    """A job that died so often; somebody retried it each time but the last."""
    job = a_job("mail", {"to": "ann"}, queue="post", **options)
    await site.store.enqueue([job])
    admin, session = Admin(site.store, actor="jana"), await a_session(site.store, lease=1e6)
    for number in range(times):
        if number:
            await admin.retry(job.id)
        [mine] = await claim(site.store, session)
        now = await site.store.now()
        await site.store.settle([failed(mine, ErrorClass.NON_RETRYABLE, f"miss-{number}.", now=now)])
    return job


@pytest.mark.parametrize("tenant", [None, "red"])
async def test_of_many_attempts_the_newest_are_shown_and_that_there_are_more(site, tenant):
    job = await tried(site, MANY, tenant="red")
    said = words(await (await site.visitor("viewer", tenant)).get(at(job)))

    assert f"miss-{MANY - 1}." in said
    assert "miss-3." in said
    assert "miss-2." not in said
    assert "These are the newest 50." in said
    assert "Attempts 50+" in said
    assert "earlier attempts, which are not shown" in said


async def test_of_few_attempts_all_are_shown(site):
    said = words(await (await site.visitor("viewer")).get(at(await tried(site, 2))))

    assert "miss-0." in said
    assert "Attempts 2 " in said
    assert "the newest" not in said
    assert "earlier attempts" not in said


async def test_after_a_reveal_forms_lead_back_to_the_job(site):
    job = a_job("mail", {"to": "ann", "api_token": "hunter2"}, queue="post")
    await site.store.enqueue([job])
    manager = await site.visitor("manager")
    page = await manager.post(f"{at(job)}/reveal", data={"tab": "arguments"})
    back = page.text.partition('name="next" value="')[2].partition('"')[0]

    assert back == at(job)
    assert (await manager.get(back)).status_code == 200


@pytest.mark.parametrize("tab", ["attempts", "logs", "events", "related"])
async def test_documents_are_not_read_for_a_tab_that_does_not_show_them(site, tab):
    job = a_job("mail", queue="post")._replace(payload_json="unreadable " * 500)
    await site.store.enqueue([job])

    assert (await (await site.visitor("viewer")).get(at(job), params={"tab": tab})).status_code == 200


@pytest.mark.parametrize(("tab", "reader"), [("arguments", "tree"), ("raw", "shown"), ("attempts", "_tried")])
async def test_others_are_served_while_a_document_is_read(site, tab, reader, monkeypatch):
    job = await tried(site, 1)
    begun, served = asyncio.Event(), threading.Event()
    loop, whole = asyncio.get_running_loop(), getattr(job_page, reader)

    def slowly(*args, **options):
        loop.call_soon_threadsafe(begun.set)
        assert served.wait(5)
        return whole(*args, **options)

    async def another() -> None:
        await begun.wait()
        served.set()

    monkeypatch.setattr(job_page, reader, slowly)
    visitor = await site.visitor("viewer")
    page, _ = await asyncio.gather(visitor.get(at(job), params={"tab": tab}), another())

    assert page.status_code == 200
