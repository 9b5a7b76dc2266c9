"""The first page: what it says of what waits and fails, and what it says when the store does not tell."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from build import Clock, a_job, a_session, claim, failed
from page_kit import PageSite, paged, words
from rota._core.dead_letter import DeadFilter
from rota._core.failure import ErrorClass
from rota._core.room import Room
from rota.admin import numbers, scope
from rota.errors import StoreUnavailable
from rota.stores.memory import MemoryStore
from rota.web.pages import charting, overview
from web_routes import Stage


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


async def test_with_an_empty_store_nothing_waits(site):
    said = words(await (await site.visitor("viewer")).get("/"))

    assert "Oldest wait none" in said
    assert "Nothing waits for review" in said


async def test_what_the_store_does_not_tell_is_unknown_and_not_none(site, monkeypatch):
    await site.store.enqueue([a_job()])

    async def away(*_args, **_options):
        raise StoreUnavailable("not now")

    for verb in ("heads", "failure_groups"):
        monkeypatch.setattr(site.store, verb, away)

    said = words(await (await site.visitor("viewer")).get("/"))

    assert "Oldest wait unknown" in said
    assert "Oldest wait none" not in said
    assert "Nothing waits for review" not in said
    assert "Unknown The store did not answer this question." in said


async def test_dead_jobs_alarm_only_while_one_of_them_waits_for_a_decision(site):
    stage, viewer = Stage(site.store), await site.visitor("viewer")
    for _ in range(3):
        await stage.dead(None)

    async def shown() -> tuple[str, bool]:
        site.asgi.state.desk.recently.forget()
        page = await viewer.get("/")
        [note] = re.findall(r"Dead ([^.]*?decision)", words(page))
        return note, 'class="tile bad"' in page.text

    assert await shown() == ("3 wait for a decision", True)
    [first, *others] = await site.store.dead_letters(DeadFilter())
    await stage.admin.acknowledge(first.job.id, reason="known")
    assert await shown() == ("3 2 wait for a decision", True)
    for letter in others:
        await stage.admin.discard(letter.job.id, reason="not wanted")
    assert await shown() == ("3 none waits for a decision", False)


async def test_counts_that_stopped_say_so_wherever_they_stand(site, monkeypatch):
    monkeypatch.setattr(numbers, "COUNTED", 3)
    await site.store.enqueue([a_job(queue="post") for _ in range(3)])

    said = words(await (await site.visitor("viewer")).get("/"))

    assert "Waiting 3+" in said
    assert "post 3+ 0" in said


async def test_groups_of_one_tenant_say_when_not_all_of_his_dead_were_looked_at(site, monkeypatch):
    stage = Stage(site.store)
    for _ in range(2):
        await stage.dead("red")
    red = await site.visitor("viewer", "red")

    exact = words(await red.get("/"))
    for module in (scope, overview):
        monkeypatch.setattr(module, "LOOKED_AT", 2)
    site.asgi.state.desk.recently._known.clear()

    assert "2+" not in exact
    assert "2+" in words(await red.get("/"))


@pytest.mark.parametrize(
    ("waiting", "a_minute", "capped", "said"),
    [
        (None, 1.0, False, "unknown"),
        (5, None, False, "unknown"),
        (0, 1.0, False, "empty"),
        (5, 0.0, False, "stands still"),
        (120, 60.0, False, "~2m"),
        (120, 60.0, True, ">2m"),
    ],
)
def test_when_a_backlog_is_gone_is_told_only_as_far_as_it_is_known(waiting, a_minute, capped, said):
    assert charting.drains(waiting, a_minute, capped=capped) == said


async def test_what_is_not_well_with_the_store_stands_before_the_numbers(site, monkeypatch):
    async def behind():
        return Room("PostgreSQL", "18.4", schema=12, needed=13)

    monkeypatch.setattr(site.store, "room", behind)

    page = await (await site.visitor("viewer")).get("/")
    said = words(page)

    assert "The schema of the store is behind: it has version 12, this code needs 13" in said
    assert said.index("is behind") < said.index("Oldest wait")
    assert "<code>rota migrate</code>" in page.text


async def test_the_help_for_keys_names_every_page_of_the_rail(site):
    page = await (await site.visitor("viewer")).get("/")
    rail = re.findall(
        r'title="(\w+)"><svg', page.text.partition('<nav class="rail"')[2].partition("</nav>")[0]
    )
    keys = page.text.partition('<dl class="keys">')[2].partition("</dl>")[0]

    assert "System" in rail
    assert [word for word in rail if word not in keys] == []


async def retries(site: PageSite, clock: Clock) -> None:
    """One job that waits for its second attempt, and one that waits for its first."""
    await site.store.enqueue([a_job(max_attempts=3)])
    [job, *_] = await claim(site.store, await a_session(site.store, lease=1e6))
    await site.store.settle([failed(job, ErrorClass.RETRYABLE, now=clock.now)])
    await site.store.enqueue([a_job()])


async def test_jobs_that_wait_for_another_attempt_are_a_number_that_leads_to_exactly_them(store, clock):
    async with paged(store) as site:
        await retries(site, clock)
        vera = await site.visitor("viewer")

        page = await vera.get("/")
        link = page.text.partition('">\n  <span class="word">Retrying')[0].rpartition('href="')[2]
        listed = await vera.get(link.replace("&amp;", "&"))
        told = (await vera.get("/api/v1/statistics")).json()

    assert "Waiting 2 jobs" in words(page)
    assert "Retrying 1 wait to try again" in words(page)
    assert listed.text.count("<tr data-row") == 1
    assert "retrying" in words(listed)
    assert told["retrying"] == 1


async def test_how_many_wait_for_another_attempt_is_unknown_rather_than_zero(site, clock, monkeypatch):
    await site.store.enqueue([a_job() for _ in range(3)])
    none = words(await (await site.visitor("viewer")).get("/"))
    site.asgi.state.desk.recently._known.clear()
    monkeypatch.setattr(numbers, "COUNTED", 2)
    unseen = words(await (await site.visitor("viewer")).get("/"))
    await retries(site, clock)
    site.asgi.state.desk.recently._known.clear()
    some = words(await (await site.visitor("viewer")).get("/"))

    async def away(*_args, **_options):
        raise StoreUnavailable("not now")

    monkeypatch.setattr(site.store, "counts", away)
    site.asgi.state.desk.recently._known.clear()
    silent = words(await (await site.visitor("viewer")).get("/"))

    assert "Retrying 0 wait" in none
    assert "Retrying unknown" in unseen
    assert "Retrying 1+ wait" in some
    assert "Retrying unknown" in silent
