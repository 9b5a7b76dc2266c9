"""All routes by roles by tenants: nobody knows him 401, a role too low 403, another tenant 404, the right one 2xx."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route as Served

from rota._core.actions import AuditFilter
from rota._core.task_spec import TaskSpec
from rota.errors import ConfigError
from rota.stores.memory import MemoryStore
from rota.web.api import table
from rota.web.asking import GuardedRoute
from rota.web.roles import Role, permission_of
from web_kit import Site, served, streamed
from web_routes import CANARY, EXAMPLES, Stage

GUARDED = [route for route in table() if route.permission.role is not None]
OPEN = {"system.health", "system.metrics", "session.open", "session.end", "session.link"}
"""Those for anyone; each has its own test."""


def test_every_route_names_its_verb_and_its_role():
    site = Site(MemoryStore()).asgi
    routes = [route for route in site.routes if isinstance(route, Served)]

    assert len(routes) == len(site.routes) == len(list(table())) > 20
    assert [route.path for route in routes if permission_of(route.endpoint) is None] == []
    assert all(type(route) is GuardedRoute for route in routes)


def test_only_these_are_for_anyone():
    assert {route.permission.verb for route in table() if route.permission.role is None} == OPEN


def test_no_two_routes_share_a_verb_or_an_address():
    verbs = [route.permission.verb for route in table()]
    addresses = [(route.method, route.path) for route in table()]

    assert len(set(verbs)) == len(verbs)
    assert len(set(addresses)) == len(addresses)


def test_every_route_has_an_example_here():
    assert {route.permission.verb for route in GUARDED} == set(EXAMPLES)


def test_a_route_that_names_no_role_cannot_be_made():
    async def forgotten() -> None: ...

    with pytest.raises(ConfigError, match="the route /forgotten does not say who may use it"):
        Site(MemoryStore()).asgi.router.add_api_route(
            "/forgotten", forgotten, route_class_override=GuardedRoute
        )


class Calls:
    """Calls one route as different people do, each time about something new."""

    def __init__(self, site: Site, route: Any) -> None:
        self.site, self.route = site, route
        self.stage, self.example = Stage(site.store), EXAMPLES[route.permission.verb]

    async def by(self, client: Any, *, about: str | None = None) -> Any:
        made = {} if self.example.path is None else await self.example.path(self.stage, about)
        path = self.route.path.format(**made)
        if self.example.stream:
            async with streamed(self.site.asgi, path, client.headers, self.example.params) as stream:
                return httpx.Response(stream.status, content=await stream.next())
        return await client.request(
            self.route.method,
            path,
            json=self.example.json,
            params=self.example.params,
            headers=self.example.headers,
        )


@pytest.mark.req("W35")
@pytest.mark.req("W36")
@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.permission.verb)
async def test_who_may_ask_for_it(route):
    needed = route.permission.role
    async with served(MemoryStore()) as site:
        calls = Calls(site, route)
        stranger = await calls.by(site.anonymous())
        assert stranger.status_code == 401
        assert stranger.json()["type"] == "urn:rota:unauthenticated"
        for role in Role:
            answer = await calls.by(await site.client(role))
            if role.allows(needed):
                assert answer.is_success, (role, answer.text)
            else:
                assert (answer.status_code, answer.json().get("type")) == (403, "urn:rota:role-too-low"), role
            own = await calls.by(await site.client(role, "red"), about="red")
            if not role.allows(needed):
                assert own.json().get("type") == "urn:rota:role-too-low"
            elif calls.example.scoped:
                assert own.is_success, (role, own.text)
            else:
                assert (own.status_code, own.json()["type"]) == (403, "urn:rota:out-of-scope"), own.text


@pytest.mark.req("W36")
@pytest.mark.parametrize(
    "route",
    [
        route
        for route in GUARDED
        if (example := EXAMPLES.get(route.permission.verb)) and example.path and not example.shared
    ],
    ids=lambda route: route.permission.verb,
)
async def test_what_belongs_to_another_tenant_is_not_there(route, store):
    async with served(store) as site:
        calls = Calls(site, route)
        before = await calls.stage.admin.trail(AuditFilter(limit=1000))
        answer = await calls.by(await site.client("manager", "blue"), about="red")
        after = await calls.stage.admin.trail(AuditFilter(limit=1000))

    assert answer.status_code == (404 if calls.example.scoped else 403), answer.text
    assert "red" not in answer.text
    done = [row for row in after if row not in before and row.actor not in ("stage", "tests")]
    assert done == []


LISTS = {
    "jobs.list", "dead_letters.list", "failures.list", "operations.list", "audit.list", "workers.list",
    "doc20_dlq.list", "doc20_queue.list", "statistics.tenants",
}  # fmt: skip
"""Those in whose answers a tenant finds his own things."""


@pytest.mark.req("W36")
@pytest.mark.parametrize(
    "route",
    [
        route
        for route in GUARDED
        if (example := EXAMPLES.get(route.permission.verb))
        and example.path is None
        and example.scoped
        and not example.stream  # test_events_stream.py has the tenants of streams
    ],
    ids=lambda route: route.permission.verb,
)
async def test_what_belongs_to_another_tenant_is_in_no_list_and_is_changed_by_no_sweep(route, store):
    async with served(store) as site:
        calls = Calls(site, route)
        await store.publish([TaskSpec("mail", queue="post")])
        blue, red = await site.client("manager", "blue"), await site.client("manager", CANARY)
        empty = await calls.by(blue) if route.method == "GET" else None
        jobs = await calls.stage.litter(CANARY)
        before = await store.get(jobs), await store.operations()
        answer = await calls.by(blue)
        if site.asgi.state._state.get("drivers") is not None:
            await site.asgi.state.drivers.idle()
        after = await store.get(jobs), await store.operations()
        own = await calls.by(red) if route.permission.verb in LISTS else None

    assert answer.is_success, answer.text
    assert CANARY not in answer.text
    assert empty is None or answer.json() == empty.json()
    assert after[0] == before[0]
    assert set(before[1]) <= set(after[1])
    assert own is None or CANARY in own.text


def test_the_lists_of_that_test_are_there():
    assert {verb for verb in EXAMPLES if verb.endswith(".list")} - LISTS == {
        "queues.list",  # about all tenants
        "schedules.list",
        "tasks.list",  # about code
    }


def test_the_documentation_shows_every_route_with_its_role():
    script = Path(__file__).resolve().parents[2] / "scripts" / "routes_table.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
