"""Times that no script turns into those of the reader's zone say that they are UTC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from build import NOON, Clock, a_job, claim, completed
from page_kit import PageSite, paged, words
from rota._core.ids import public_id
from rota._core.job_log import LogLine, LogTail
from rota._core.series import Chart, Point
from rota.stores.memory import MemoryStore
from rota.web.pages import charting


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


async def test_the_numbers_of_a_chart_say_so_beside_an_axis_of_the_readers_zone(site):
    page = words(await (await site.visitor("viewer")).get("/"))

    assert "Numbers Keeping up Time (UTC) came in went out" in page


async def test_the_life_and_the_log_of_a_job_say_so(site, clock):
    await site.store.enqueue([a_job()])
    [job] = await claim(site.store)
    clock.advance(60)
    await site.store.keep_logs([LogTail(job.id, job.version, 1, (LogLine(clock.now, "INFO", "sent"),), 1)])
    await site.store.settle([completed(job)])
    vera = await site.visitor("viewer")

    life = words(await vera.get(f"/jobs/{public_id(job.id)}"))
    logs = words(await vera.get(f"/jobs/{public_id(job.id)}?tab=logs"))

    assert "From (UTC) What How long" in life
    assert "the newest 50 are kept here; times are UTC" in logs


def test_the_cells_of_a_heatmap_say_so():
    heat = charting.heat(Chart(NOON, NOON + timedelta(minutes=1), 60.0, (Point(NOON, runs={5: 1}),)))

    assert heat is not None
    assert heat.cells[0].title.startswith(f"{NOON:%d %b %H:%M} UTC: 1 run of ")


async def test_the_menu_promises_the_readers_zone_only_where_nothing_else_is_said(site):
    page = await (await site.visitor("viewer")).get("/")

    assert ", where they do not say UTC; without a script, all are UTC." in page.text
