"""Pages that move by themselves, in Chromium: wishes and scars of other dashboards, each a journey."""

from __future__ import annotations

import re

from playwright.async_api import expect

from rota._core.actions import Verb
from rota._core.ids import public_id
from rota.web import Role

REFUSED = """document.dispatchEvent(new CustomEvent("htmx:response:error", {
    detail: { ctx: { sourceElement: document.querySelector("#wire") } },
}))"""


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


async def test_a_page_whose_session_ended_leaves_for_the_door_and_comes_back(stage, visit):
    token = (await stage.admin.create_token("vera", role=Role.VIEWER)).text
    vera = await visit(stage.server, "viewer")
    vera.guard.expect("answer: 401 ", "status of 401", "failed with status 401")
    page = await vera.go("/jobs?filter=queue%3Amail")
    await expect(page.locator("#live-word")).to_have_text("live")
    other = await vera.context.new_page()
    await other.goto(stage.server.base + "/queues")
    await other.locator("details.menu summary").click()
    await other.get_by_role("button", name="Log out").click()
    await expect(other.get_by_label("Token")).to_be_visible()
    await page.bring_to_front()

    await stage.add()

    await expect(page.get_by_label("Token")).to_be_visible(timeout=20_000)
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Log in").click()
    await expect(page).to_have_url(stage.server.base + "/jobs?filter=queue%3Amail")
    await expect(page.locator("tr[data-row]")).to_have_count(1)


async def test_an_operation_whose_reader_has_no_session_any_more_leads_him_to_the_door(stage, visit):
    await stage.add()
    begun = await stage.admin.begin_job_operation(Verb.HOLD, "queue:mail")
    otto = await visit(stage.server, "operator")
    otto.guard.expect("answer: 401 ", "status of 401")
    page = await otto.go(f"/activity/operations/{begun.id}")
    await expect(page.locator("#progress[hx-get]")).to_be_visible()

    await otto.context.clear_cookies()

    await expect(page.get_by_label("Token")).to_be_visible()
    assert page.url.endswith(f"/enter?next=%2Factivity%2Foperations%2F{begun.id}")


async def test_only_an_update_that_came_is_announced(stage, visit):
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs")
    vera.guard.expect("503")
    await vera.context.route("**/jobs", lambda route: route.fulfill(status=503, body=""))
    async with page.expect_response("**/jobs"):
        await stage.add()
    await page.wait_for_timeout(300)
    assert await page.locator("#announce").text_content() == ""
    await vera.context.unroute("**/jobs")

    await stage.add()

    await expect(page.locator("#announce")).to_have_text("The page was updated.")


async def test_a_stream_that_is_refused_again_and_again_makes_the_lamp_say_that_the_page_polls(stage, visit):
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/jobs")
    await expect(page.locator("#live-word")).to_have_text("live")

    await page.evaluate(REFUSED)
    await page.evaluate(REFUSED)

    await expect(page.locator("#live-word")).to_have_text("polling", timeout=2_000)
