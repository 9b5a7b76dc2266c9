"""Who may, seen from a browser, in Chromium: wishes and scars of other dashboards, each a journey."""

from __future__ import annotations

from playwright.async_api import expect
from stage import place

from rota._core.job import State
from rota.web import Role


async def test_a_viewer_has_no_buttons_and_is_refused_all_the_same(stage, visit):
    [job_id] = await stage.dead()
    vera = await visit(stage.server, "viewer")
    vera.guard.expect("answer: 403 ")
    for path in ("/jobs", place(job_id), "/failures", "/schedules", "/tasks/send", "/activity", "/system"):
        page = await vera.go(path)
        # A view of the list is kept in his own browser; nothing else is his to change.
        assert await page.locator("#page form[method=post]:not([action*='/views/'])").count() == 0, path
    answer = await vera.page.request.post(
        f"{stage.server.base}{place(job_id)}/retry", headers={"sec-fetch-site": "same-origin"}
    )

    assert answer.status == 403
    assert (await stage.admin.job(job_id)).state is State.DEAD


async def test_somebody_of_one_tenant_sees_that_one_only(stage, visit):
    red = await stage.add("send", "red@example.org", tenant="red")
    blue = await stage.add("send", "blue@example.org", tenant="blue")
    rosa = await visit(stage.server, "operator", "red")
    for path in ("/", "/jobs"):
        page = await rosa.go(path)
        await expect(page.locator("tr[data-row]")).to_have_count(1)
        assert "blue@example.org" not in await page.content()
    await rosa.go(place(red))

    await rosa.go(place(blue), status=404)


async def test_a_token_opens_the_door_and_logging_out_closes_it(stage, visit):
    made = await stage.admin.create_token("night shift", role=Role.VIEWER)
    nobody = await visit(stage.server, None)
    nobody.guard.expect("answer: 401 ", "status of 401")
    page = await nobody.go("/jobs?filter=state:dead")
    await page.get_by_label("Token").fill("rota_wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert")).to_contain_text("not known here")
    await page.get_by_label("Token").fill(made.text)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator("#filter")).to_have_value("state:dead")

    await page.locator(".menu summary").click()
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("Token")).to_be_visible()


async def test_who_comes_from_outside_finds_the_door_in_the_middle(stage, visit):
    stranger = await visit(stage.server, None)
    page = await stranger.go("/enter")
    card = await page.locator("main").bounding_box()
    room = await page.evaluate("window.innerWidth")

    assert card["width"] <= 400
    assert abs(card["x"] + card["width"] / 2 - room / 2) < 2
