"""How people find their job, in Chromium: wishes and scars of other dashboards, each a journey."""

from __future__ import annotations

import csv
import io
import json
import re
from urllib.parse import unquote

import pytest
from playwright.async_api import expect
from stage import place

from rota._core.ids import public_id

HUGE = 9_007_199_254_740_993
"""The first whole number that JavaScript cannot tell from its neighbour."""


async def test_a_job_is_found_by_the_value_of_an_argument(stage, visit):
    await stage.add("send", "ann@example.org")
    await stage.add("send", "bob@example.org")
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/")
    await page.keyboard.press("/")
    await page.keyboard.type("args.to:bob@example.org")
    await page.keyboard.press("Enter")

    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await expect(page.locator("tr[data-row]")).to_contain_text("bob@example.org")


@pytest.mark.parametrize("form", [str, public_id], ids=["UUID", "Base32"])
async def test_an_id_in_the_search_box_leads_to_its_job(stage, visit, form):
    job_id = await stage.add("send", "ann")
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/")
    await page.locator("#search").fill(form(job_id))
    await page.keyboard.press("Enter")

    await expect(page.locator("h1")).to_contain_text("send")


async def test_a_wrong_filter_says_what_is_wrong_and_loses_nothing(stage, visit):
    vera = await visit(stage.server, "viewer")
    vera.guard.expect("answer: 422 ", "status of 422")
    page = await vera.go("/jobs")
    await page.locator("#filter").fill("stat:dead <b>bold</b>")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("alert")).to_contain_text("stat")
    await expect(page.locator("#filter")).to_have_value("stat:dead <b>bold</b>")
    assert await page.locator("b", has_text="bold").count() == 0


async def test_chosen_columns_stay_with_the_filter(stage, visit):
    await stage.add("send", "ann", tenant="acme")
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs?filter=task:send")
    await page.get_by_text("Columns").first.click()
    await page.get_by_label("Tenant").check()
    await page.get_by_role("button", name="Show these").click()

    await expect(page.get_by_role("columnheader", name="Tenant")).to_be_visible()
    await expect(page.locator("#filter")).to_have_value("task:send")
    await page.reload()
    await expect(page.get_by_role("columnheader", name="Tenant")).to_be_visible()


async def test_pages_of_jobs_go_on_and_back(stage, visit):
    await stage.app.tasks["send"].enqueue_many([(f"u{n}",) for n in range(120)])
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs?filter=task:send")
    first = await page.locator("tr[data-row]").first.get_attribute("id")
    await page.get_by_role("link", name="Next").click()
    await expect(page.locator("tr[data-row]").first).not_to_have_id(first)
    await page.get_by_role("link", name="Previous").click()

    await expect(page.locator("tr[data-row]").first).to_have_id(first)


async def test_what_matches_can_be_taken_away_as_csv_and_json(stage, visit):
    await stage.add("send", "=cmd()", tags=("x",))
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs?filter=tag:x")
    base = stage.server.base
    table = await (await page.request.get(f"{base}/jobs/export.csv?filter=tag:x")).text()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == 1
    assert not any(value.startswith(("=", "+", "-", "@")) for value in rows[0].values())
    listed = json.loads(await (await page.request.get(f"{base}/jobs/export.json?filter=tag:x")).text())

    assert "=cmd()" in json.dumps(listed)


async def test_why_a_job_does_not_run_is_told_with_the_command_that_helps(stage, visit):
    job_id = await stage.add("send", "ann")
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs")
    await page.get_by_role("link", name="why?").click()

    await expect(page.locator("#why")).to_contain_text(re.compile("worker", re.IGNORECASE))
    assert public_id(job_id) in unquote(page.url)


async def test_big_numbers_are_shown_as_they_are_stored(stage, visit):
    job_id = await stage.add("send", "ann", HUGE)
    vera = await visit(stage.server, "viewer")
    page = await vera.go(f"{place(job_id)}?tab=arguments")

    await expect(page.locator(".tabbed")).to_contain_text(str(HUGE))


async def test_a_view_is_saved_opened_and_deleted_without_a_script(stage, visit):
    await stage.add("send", "ann", tags=("campaign",), delay=3600)
    await stage.add("send", "bob", delay=3600)
    vera = await visit(stage.server, "viewer", java_script_enabled=False)
    page = await vera.go("/jobs?filter=tag:campaign&cols=state&cols=tags")
    await page.locator("#save-view summary").click()
    await page.get_by_label("Name", exact=True).fill("the campaign")
    await page.get_by_role("button", name="Save view").click()
    await expect(page.locator("#notice")).to_contain_text("Saved the view the campaign")

    page = await vera.go("/jobs")
    await expect(page.locator("tr[data-row]")).to_have_count(2)
    await page.get_by_role("navigation", name="Saved views").get_by_role("link", name="the campaign").click()
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await expect(page.locator("table.jobs thead")).to_contain_text("Tags")
    await page.locator("#save-view summary").click()
    await page.get_by_role("button", name="Delete the view the campaign").click()

    await expect(page.locator("#notice")).to_contain_text("Deleted the view")
    await expect(page.get_by_role("navigation", name="Saved views")).to_have_count(0)
