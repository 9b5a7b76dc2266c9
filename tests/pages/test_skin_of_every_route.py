"""The skin of every route, of the API and of the pages: headers, cookies, other sites, other names."""

from __future__ import annotations

import re
from typing import Any

import pytest

import page_routes
import web_routes
from rota.stores.memory import MemoryStore
from rota.web.api import table
from rota.web.headers import SECURITY
from rota.web.pages import page_table
from web_kit import Site, served

EXAMPLES: dict[str, Any] = {**web_routes.EXAMPLES, **page_routes.EXAMPLES}
OPEN_FORMS: dict[str, dict[str, Any]] = {
    "session.open": {"json": {"token": "x"}},
    "session.end": {},
    "page.enter": {"data": {"token": "x"}},
    "page.leave": {},
    "page.prefer": {"data": {"theme": "dark"}},
}
"""What anyone may send."""
STREAMS = {"events.follow"}
ALL = [route for route in (*table(), *page_table()) if route.permission.verb not in STREAMS]
CHANGES = [route for route in ALL if route.method != "GET"]
HTML_MARKS = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE)
"""What the policy forbids, so that a page would be broken that has it."""


def named(routes):
    return pytest.mark.parametrize("route", routes, ids=lambda route: route.permission.verb)


async def asked(site: Site, client: Any, route: Any, **more: Any) -> Any:
    """A good call of this route, by somebody."""
    example = EXAMPLES.get(route.permission.verb)
    sent: dict[str, Any] = OPEN_FORMS.get(route.permission.verb, {})
    made: dict[str, str] = {"name": "rota.css"} if route.permission.verb == "page.static" else {}
    if example is not None:
        made = {} if example.path is None else await example.path(web_routes.Stage(site.store), None)
        form = getattr(example, "form", None)
        sent = {"params": example.params}
        if route.method != "GET":
            sent |= {"json": example.json} if hasattr(example, "json") else {"data": form or {}}
    path = route.path.replace(":path}", "}").format(**made)
    return await client.request(route.method, path, **sent, **more)


@named(ALL)
async def test_every_answer_is_tame_in_a_browser_and_none_is_for_another_name(route):
    async with served(MemoryStore(), pages=True) as site:
        browser = await site.browser("manager")
        misled = await asked(site, browser, route, headers={"host": "evil.example"})
        known = await asked(site, browser, route)
        browser.cookies.clear()
        nobody = await asked(site, browser, route)

    assert (misled.status_code, misled.json()["type"]) == (421, "urn:rota:wrong-host")
    for answer in (known, nobody, misled):
        expected = dict(SECURITY)
        if route.permission.verb == "page.static":
            del expected["cache-control"]  # it is the same for everybody
        assert expected.items() <= dict(answer.headers).items()
        assert not {"server", "x-powered-by", "access-control-allow-origin"} & set(answer.headers)
        assert len(answer.headers["x-request-id"]) >= 32
        for cookie in answer.headers.get_list("set-cookie"):
            assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; ")), cookie
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert not HTML_MARKS.search(answer.text)


@named(CHANGES)
async def test_no_page_of_another_site_changes_anything(route):
    async with served(MemoryStore(), pages=True) as site:
        browser = await site.browser("manager")
        del browser.headers["sec-fetch-site"]  # an old browser, which names the origin only
        for origin in ("https://evil.example", "null"):
            headers = {"origin": origin, "accept": "application/json"}
            answer = await asked(site, browser, route, headers=headers)
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:rota:foreign-site")
            assert "set-cookie" not in answer.headers
        if route.permission.verb not in OPEN_FORMS:
            silent = await asked(site, browser, route)
            assert silent.status_code == 403  # a cookie, and nothing says from where: it changes nothing
