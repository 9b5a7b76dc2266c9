"""Keys, scripts, prefixes, themes, charts and phones: journeys in Chromium."""

from __future__ import annotations

import re

from playwright.async_api import expect
from stage import Stage, place, small_app

from rota._core.ids import public_id
from rota._core.job import State


async def test_keys_go_to_pages_rows_and_help_and_not_while_typing(stage, visit):
    ids = [await stage.add("send", f"u{n}") for n in range(3)]
    otto = await visit(stage.server, "operator")
    page = await otto.go("/")
    await page.keyboard.press("?")
    await expect(page.locator("#keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("g")
    await page.keyboard.press("j")
    await page.wait_for_url("**/jobs")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.locator(f"#row-{ids[1]} [data-tick]")).to_be_checked()
    await page.locator("#filter").focus()
    await page.keyboard.type("gj?x")
    await expect(page.locator("#filter")).to_have_value("gj?x")

    await page.keyboard.press("Escape")
    await page.keyboard.press("Enter")


async def test_without_scripts_pages_are_read_and_single_actions_work(stage, visit):
    job_id = await stage.add("send", "ann@example.org", delay=3600)
    otto = await visit(stage.server, "operator", java_script_enabled=False)
    page = await otto.go("/jobs")
    await expect(page.get_by_text("ann@example.org")).to_be_visible()
    await page.get_by_role("link", name="send").first.click()
    await page.get_by_role("button", name="Hold").click()
    await expect(page.locator("#notice")).to_be_visible()
    assert (await stage.admin.job(job_id)).state is State.HELD

    await page.get_by_role("button", name="Release").click()
    await expect(page.locator("h1 .state")).to_have_text("scheduled")


async def test_under_a_prefix_everything_works(fresh_database, serve, visit):
    app = small_app(fresh_database)
    server = await serve(app, prefix="/a/b")
    stage = Stage(fresh_database, server)
    job_id = await stage.add("send", "ann", delay=3600)
    otto = await visit(server, "operator")
    page = await otto.go("/jobs")
    await page.get_by_role("link", name="send").first.click()
    await page.get_by_role("button", name="Hold").click()
    await expect(page.locator("h1 .state")).to_have_text("held")
    await stage.admin.release(job_id)
    await expect(page.locator("h1 .state")).to_have_text("scheduled")
    await page.get_by_role("link", name="Queues").first.click()
    outside = await page.eval_on_selector_all(
        "a[href], form[action], link[href], script[src]",
        "all => all.map(e => new URL(e.href || e.action || e.src).pathname).filter(p => !p.startsWith('/a/b/'))",
    )
    await stage.close()

    assert outside == []


async def test_a_theme_is_chosen_and_kept(stage, visit):
    vera = await visit(stage.server, "viewer")
    page = await vera.go("/")
    light = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    await page.locator(".menu summary").click()
    await page.get_by_role("button", name="dark").click()
    await page.wait_for_url("**/")

    dark = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    await page.goto(stage.server.base + "/jobs")
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


async def test_copying_works_without_a_clipboard_too(stage, visit):
    job_id = await stage.add("send", "ann")
    vera = await visit(stage.server, "viewer")
    await vera.context.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page = await vera.go(place(job_id))
    await page.get_by_role("button", name=re.compile("Copy the id")).click()

    assert await page.evaluate("getSelection().toString()") == public_id(job_id)


async def test_charts_are_drawn_from_the_numbers_behind_them(shop, visit):
    vera = await visit(shop, "viewer")
    page = await vera.go("/?range=6h")
    await expect(page.locator("#throughput canvas")).to_be_visible()
    await page.locator("#throughput summary").click()

    numbers = await page.locator("#throughput td[data-v]").evaluate_all(
        "all => all.map(e => Number(e.dataset.v))"
    )
    assert sum(numbers) > 100


async def test_a_click_on_a_bar_shows_the_jobs_that_ended_then(shop, visit):
    vera = await visit(shop, "viewer")
    page = await vera.go("/?range=1h")
    box = await page.locator("#throughput .u-over").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.8)
    await page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.8)

    await page.wait_for_url("**/jobs?filter=finished*")
    await expect(page.locator("tr[data-row]").first).to_be_visible()


async def test_history_outlives_the_server_of_the_pages(lively_app, lively_database, serve, visit):
    from seeding import shop_app

    first = await serve(lively_app)
    vera = await visit(first, "viewer")
    vera.guard.expect(
        "/api/v1/events", "htmx:sse:error", "htmx:error", "ERR_CONNECTION_REFUSED"
    )  # its server stops
    page = await vera.go("/?range=24h")
    before = await page.locator("#throughput td[data-v]").evaluate_all(
        "all => all.slice(0, 60).map(e => e.dataset.v)"
    )
    await first.stop()
    second = await serve(shop_app(url=lively_database))
    page = await (await visit(second, "viewer")).go("/?range=24h")

    after = await page.locator("#throughput td[data-v]").evaluate_all(
        "all => all.slice(0, 60).map(e => e.dataset.v)"
    )
    assert before == after
    assert any(value not in ("", "0") for value in after)


async def test_a_phone_shows_every_page_without_sideways_scrolling(shop, visit, lively_database):
    from tour import tour

    vera = await visit(shop, "viewer", viewport={"width": 390, "height": 844})
    for stop in tour(lively_database):
        if stop.verb.endswith(("_form", "jobs_all")):
            continue
        page = await vera.go(stop.path)
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, stop.name
