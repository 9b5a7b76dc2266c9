"""The queues page: what waits, how long against what was promised, who serves it, and why the first job waits."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from build import Clock, a_job, a_session, claim
from page_kit import PageSite, paged, words
from rota import Queue
from rota._core.numbers import Minute, Total, bucket
from rota._core.task_spec import TaskSpec
from rota.admin import numbers
from rota.errors import StoreUnavailable
from rota.stores.contract import SessionStart
from rota.stores.memory import MemoryStore
from rota.web.pages import waiting

HOSTILE = "a/b c%?<i>#"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


async def works(site: PageSite, *totals: Total) -> None:
    """Note what a worker did in the minute before."""
    now = await site.store.now()
    start = (now - timedelta(minutes=1)).replace(second=0, microsecond=0)
    await site.store.note_minutes(await a_session(site.store, lease=1e6), [Minute(start, totals)])


async def waits(site: PageSite, clock: Clock, seconds: float, **fields) -> None:
    await site.store.enqueue([a_job("mail", {"to": "ann"}, **({"queue": "post"} | fields))])
    clock.advance(seconds)


async def test_a_new_store_teaches_how_a_queue_comes_about(site):
    page = await (await site.visitor("viewer")).get("/queues")

    assert "No queue has work yet" in words(page)
    assert "rota enqueue TASK" in words(page)


async def test_a_queue_shows_its_backlog_its_rate_its_slots_and_its_failures(site, clock):
    await waits(site, clock, 5)
    await works(
        site,
        Total("post", "mail", "completed", 90, waits={bucket(2.0): 90}, runs={bucket(0.5): 90}),
        Total("post", "mail", "dead", 10, waits={bucket(2.0): 10}),
    )

    said = words(await (await site.visitor("viewer")).get("/queues"))

    assert "post 1" in said
    assert re.search(r"1\.[67]/min", said)
    assert "0 of 5" in said
    assert "10 %" in said
    assert "no target" in said
    assert "rota queues --since 1h" in said


@pytest.mark.parametrize(("seconds", "late"), [(5, False), (45, True)])
async def test_a_wait_is_told_against_what_was_promised(site, clock, seconds, late):
    await site.store.publish_queues([Queue("post", target="30s")])
    await waits(site, clock, seconds)

    page = await (await site.visitor("viewer")).get("/queues")

    assert f"{seconds}s of 30s" in words(page)
    assert f"the oldest waits {seconds}s; 30s is the target" in words(page)
    assert (">late</span>" in page.text) is late


async def test_a_queue_without_a_worker_says_so(site, clock):
    await waits(site, clock, 5)
    visitor = await site.visitor("viewer")

    assert "no worker" in words(await visitor.get("/queues"))
    one = words(await visitor.get("/queues/post"))
    assert "Nobody serves it" in one
    assert "rota worker APP -q post" in one


async def test_the_command_that_serves_a_queue_is_safe_to_copy(site):
    await site.store.enqueue([a_job("mail", queue="a; rm -rf $HOME")])
    page = await (await site.visitor("viewer")).get("/queues/a; rm -rf $HOME")

    assert "rota worker APP -q 'a; rm -rf $HOME'" in words(page)


async def test_what_cannot_be_read_is_unknown_and_not_zero(site, clock, monkeypatch):
    await waits(site, clock, 5)

    async def away(*_args, **_options):
        raise StoreUnavailable("not now")

    for verb in ("figures", "sessions", "depths", "series"):
        monkeypatch.setattr(site.store, verb, away)
    visitor = await site.visitor("viewer")

    listed, one = words(await visitor.get("/queues")), words(await visitor.get("/queues/post"))

    assert "unknown" in listed
    assert "unknown slots" in one
    assert "0 %" not in listed + one


async def test_one_queue_shows_charts_tasks_workers_and_why_its_first_job_waits(site, clock):
    await waits(site, clock, 5)
    session = SessionStart(uuid4(), "worker-7", 7, {"general": 5}, ("report",))
    await site.store.open_session(session, lease=1e6)
    await works(site, Total("post", "mail", "completed", 3, runs={bucket(0.5): 3}))
    await site.store.note_depths()

    page = await (await site.visitor("viewer")).get("/queues/post?range=15m")

    said = words(page)
    for title in ("Backlog", "Wait", "Throughput"):
        assert f'<caption class="sr">{title}</caption>' in page.text
    assert "worker-7 process 7 5" in said
    assert "mail 3" in said
    assert (
        "No living worker knows the task" in said
        or "mail" in said.partition("Why does its first job wait?")[2]
    )
    assert "Nothing waits:" not in said
    assert "filter=queue%3Apost" in page.text
    assert "rota jobs list queue:post" in said


async def test_a_queue_that_a_task_names_is_there_before_its_first_job(site):
    await site.store.publish([TaskSpec("mail", queue="post")])

    page = await (await site.visitor("viewer")).get("/queues/post")

    assert page.status_code == 200
    assert "no job of this queue is pending" in words(page)
    assert "mail 0" in words(page)


@pytest.mark.parametrize("path", ["/queues/nowhere", "/queues/post?range=9y"])
async def test_what_is_not_known_is_said_on_a_page(site, path):
    page = await (await site.visitor("viewer")).get(path)

    assert page.status_code in (404, 422)
    assert "nowhere" in words(page) or "9y" in words(page)


async def test_any_name_has_its_page(site, clock):
    await waits(site, clock, 5, queue=HOSTILE)
    visitor = await site.visitor("viewer")

    listed = await visitor.get("/queues")
    href = listed.text.partition('data-open href="')[2].partition('"')[0]
    one = await visitor.get(href)

    assert one.status_code == 200
    assert HOSTILE in words(one)
    assert "<i>" not in listed.text + one.text


async def test_somebody_of_one_tenant_sees_where_his_own_jobs_are(site, clock):
    await waits(site, clock, 1, tenant="red")
    await claim(site.store, await a_session(site.store, lease=1e6))
    await waits(site, clock, 1, tenant="blue", queue="of-blue")
    await waits(site, clock, 1, tenant="red")
    red = await site.visitor("viewer", "red")

    listed, mine, theirs = (
        await red.get("/queues"),
        await red.get("/queues/post"),
        await red.get("/queues/of-blue"),
    )

    assert "post 1 1" in words(listed)
    assert "of-blue" not in listed.text
    assert "Why does its first job wait?" in words(mine)
    assert mine.text.count("<tr data-row>") == 2
    assert "Nothing waits or runs" in words(theirs)


async def test_nothing_is_offered_that_is_not_built_yet(site, clock):
    await waits(site, clock, 5)

    page = await (await site.visitor("manager")).get("/queues/post")

    assert "<form" not in page.text.partition("<main")[2].partition("</main>")[0]


async def test_a_rare_job_among_very_many_is_not_looked_for_and_the_page_says_where_to_look(
    site, clock, monkeypatch
):
    monkeypatch.setattr(waiting, "FEW", 3)
    monkeypatch.setattr(waiting, "RARE", 2)
    for _ in range(4):
        await waits(site, clock, 0, queue="busy")
    await waits(site, clock, 5)
    visitor = await site.visitor("viewer")

    rare, busy = await visitor.get("/queues/post"), await visitor.get("/queues/busy")

    assert "Too many other jobs wait" in words(rare)
    assert "filter=queue%3Apost+state%3Apending+order%3Aoldest" in rare.text
    assert "It is job" in words(busy)


async def test_a_wait_that_could_not_be_read_is_not_called_none(site, clock, monkeypatch):
    await waits(site, clock, 5)
    await site.store.publish_queues([Queue("target", target="30s")])
    await site.store.enqueue([a_job(queue="target")])

    async def away(*_args, **_options):
        raise StoreUnavailable("not now")

    monkeypatch.setattr(site.store, "heads", away)
    visitor = await site.visitor("viewer")
    listed, one = words(await visitor.get("/queues")), words(await visitor.get("/queues/post"))

    assert "nothing is due" not in listed
    assert "how long its oldest waits is unknown; 30s is the target" in listed
    assert "unknown of 30s" in listed
    assert "Oldest wait unknown" in one


async def test_nothing_is_reckoned_from_counts_that_stopped(site, clock, monkeypatch):
    await site.store.note_depths()
    await waits(site, clock, 5)
    await works(site, Total("post", "mail", "completed", 90))
    visitor = await site.visitor("viewer")

    exact = words(await visitor.get("/queues/post"))
    monkeypatch.setattr(numbers, "COUNTED", 1)
    capped = words(await visitor.get("/queues/post?range=6h"))

    assert re.search(r"Drains in ~", exact)
    assert re.search(r"Drains in >", capped)
    assert "in: unknown" not in exact
    assert "in: unknown" in capped
