"""What people do to jobs on the pages, in Chromium: wishes and scars of other dashboards, each a journey."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import expect
from stage import place

from rota._core.job import State
from rota.stores.contract import JobFilter


async def test_the_filter_survives_an_action(stage, visit):
    job_id = await stage.add("send", "ann", tags=("a&b",))
    await stage.add("send", "bob")
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs?filter=tag:a%26b")
    await page.get_by_role("button", name="Hold").first.click()

    await expect(page.locator("#notice")).to_be_visible()
    assert page.url.endswith("/jobs?filter=tag:a%26b") or page.url.endswith("/jobs?filter=tag%3Aa%26b")
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    assert (await stage.admin.job(job_id)).state is State.HELD


async def test_what_was_held_can_be_undone_at_once(stage, visit):
    job_id = await stage.add("send", "ann", delay=3600)
    otto = await visit(stage.server, "operator")
    page = await otto.go(place(job_id))
    await page.get_by_role("button", name="Hold").click()
    await expect(page.locator("h1 .state")).to_have_text("held")

    await page.locator("#notice").get_by_role("button", name="Undo").click()

    await expect(page.locator("h1 .state")).to_have_text("scheduled")


async def test_ticked_rows_and_no_others_are_acted_on(stage, visit):
    ids = [await stage.add("send", f"u{n}", delay=3600) for n in range(4)]
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs")
    await page.locator(f"#row-{ids[1]} [data-tick]").check()
    await page.locator(f"#row-{ids[2]} [data-tick]").check()
    await expect(page.locator("#chosen")).to_have_text("2 jobs")
    await page.locator("#bulk").get_by_role("button", name="Hold").click()

    await expect(page.locator("#notice")).to_contain_text("2")
    held = {job.id for job in await stage.store.find(JobFilter(states=(State.HELD,), limit=10))}
    assert held == set(ids[1:3])


async def test_shift_ticks_all_rows_between(stage, visit):
    for n in range(5):
        await stage.add("send", f"u{n}", delay=3600)
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs")
    await page.locator("[data-tick]").nth(0).click()
    await page.locator("[data-tick]").nth(3).click(modifiers=["Shift"])

    await expect(page.locator("[data-tick]:checked")).to_have_count(4)


async def test_all_that_match_are_acted_on_and_nothing_else_as_an_operation_with_progress(stage, visit):
    for n in range(130):
        await stage.add("send", f"u{n}", delay=3600, tags=("campaign",))
    other = await stage.add("send", "not me", delay=3600)
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs?filter=tag:campaign")
    await page.get_by_text("Act on all that match").click()
    await page.get_by_role("link", name=re.compile("^Hold all")).click()
    await expect(page.get_by_text("130").first).to_be_visible()
    await page.get_by_role("button", name=re.compile("Hold")).click()

    await page.wait_for_url("**/activity/operations/*")
    await expect(page.locator("h1 .state, .head .state").first).to_have_text("finished", timeout=20_000)
    assert await stage.states("tag:campaign") == {"held"}
    assert (await stage.admin.job(other)).state is State.PENDING


async def test_more_than_a_thousand_ask_for_their_number(stage, visit):
    await stage.app.tasks["send"].using(delay=3600).enqueue_many([(f"u{n}",) for n in range(1001)])
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs")
    await page.get_by_text("Act on all that match").click()
    await page.get_by_role("link", name=re.compile("^Cancel all")).click()
    await page.get_by_role("button", name=re.compile("^Cancel 1,001|^Cancel")).last.click()
    field = page.get_by_label(re.compile("Type 1,?001"))
    await expect(field.first).to_be_visible()

    assert await stage.states("") == {"pending"}


async def test_nothing_is_deleted_without_a_question(stage, visit):
    [job_id] = await stage.dead()
    mona = await visit(stage.server, "manager")
    page = await mona.go(place(job_id))
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Delete this job with its history?")
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert (await stage.admin.job(job_id)).state is State.DEAD

    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    await expect(page.locator("#notice")).to_be_visible()
    assert await stage.store.get([job_id]) == []


async def test_a_waiting_job_is_cancelled_from_the_list(stage, visit):
    job_id = await stage.add("send", "ann", delay=3600)
    otto = await visit(stage.server, "operator")
    page = await otto.go("/jobs")
    await page.get_by_role("button", name=re.compile("^Cancel send")).click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").last.click()

    await expect(page.locator("#notice")).to_be_visible()
    assert (await stage.admin.job(job_id)).state is State.CANCELLED


async def test_a_job_is_enqueued_by_form_and_what_was_typed_wrong_is_kept(stage, visit):
    await stage.work()
    await stage.rest()
    otto = await visit(stage.server, "operator")
    page = await otto.go("/tasks/send")
    otto.guard.expect("answer: 422 ", "status of 422")
    await page.get_by_label(re.compile("^to")).first.fill("ann@example.org")
    await page.get_by_label(re.compile("^copies")).first.fill("many")
    await page.get_by_role("button", name=re.compile("Enqueue")).click()
    await expect(page.get_by_label(re.compile("^copies")).first).to_have_value("many")
    await expect(page.get_by_label(re.compile("^to")).first).to_have_value("ann@example.org")
    await page.get_by_label(re.compile("^copies")).first.fill("3")
    await page.get_by_role("button", name=re.compile("Enqueue")).click()

    await page.wait_for_url("**/jobs/*")
    [job] = await stage.store.find(JobFilter(task="send"))
    assert job.payload == {"to": "ann@example.org", "copies": 3}


async def test_a_group_of_failures_is_retried_as_an_operation(stage, visit):
    ids = await stage.dead(3)
    otto = await visit(stage.server, "operator")
    page = await otto.go("/failures")
    await page.get_by_role("link", name="ValueError").first.click()
    await page.get_by_role("button", name="Reprocess").first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Reprocess").click()

    await page.wait_for_url("**/activity/operations/*")
    await expect(page.get_by_text("finished").first).to_be_visible(timeout=15_000)
    reviews = {(await stage.admin.dead_letter(one)).job.review for one in ids}
    assert reviews == {"reprocessing"}


async def test_a_schedule_is_paused_with_a_reason_and_run_by_hand(shop, visit):
    otto = await visit(shop, "operator")
    page = await otto.go("/schedules/nightly-export")
    await page.locator("summary", has_text="Pause").click()
    await page.get_by_label(re.compile("reason|why", re.IGNORECASE)).first.fill(
        "the warehouse counts tonight"
    )
    await page.get_by_role("button", name=re.compile("Pause")).first.click()
    await expect(page.get_by_text("the warehouse counts tonight").first).to_be_visible()
    await page.get_by_role("button", name=re.compile("Resume")).first.click()
    await expect(page.locator("#notice")).to_be_visible()
    await page.get_by_role("button", name="Run now").click()
    await page.get_by_role("dialog").get_by_role("button", name="Run now").click()

    await expect(page).to_have_url(re.compile("/jobs/"))


async def test_a_schedule_is_edited_with_a_look_at_its_next_ticks_and_reset(shop, visit):
    mona = await visit(shop, "manager")
    page = await mona.go("/schedules/nightly-export")
    await page.get_by_role("link", name="Edit").click()
    mona.guard.expect("answer: 422 ", "status of 422")
    await page.get_by_label(re.compile("^Time (the|set)")).fill("0 4 *")
    await page.get_by_role("button", name="Show what it would do").click()
    await expect(page.locator("#timing-error")).to_contain_text("instead of five")
    await expect(page.locator("#timing")).to_have_value("0 4 *")
    await page.locator("#timing").fill("17 4 * * *")
    await page.get_by_label(re.compile("^Why")).fill("the backup is late")
    await page.get_by_role("button", name="Show what it would do").click()
    await expect(page.locator("#coming tbody tr")).to_have_count(5)
    await expect(page.locator("#coming")).to_contain_text("04:17")
    await page.get_by_role("button", name="Save").click()

    await expect(page.locator("#notice")).to_contain_text("Changed time")
    await expect(page.get_by_text("the backup is late").first).to_be_visible()
    await page.get_by_role("button", name="Back to the code's word").click()
    await page.get_by_role("dialog").get_by_role("button", name="Back to the code's word").click()
    await expect(page.locator("#notice")).to_contain_text("holds again")


async def test_a_queue_is_purged_only_when_its_name_is_typed(stage, visit):
    ids = [await stage.add("send", f"u{n}", delay=3600) for n in range(3)]
    other = await stage.add("read_feed", "https://fine.example", delay=3600)
    mona = await visit(stage.server, "manager")
    page = await mona.go("/queues/mail")
    await page.get_by_role("link", name="Purge").click()
    mona.guard.expect("answer: 422 ", "status of 422")
    await page.get_by_label("Type mail to go on").fill("male")
    await page.get_by_role("button", name="Cancel 3 jobs").click()
    await expect(page.locator("#name-error")).to_contain_text("Nothing was purged")
    assert await stage.states("queue:mail") == {"pending"}
    await page.get_by_label("Type mail to go on").fill("mail")
    await page.get_by_role("button", name="Cancel 3 jobs").click()

    await page.wait_for_url("**/activity/operations/*")
    await stage.until(*ids, state=State.CANCELLED)
    assert (await stage.admin.job(other)).state is State.PENDING


async def test_a_worker_is_drained_from_its_page_and_goes_when_its_job_has_ended(stage, visit):
    finish = asyncio.Event()

    @stage.app.task(queue="mail")
    async def count_stars() -> None:
        await finish.wait()

    running = (await stage.app.tasks["count_stars"].enqueue()).id
    worker, working = await stage.work()
    await stage.until(running, state=State.RUNNING)
    otto = await visit(stage.server, "operator")
    page = await otto.go("/workers")
    state = page.locator(".head .state")
    await page.locator("tr[data-row] a").first.click()
    await expect(state).to_have_text("alive")
    await page.get_by_label("Reason to drain it").fill("deploy of v9")
    await page.get_by_role("button", name="Drain", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("Nobody takes its place.")
    await page.get_by_role("dialog").get_by_role("button", name="Drain").click()

    await expect(state).to_have_text("draining")
    await expect(page.locator(".alert")).to_contain_text("deploy of v9")
    async with asyncio.timeout(30):
        while not worker.stopping:  # it hears of it with its next beat
            await asyncio.sleep(0.05)
    later = await stage.add("send", "ann")
    finish.set()
    async with asyncio.timeout(30):
        assert await working == 0
    await page.reload()
    await expect(state).to_have_text("gone")
    assert (await stage.admin.job(running)).state is State.COMPLETED
    assert (await stage.admin.job(later)).state is State.PENDING
