"""Operations, schedules, workers and the system in a browser: what moves, what asks first, what needs no script."""

from __future__ import annotations

import psycopg
import pytest

from rota._core.dead_letter import DeadFilter
from rota._core.review import ReviewVerb
from rota.admin import Admin
from rota.stores.postgres import PostgresStore


@pytest.fixture
async def ann(lively_database):
    """Somebody who works beside the pages, on a connection of his own."""
    store = PostgresStore(lively_database)
    yield Admin(store, actor="ann@shop.example")
    await store.close()


async def test_the_progress_of_an_operation_moves_without_a_reload(lively_app, serve, visit, ann):
    server = await serve(lively_app)
    operation = await ann.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter(), reason="known")
    otto = await visit(server, "operator")
    page = await otto.go(f"/activity/operations/{operation.id}")
    await page.evaluate("document.stayed = true")
    await page.fill("#stop-reason", "too")

    await ann.store.advance_operation(operation.id, operation.driver, operation.progress._replace(done=3))
    await page.wait_for_selector("#progress :text('3 of')")
    assert await page.input_value("#stop-reason") == "too"  # what somebody types stays
    await ann.store.advance_operation(
        operation.id, operation.driver, operation.progress._replace(done=5), finished=True
    )
    await page.wait_for_selector("#progress :text('it is over')")

    assert await page.evaluate("document.stayed")


async def test_a_schedule_is_paused_with_a_reason_and_the_pause_taken_back(lively_app, serve, visit):
    otto = await visit(await serve(lively_app), "operator")
    page = await otto.go("/schedules/stock")

    await page.click("summary:has-text('Pause')")
    await page.fill("#pause-reason", "the warehouse moves")
    await page.click("button:has-text('Pause it')")
    await page.wait_for_selector("#notice:has-text('Paused stock')")
    assert await page.locator(".alerts").inner_text() != ""
    await page.click("#notice button:has-text('Undo')")
    await page.wait_for_selector("#notice:has-text('stock ticks again')")

    assert await page.locator(".alerts").count() == 0
    assert "the warehouse moves" in await page.locator("table.trail").inner_text()


async def test_a_schedule_is_paused_without_scripts(lively_app, lively_database, serve, visit):
    otto = await visit(await serve(lively_app), "operator", java_script_enabled=False)
    page = await otto.go("/schedules")

    await page.click("tr:has-text('catalogue') button:has-text('Pause')")
    await page.wait_for_selector("#notice:has-text('Paused catalogue')")

    with psycopg.connect(lively_database) as connection:
        [paused] = connection.execute(
            "SELECT paused_by FROM rota.schedules WHERE name = 'catalogue'"
        ).fetchone()
    assert paused == "otto"


async def test_a_token_is_revoked_after_a_question(lively_app, serve, visit):
    mona = await visit(await serve(lively_app))
    page = await mona.go("/system")
    row = page.locator("tr:has-text('grafana')")

    await row.locator("button:has-text('Revoke')").click()
    await page.click("dialog button.danger")
    await page.wait_for_selector("#notice:has-text('Revoked grafana')")

    assert "revoked" in await page.locator("tr:has-text('grafana')").inner_text()


async def test_the_swimlanes_have_their_attempts_in_words_behind_a_toggle(
    lively_app, lively_database, serve, visit
):
    vera = await visit(await serve(lively_app), "viewer")
    page = await vera.go("/workers")
    await page.click("tbody a[data-open] >> nth=0")

    await page.wait_for_selector("svg.lanes rect.run")
    words = page.locator("details.data table tbody tr")
    assert not await words.first.is_visible()
    await page.click("details.data summary")

    assert await words.first.is_visible()
    assert (
        await page.locator("form[method=post] >> text=/stop|drain/i").count() == 0
    )  # nothing that could not be done
