"""Does one tenant starve the rest? Who has the slots, on the pages of queues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import NOON, Clock, a_job, a_session, claim, new_id
from page_kit import paged, words
from rota._core.happening import Share
from rota._core.numbers import Minute, TenantTotal
from rota.stores.contract import Wanted
from rota.stores.memory import MemoryStore
from rota.web.pages.shares import parted


@pytest.fixture
async def site(clock: Clock):
    async with paged(MemoryStore(clock=clock)) as found:
        yield found


async def running(store, *tenants: str | None, queue: str = "mail") -> None:
    await store.enqueue([a_job(queue=queue, tenant=tenant) for tenant in tenants])
    await claim(store, await a_session(store, lease=1e6), Wanted(len(tenants), (queue,)))


async def test_the_bar_says_in_words_and_numbers_who_has_the_slots_of_a_queue(site):
    await running(site.store, "acme", "acme", "acme", "globex")
    await running(site.store, "elsewhere", queue="slow")

    page = await (await site.visitor("viewer")).get("/queues/mail")

    assert "Who has the slots jobs of mail that run now, by tenant" in words(page)
    assert "■ acme 3 75 %" in words(page)
    assert "■ globex 1 25 %" in words(page)
    assert "elsewhere" not in words(page)
    assert (
        '<rect class="hue-h0" x="0.0" y="0" width="750.0" height="28"><title>acme: 3 jobs, 75 %</title>'
        in page.text
    )


async def test_all_queues_together_have_a_bar_and_a_picture_along_time(site, clock):
    await running(site.store, "acme", "globex")
    await running(site.store, "globex", queue="slow")
    totals = (TenantTotal("acme", 5, 0, 600.0), TenantTotal("globex", 1, 0, 30.0), TenantTotal("", 9, 0, 1.0))
    await site.store.note_minutes(new_id(), [Minute(NOON - timedelta(minutes=5), (), totals)])

    page = await (await site.visitor("viewer")).get("/queues")

    assert "■ globex 2 67 %" in words(page)
    assert "Run time by tenant of attempts that ended" in words(page)
    assert 'data-tone="h0" data-kind="bar">acme</th>' in page.text
    assert 'data-tone="h2" data-kind="bar">no tenant</th>' in page.text
    assert 'data-v="600.0">10m</td>' in page.text


async def test_beyond_five_tenants_the_rest_is_one_part_and_the_parts_fill_the_bar():
    shares = [Share("q", f"tenant-{number}", 10 - number) for number in range(8)]

    parts = parted([*shares, Share("other", "tenant-0", 5)])

    assert [part.tenant for part in parts] == [*(f"tenant-{number}" for number in range(5)), "3 others"]
    assert [part.jobs for part in parts] == [15, 9, 8, 7, 6, 12]
    assert sum(part.width for part in parts) == pytest.approx(1000, abs=0.5)
    assert len({part.shade for part in parts}) == 6


async def test_a_tenant_has_the_same_colour_in_the_bar_as_in_the_picture_beside_it():
    running = [Share("q", "new", 9), Share("q", "blue", 4), Share("q", None, 2), Share("q", "acme", 1)]

    parts = parted(running, ["acme", "away", "no tenant", "blue"])

    assert [(part.tenant, part.tone) for part in parts] == [
        ("new", "h4"),
        ("blue", "h3"),
        ("no tenant", "h2"),
        ("acme", "h0"),
    ]


async def test_an_app_without_tenants_has_no_such_picture(site):
    await running(site.store, None, None)

    for path in ("/queues", "/queues/mail"):
        page = await (await site.visitor("viewer")).get(path)
        assert "Who has the slots" not in words(page)
        assert "Run time by tenant" not in words(page)


async def test_somebody_of_one_tenant_learns_nothing_of_the_others(site):
    await running(site.store, "red", "blue")

    for path in ("/queues", "/queues/mail"):
        page = await (await site.visitor("viewer", "red")).get(path)
        assert page.status_code == 200
        assert "blue" not in page.text
        assert "Who has the slots" not in words(page)
