"""Saved views of the jobs page: a filter and its columns under a name, in a cookie of the browser."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator

import pytest

from build import a_job
from page_kit import PageSite, followed, paged, words
from rota.web.pages.views import BYTES, COOKIE, LONGEST, MOST


@pytest.fixture
async def site(store) -> AsyncIterator[PageSite]:
    async with paged(store) as site:
        yield site


def chips(page) -> str:
    """What stands above the filter."""
    return page.text.partition('aria-label="Saved views"')[2].partition("</nav>")[0]


def kept(client) -> list:
    text = client.cookies.get(COOKIE) or ""
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)) or "[]")


def written(value) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).decode().rstrip("=")


async def test_a_view_keeps_the_filter_and_the_columns_and_leads_back_to_them(site):
    await site.store.enqueue([a_job("mail", {"to": "ann"}), a_job("report", {"month": 2})])
    vera = await site.visitor("viewer")

    shown = await followed(
        vera, "/views/save", name=" dead   mails ", filter="task:mail tag:a&b", cols=["state", "subject"]
    )
    again = await vera.get("/jobs")
    link = chips(again).partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    opened = await vera.get(link)

    assert "Saved the view dead mails." in words(shown)
    assert "dead mails" in chips(again)
    assert link == "/jobs?filter=task%3Amail+tag%3Aa%26b&cols=state&cols=subject"
    assert 'aria-current="true"' in chips(opened)
    assert 'value="task:mail tag:a&amp;b"' in opened.text
    assert 'aria-current="true"' not in chips(again)


async def test_the_cookie_is_for_these_pages_alone_and_no_script_reads_it(site):
    vera = await site.visitor("viewer")

    answer = await vera.post("/views/save", data={"name": "mine", "filter": ""})
    [cookie] = [one for one in answer.headers.get_list("set-cookie") if one.startswith(COOKIE)]

    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))


async def test_a_name_that_is_taken_gets_the_new_view_and_it_is_said(site):
    vera = await site.visitor("viewer")
    await followed(vera, "/views/save", name="mine", filter="state:dead")

    page = await followed(vera, "/views/save", name="mine", filter="state:held")

    assert "The view mine shows this now, in place of what it showed before." in words(page)
    assert kept(vera) == [["mine", "state:held", []]]


async def test_a_view_is_deleted_and_the_last_one_takes_the_cookie_with_it(site):
    vera = await site.visitor("viewer")
    for name in ("one", "two"):
        await followed(vera, "/views/save", name=name, filter="state:dead")

    first = await followed(vera, "/views/forget", name="one")
    unknown = await followed(vera, "/views/forget", name="three")
    last = await followed(vera, "/views/forget", name="two")

    assert "Deleted the view one. No job was touched." in words(first)
    assert (chips(first).count("<a "), "two" in chips(first)) == (1, True)
    assert "No view is named 'three'" in words(unknown)
    assert chips(last) == ""
    assert COOKIE not in vera.cookies


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": "  "}, "A view needs a name."),
        ({"name": "x" * (LONGEST + 1)}, f"{LONGEST} are the most"),
        ({"name": "a\x07b"}, "A view needs a name."),
        ({"name": "mine", "cols": "password"}, "names a column that there is not"),
        ({"name": "mine", "filter": "colour:red"}, "A filter that cannot be read makes no view"),
    ],
)
async def test_what_cannot_be_a_view_is_refused_in_words(site, form, said):
    vera = await site.visitor("viewer")

    answer = await vera.post("/views/save", data={"next": "/jobs"} | form)
    page = await vera.get("/jobs")

    assert answer.status_code == 303
    assert said in words(page)
    assert COOKIE not in vera.cookies


async def test_when_there_are_twenty_or_they_are_too_long_it_is_said(site):
    vera, otto = await site.visitor("viewer"), await site.visitor("operator")
    for number in range(MOST):
        await followed(vera, "/views/save", name=f"v{number}", filter="state:dead")
    for number in range(2):
        await followed(otto, "/views/save", name=f"v{number}", filter=f"subject:{'x' * 900}")

    full = await followed(vera, "/views/save", name="one more", filter="")
    replaced = await followed(vera, "/views/save", name="v3", filter="state:held")
    long = await followed(otto, "/views/save", name="v2", filter=f"subject:{'x' * 900}")

    assert f"There are {MOST} views already" in words(full)
    assert "The view v3 shows this now" in words(replaced)
    assert len(kept(vera)) == MOST
    assert "too long together for what a browser keeps" in words(long)
    assert len(otto.cookies[COOKIE]) <= BYTES


@pytest.mark.parametrize(
    "garbage",
    [
        "%%%",
        "!" * 40,
        written(b"\xff\xfe"),
        written(b"[" * 2000),
        written({"name": "x"}),
        written([["x"], 7, None, ["x", 1, []], ["x", "", [1]], ["x", "", "state"]]),
        written([["", "", []], ["x" * 41, "", []], ["x", "colour:red", []], ["x", "", ["password"]]]),
        written([["x", "state:dead" * 400, []]]),
    ],
)
async def test_what_a_cookie_says_that_is_no_view_is_passed_over(site, garbage):
    vera = await site.visitor("viewer")
    vera.cookies.set(COOKIE, garbage)

    page = await vera.get("/jobs")

    assert page.status_code == 200
    assert chips(page) == ""


async def test_a_good_view_among_garbage_stays_and_a_hostile_name_is_only_a_name(site):
    vera = await site.visitor("viewer")
    hostile = '"><script>alert(1)</script>'
    vera.cookies.set(COOKIE, written([["x", "colour:red", []], [hostile, "state:dead", []], 3]))

    page = await vera.get("/jobs")

    assert chips(page).count("<a ") == 1
    assert hostile not in page.text
    assert "&lt;script&gt;alert(1)" in chips(page)


async def test_under_a_prefix_the_cookie_is_for_the_prefix(site):
    client = site.anonymous(authorization=f"Bearer {await site.token('viewer')}", accept="text/html")
    client._transport.root_path = "/a/b"

    answer = await client.post("/a/b/views/save", data={"name": "mine", "filter": "state:dead"})
    [cookie] = [one for one in answer.headers.get_list("set-cookie") if one.startswith(COOKIE)]

    assert "Path=/a/b" in cookie.split("; ")
    assert answer.headers["location"].startswith("/a/b/jobs?")
