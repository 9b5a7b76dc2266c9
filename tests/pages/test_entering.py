"""Coming in and going out: the door, the notice of an action, the theme, and what a browser sees when it may not."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest

from rota._core.ids import public_id
from rota.stores.memory import MemoryStore
from rota.web import login_link
from web_kit import HOST, NEAR, Site, served


@pytest.fixture
async def site():
    async with served(MemoryStore(), pages=True, name="staging") as found:
        yield found


def stranger(site: Site, **headers):
    return site.anonymous(accept="text/html,application/xhtml+xml", sec_fetch_site="same-origin", **headers)


async def test_a_stranger_is_led_to_the_door_and_from_there_to_where_he_wanted(site):
    client = stranger(site)

    led = await client.get("/?range=6h")
    assert (led.status_code, led.headers["location"]) == (303, "/enter?next=%2F%3Frange%3D6h")
    door = await client.get(led.headers["location"])
    assert 'name="next" value="/?range=6h"' in door.text
    entered = await client.post("/enter", data={"token": await site.token("viewer"), "next": "/?range=6h"})

    assert (entered.status_code, entered.headers["location"]) == (303, "/?range=6h")
    page = await client.get("/?range=6h")
    assert page.status_code == 200
    assert "viewer of all" in page.text


@pytest.mark.parametrize("path", ["/jobs?filter=state%3Adead", "/activity"])
async def test_a_page_that_updates_itself_after_the_session_ended_is_told_to_leave_for_the_door(site, path):
    browser = await site.browser("viewer")
    assert (await browser.get(path, headers={"hx-request": "true"})).status_code == 200
    await browser.post("/leave")

    answer = await browser.get(path, headers={"hx-request": "true"})

    assert (answer.status_code, answer.text) == (401, "")
    assert answer.headers["hx-redirect"] == (await browser.get(path)).headers["location"]
    assert answer.headers["hx-redirect"].startswith("/enter?next=%2F")


async def test_a_program_without_a_token_gets_a_document_and_no_page(site):
    answer = await site.anonymous(accept="text/html").get("/api/v1/jobs")

    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")


async def test_a_wrong_token_stays_at_the_door_and_says_so(site):
    client = stranger(site)
    answer = await client.post("/enter", data={"token": "rota_nobody", "next": "/jobs"})

    assert answer.status_code == 401
    assert "This token is not known here" in answer.text
    assert 'value="/jobs"' in answer.text
    assert "rota_nobody" not in answer.text
    assert "set-cookie" not in answer.headers


async def test_who_guesses_tokens_at_the_door_has_to_wait(site):
    client = stranger(site)
    answers = [await client.post("/enter", data={"token": f"rota_{number}"}) for number in range(8)]

    assert [answer.status_code for answer in answers][-1] == 429


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
async def test_nobody_is_sent_elsewhere_after_logging_in(site, elsewhere):
    answer = await stranger(site).post(
        "/enter", data={"token": await site.token("viewer"), "next": elsewhere}
    )

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_a_page_of_another_site_logs_nobody_in_or_out(site):
    client = site.anonymous(accept="text/html", sec_fetch_site="cross-site")
    for path, form in (
        ("/enter", {"token": await site.token("viewer")}),
        ("/leave", {}),
        ("/prefer", {"theme": "dark"}),
    ):
        answer = await client.post(path, data=form)
        assert answer.status_code == 403, path
        assert "set-cookie" not in answer.headers


async def test_logging_out_ends_the_session(site):
    browser = await site.browser("viewer")
    assert (await browser.get("/")).status_code == 200

    left = await browser.post("/leave")

    assert (left.status_code, left.headers["location"]) == (303, "/enter")
    assert (await browser.get("/")).status_code == 303


async def test_the_link_of_whoever_started_the_server_leads_to_the_overview():
    async with served(MemoryStore(), pages=True, hosts=None) as site:
        client = site.anonymous(address=NEAR, base="http://127.0.0.1", accept="text/html")
        answer = await client.get(login_link(site.asgi))

        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await client.get("/")).status_code == 200


async def test_a_theme_is_kept_in_this_browser(site):
    browser = await site.browser("viewer")
    assert 'data-theme="system"' in (await browser.get("/")).text

    answer = await browser.post("/prefer", data={"theme": "dark", "next": "/?range=15m"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/?range=15m")
    assert 'data-theme="dark"' in (await browser.get("/")).text


async def test_a_theme_that_does_not_exist_is_refused_with_those_that_do(site):
    browser = await site.browser("viewer")
    answer = await browser.post("/prefer", data={"theme": "<b>neon"})

    assert answer.status_code == 422
    assert "There is no theme &#39;&lt;b&gt;neon&#39;. Choose one of system, light, dark." in answer.text


async def test_what_does_not_exist_is_a_page_with_a_way_back(site):
    browser = await site.browser("viewer")
    answer = await browser.get("/nowhere")

    assert answer.status_code == 404
    assert "Not here" in answer.text
    assert "<main" in answer.text
    assert answer.headers["x-request-id"] in answer.text


async def test_pages_carry_the_strict_policy_and_no_inline_script_or_style(site):
    browser = await site.browser("manager")
    page = await browser.get("/")

    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "style=" not in page.text
    assert "<script>" not in page.text
    assert " on" + "click=" not in page.text


async def test_static_files_are_for_everybody_and_kept_for_ever(site):
    client = site.anonymous()
    for name, kind in (
        ("rota.css", "text/css"),
        ("rota.js", "text/javascript"),
        ("rota.svg", "image/svg+xml"),
    ):
        answer = await client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2Fapp.py", "nothing.css", "vendor/vendor.json", "%2Fetc%2Fpasswd"]
)
async def test_no_other_file_is_static(site, name):
    assert (await site.anonymous().get(f"/static/{name}")).status_code in (307, 404)


async def test_a_read_only_dashboard_makes_everybody_a_viewer():
    async with served(MemoryStore(), pages=True, read_only=True) as site:
        browser = await site.browser("manager")
        page = await browser.get("/")
        assert '<span class="dim">viewer</span>' in page.text
        job = await site.app.tasks["mail"].enqueue("ann")
        refused = await (await site.client("manager")).post(f"/api/v1/jobs/{job.id}/cancel", json={})

        assert (refused.status_code, refused.json()["type"]) == (403, "urn:rota:read-only")
        assert refused.json()["detail"] == (
            "Nothing can be changed here now: this dashboard was started to show only."
        )


async def test_the_environment_has_its_name_on_every_page_and_production_is_red(site):
    assert ">staging</span>" in (await (await site.browser()).get("/")).text
    async with served(MemoryStore(), pages=True, name="production") as red:
        assert 'class="badge hue-prod"' in (await (await red.browser()).get("/")).text


async def test_somebody_of_one_tenant_sees_an_overview_of_his_own(site):
    await site.app.tasks["mail"].using(tenant="red").enqueue("ann@red.example")
    await site.app.tasks["mail"].using(tenant="blue").enqueue("bob@blue.example")
    page = await (await site.browser("viewer", "red")).get("/")

    assert page.status_code == 200
    assert "What concerns red" in page.text
    assert page.text.count("<tr data-row>") == 1


async def test_a_range_that_does_not_exist_is_refused_with_those_that_do(site):
    answer = await (await site.browser("viewer")).get("/?range=1y")

    assert answer.status_code == 422
    assert "Choose one of 15m, 1h, 6h, 24h, 7d, 30d" in answer.text


async def test_a_form_that_is_too_large_is_refused_before_it_is_read(site):
    answer = await stranger(site).post("/enter", data={"token": "x" * 70_000})

    assert answer.status_code == 413


@pytest.mark.parametrize(("letters", "kept"), [(300, True), (2_000, False)])
async def test_whoever_looked_through_a_long_filter_can_log_in_and_choose_a_theme(site, letters, kept):
    """The address of the filter is encoded once more in the form, where a letter takes fifteen bytes."""
    client, token = stranger(site), await site.token("viewer")
    asked = "/jobs?" + urlencode({"filter": "queue:" + "\u4f60" * (letters - 6)})

    led = await client.get(asked)
    door = await client.get(led.headers["location"])
    entered = await client.post("/enter", data={"token": token, "next": asked})
    themed = await client.post("/prefer", data={"theme": "dark", "next": asked})

    assert door.status_code == 200
    assert (f'name="next" value="{asked}"' in door.text) is kept
    assert [answer.status_code for answer in (entered, themed)] == [303, 303]
    assert {answer.headers["location"] for answer in (entered, themed)} == {asked if kept else "/"}
    assert (await client.get(f"/enter?{urlencode({'next': asked})}")).status_code == 200


async def test_an_action_is_not_refused_for_the_address_to_come_back_to(site):
    browser = await site.browser("operator")
    job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")

    answer = await browser.post(f"/jobs/{job.id}/cancel", data={"next": "/jobs?filter=" + "x" * 3_000})

    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{quote(public_id(job.id))}")
    assert "is cancelled." in (await browser.get(answer.headers["location"])).text


async def test_the_host_list_holds_for_pages_too(site):
    answer = await site.anonymous(base="http://evil.example", accept="text/html").get("/enter")

    assert answer.status_code == 421
    assert HOST not in answer.text


async def test_without_https_a_form_of_our_own_page_counts_and_one_of_another_site_does_not(site):
    """Browsers leave Sec-Fetch-Site out where the address is plain HTTP on another machine."""
    browser = await site.browser("operator")
    del browser.headers["sec-fetch-site"]
    job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")

    held = await browser.post(f"/jobs/{job.id}/hold", headers={"origin": f"http://{HOST}"})
    assert held.status_code == 303
    for path in (f"/jobs/{job.id}/release", "/leave", "/prefer"):
        for origin in ("http://evil.example", "null"):
            answer = await browser.post(path, headers={"origin": origin}, data={"theme": "dark"})
            assert answer.status_code == 403, (path, origin)


async def test_browsers_tell_our_own_pages_where_a_form_came_from(site):
    page = await (await site.browser("viewer")).get("/")

    assert page.headers["referrer-policy"] == "same-origin"


async def test_secrets_in_a_reason_are_hidden_wherever_it_is_shown(site):
    browser = await site.browser("operator")
    job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")
    await browser.post(f"/jobs/{job.id}/hold", data={"reason": "password=hunter2 leaked"})

    for path in (
        f"/jobs/{job.id}",
        "/jobs/export.csv",
        "/jobs/export.json",
        "/activity",
        f"/api/v1/jobs/{job.id}",
    ):
        answer = await browser.get(path)
        assert answer.status_code == 200, path
        assert "hunter2" not in answer.text, path
        assert "leaked" in answer.text, path
