"""Mounted inside another application, under any path: the same answers, and addresses that lead back here."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

import rota.web
from rota.web import Role, User
from web_kit import HOST

JOBS = "/api/v1/jobs"


def inside(kind: str, asgi, prefix: str):
    if kind == "fastapi":
        around = FastAPI()
        around.mount(prefix, asgi)
        return around
    first, _, rest = prefix.strip("/").partition("/")
    inner = Starlette(routes=[Mount(f"/{rest}", asgi)]) if rest else asgi
    return Starlette(routes=[Mount(f"/{first}", inner)])


@pytest.mark.parametrize("kind", ["fastapi", "starlette"])
@pytest.mark.parametrize("prefix", ["/jobs", "/a/b"])
async def test_addresses_lead_back_to_where_it_is_mounted(memory_site, kind, prefix):
    around = inside(kind, memory_site.asgi, prefix)
    client = memory_site.anonymous(
        asgi=around, base=f"http://{HOST}{prefix}", authorization=f"Bearer {await memory_site.token()}"
    )
    receipt = (await client.post(JOBS, json={"task": "mail", "args": {"to": "ann"}})).json()
    job = (await client.get(receipt["url"])).json()
    assert (await client.get(receipt["queue_url"])).json()["id"] == receipt["id"]

    assert receipt["url"] == f"http://{HOST}{prefix}{JOBS}/{receipt['public_id']}"
    assert receipt["queue_url"] == f"http://{HOST}{prefix}/queue/jobs/{receipt['public_id']}"
    assert job["url"] == f"http://{HOST}{prefix}{JOBS}/{receipt['id']}"
    described = (await client.get("/api/v1/openapi.json")).json()
    assert described["servers"] == [{"url": prefix}]
    missing = await client.get("/api/v1/nothing")
    assert (missing.status_code, missing.json()["type"]) == (404, "urn:rota:not-found")
    assert missing.headers["x-content-type-options"] == "nosniff"


async def test_a_session_is_for_the_prefix_only_and_a_login_link_stays_under_it(memory_site):
    around = inside("fastapi", memory_site.asgi, "/jobs")
    client = memory_site.anonymous(
        asgi=around, base="http://localhost/jobs", address=("127.0.0.1", 1), sec_fetch_site="same-origin"
    )
    opened = await client.post("/api/v1/session", json={"token": await memory_site.token()})
    linked = await client.get(rota.web.login_link(memory_site.asgi, user=User("ann", Role.VIEWER)))

    assert "Path=/jobs" in opened.headers["set-cookie"].split("; ")
    assert linked.headers["location"] == "/jobs/api/v1/session"
    assert (await client.get("/api/v1/session")).json()["name"] == "ann"


async def test_the_host_applications_own_routes_are_as_they_were(memory_site):
    around = inside("fastapi", memory_site.asgi, "/jobs")

    @around.get("/hello")
    def hello() -> str:
        return "hello"

    client = memory_site.anonymous(asgi=around)
    answer = await client.get("/hello")

    assert answer.json() == "hello"
    assert "content-security-policy" not in answer.headers
