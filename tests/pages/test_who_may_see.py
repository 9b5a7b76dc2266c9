"""All pages by roles by tenants: nobody knows him and he is led to the door, a role too low 403, another tenant 404."""

from __future__ import annotations

from typing import Any

import pytest

from page_routes import EXAMPLES
from rota.stores.memory import MemoryStore
from rota.web.api import table
from rota.web.asking import GuardedRoute
from rota.web.pages import page_table
from rota.web.roles import Role, permission_of
from web_kit import Site, served
from web_routes import Stage

GUARDED = [route for route in page_table() if route.permission.role is not None]
OPEN = {"page.static", "page.door", "page.enter", "page.leave", "page.prefer"}
"""Those for anyone; tests/pages/test_entering.py has each."""


def named(routes):
    return pytest.mark.parametrize("route", routes, ids=lambda route: route.permission.verb)


def test_every_page_names_its_verb_and_its_role_and_is_guarded():
    site = Site(MemoryStore(), pages=True).asgi

    assert len(site.routes) == len(list(table())) + len(list(page_table()))
    assert all(type(route) is GuardedRoute and permission_of(route.endpoint) for route in site.routes)
    assert {route.permission.verb for route in page_table() if route.permission.role is None} == OPEN


def test_no_two_pages_share_a_verb_or_an_address():
    routes = [*table(), *page_table()]

    assert len({route.permission.verb for route in routes}) == len(routes)
    assert len({(route.method, route.path) for route in routes}) == len(routes)


def test_every_page_has_an_example_here():
    assert {route.permission.verb for route in GUARDED} == set(EXAMPLES)


class Calls:
    """Calls one page as different people do, each time about something new."""

    def __init__(self, site: Site, route: Any) -> None:
        self.route = route
        self.stage, self.example = Stage(site.store), EXAMPLES[route.permission.verb]

    async def by(self, client: Any, *, about: str | None = None) -> Any:
        made = {} if self.example.path is None else await self.example.path(self.stage, about)
        path = self.route.path.replace(":path}", "}").format(**made)
        return await client.request(
            self.route.method,
            path,
            params=self.example.params,
            data=(self.example.form or {}) if self.route.method == "POST" else None,
        )


@pytest.mark.req("W35")
@pytest.mark.req("W36")
@named(GUARDED)
async def test_who_may_see_it(route):
    needed = route.permission.role
    async with served(MemoryStore(), pages=True) as site:
        calls = Calls(site, route)
        stranger = await calls.by(site.anonymous(accept="text/html", sec_fetch_site="same-origin"))
        assert (stranger.status_code, stranger.headers["location"].split("?")[0]) == (303, "/enter")
        for role in Role:
            for tenant in (None, "red"):
                answer = await calls.by(await site.browser(role, tenant), about=tenant)
                if not role.allows(needed):
                    assert answer.status_code == 403, (role, tenant)
                    assert f"This needs the role {needed.value}" in answer.text
                elif tenant is None or calls.example.scoped:
                    assert answer.status_code in (200, 303), (role, tenant, answer.text)
                    assert not answer.headers.get("location", "").startswith("/enter")
                else:
                    assert answer.status_code == 403, (role, tenant)


@pytest.mark.req("W36")
@named(
    [
        route
        for route in GUARDED
        if (one := EXAMPLES.get(route.permission.verb)) and one.path and not one.shared
    ]
)
async def test_what_belongs_to_another_tenant_is_not_there(route):
    async with served(MemoryStore(), pages=True) as site:
        calls = Calls(site, route)
        answer = await calls.by(await site.browser("manager", "blue"), about="red")

        assert answer.status_code in ((404,) if calls.example.scoped else (403, 404)), answer.text


@named([route for route in GUARDED if route.method == "POST"])
async def test_no_page_of_another_site_can_do_it(route):
    async with served(MemoryStore(), pages=True) as site:
        browser = await site.browser("manager")
        browser.headers["sec-fetch-site"] = "cross-site"
        answer = await Calls(site, route).by(browser)

        assert answer.status_code == 403
        assert "asked from a page of another site" in answer.text
