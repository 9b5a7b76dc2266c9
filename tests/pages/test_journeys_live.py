"""Pages that move by themselves, in Chromium: wishes and scars of other dashboards, each a journey."""

from __future__ import annotations

import re

from playwright.async_api import expect

from rota._core.ids import public_id


async def test_a_new_job_appears_without_a_reload(stage, visit):
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs")
    await expect(page.get_by_text("No jobs yet")).to_be_visible()

    await stage.add("send", "grace@example.org")

    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await expect(page.get_by_text("grace@example.org")).to_be_visible()


async def test_a_dead_job_is_retried_and_turns_green_without_a_reload(stage, visit):
    [job_id] = await stage.dead()
    otto = await visit(stage.server, "operator")
    page = await otto.go("/")
    await page.get_by_role("link", name="read_feed").first.click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("read_feed")
    await page.get_by_role("link", name=re.compile(public_id(job_id)[-7:])).first.click()
    await expect(page.locator("h1 .state")).to_have_text("dead")
    await expect(page.locator(".trace").first).to_contain_text("is not a feed")

    await page.get_by_role("link", name="Retry with edits").click()
    await page.get_by_label("url").fill("https://good.example/feed")
    await page.get_by_role("button", name=re.compile("Retry|Run|Do it")).first.click()
    await stage.work()

    await expect(page.locator("h1 .state")).to_have_text("completed", timeout=15_000)


async def test_ticked_rows_stay_where_they_are_while_work_goes_on(stage, visit):
    first = await stage.add("send", "first")
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs")
    await page.locator(f"#row-{first} [data-tick]").check()

    await stage.add("send", "second")
    await page.wait_for_timeout(2500)
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await expect(page.locator(f"#row-{first} [data-tick]")).to_be_checked()
    await page.get_by_role("button", name="Untick").click()
    await stage.add("send", "third")

    await expect(page.locator("tr[data-row]")).to_have_count(3)


async def test_updates_can_be_paused_and_the_lamp_says_so(stage, visit):
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs")
    await page.keyboard.press(".")
    await expect(page.locator("#live-word")).to_have_text("paused")

    await stage.add()
    await page.wait_for_timeout(2000)
    await expect(page.locator("tr[data-row]")).to_have_count(0)
    await page.keyboard.press(".")

    await expect(page.locator("#live-word")).to_have_text("live")
    await expect(page.locator("tr[data-row]")).to_have_count(1)


async def test_without_the_stream_the_page_polls_and_the_lamp_says_so(stage, visit):
    vera = await visit(stage.server, "viewer")
    vera.guard.expect("/api/v1/events", "ERR_FAILED", "Failed to fetch")
    await vera.context.route("**/api/v1/events*", lambda route: route.abort())
    page = await vera.go("/jobs")
    await expect(page.locator("#live-word")).to_have_text("polling", timeout=10_000)

    await stage.add()

    await expect(page.locator("tr[data-row]")).to_have_count(1, timeout=12_000)


async def test_an_open_part_and_the_focus_outlive_an_update(stage, visit):
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs")
    await page.locator("#filter-help summary").click()
    await page.locator("#filter-help summary").focus()

    await stage.add()

    await expect(page.locator("tr[data-row]")).to_have_count(1)
    assert await page.locator("#filter-help").evaluate("e => e.open")
    assert await page.evaluate("document.activeElement.parentElement.id") == "filter-help"
