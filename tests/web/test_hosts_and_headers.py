"""The outer skin: headers that keep browsers tame, names that are answered to, where a server may listen."""

from __future__ import annotations

import pytest

from rota.errors import ConfigError
from rota.stores.memory import MemoryStore
from rota.web import User, refuse_open_bind
from rota.web.host import allowed_hosts
from web_kit import NEAR, served

S9 = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/jobs", "/nothing", "/api/v1/session"])
async def test_every_answer_has_the_headers(memory_site, path):
    for client in (memory_site.anonymous(), await memory_site.client()):
        answer = await client.get(path)
        refused = await client.get(path, headers={"host": "evil.example"})

        assert S9.items() <= dict(answer.headers).items()
        assert S9.items() <= dict(refused.headers).items()
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.2", ""]
)
async def test_a_name_that_is_not_ours_is_refused_whoever_asks(memory_site, host):
    client = await memory_site.client()
    answer = await client.get("/api/v1/jobs", headers={"host": host})

    assert answer.status_code == 421
    assert answer.json()["type"] == "urn:rota:wrong-host"


async def test_by_default_only_this_machines_names_are_answered_to():
    async with served(MemoryStore(), hosts=None) as site:
        client = site.anonymous()

        async def status(host: str) -> int:
            return (await client.get("/healthz", headers={"host": host})).status_code

        assert [await status(host) for host in ("localhost:8484", "127.0.0.1", "[::1]:80")] == [200, 200, 200]
        assert await status("jobs.example.org") == 421


async def test_a_host_application_that_guards_answers_to_its_own_names():
    async with served(MemoryStore(), hosts=None, auth=lambda _: User("ann")) as site:
        answer = await site.anonymous().get("/healthz", headers={"host": "anything.example"})

        assert answer.status_code == 200


async def test_names_may_have_a_star_in_front():
    async with served(MemoryStore(), hosts=["*.example.org"]) as site:
        client = site.anonymous()

        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/healthz", headers={"host": "example.org"})).status_code == 421
        assert (await client.get("/healthz", headers={"host": "badexample.org"})).status_code == 421


def test_hosts_that_cannot_be_meant_are_refused():
    with pytest.raises(ConfigError, match=r"Write \['jobs.example.org'\] for one"):
        allowed_hosts("jobs.example.org", guarded=False)
    for wrong in (["http://x"], [""], ["a*b.example"], []):
        with pytest.raises(ConfigError, match="cannot be used: write names such as"):
            allowed_hosts(wrong, guarded=False)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8", "::ffff:127.0.0.1"]
)
def test_on_this_machine_a_server_may_listen_without_anybody_at_the_door(address):
    refuse_open_bind(address, guarded=False)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.7", "jobs.example.org", ""])
def test_anywhere_else_somebody_must_be(address):
    refuse_open_bind(address, guarded=True)
    with pytest.raises(ConfigError, match="other machines can reach, and nothing says who may ask"):
        refuse_open_bind(address, guarded=False)


async def test_health_says_only_ok_to_everybody(memory_site):
    answer = await memory_site.anonymous().get("/healthz")

    assert answer.json() == {"status": "ok"}


async def test_metrics_are_for_this_machine_and_for_tokens(site):
    near = site.anonymous(address=NEAR, base="http://localhost")
    tenant = await site.client("manager", "red")

    assert "rota_workers 0.0" in (await near.get("/metrics")).text
    assert (await site.anonymous().get("/metrics")).status_code == 401
    assert (await near.get("/metrics", headers={"x-forwarded-for": "203.0.113.9"})).status_code == 401
    assert (await near.get("/metrics", headers={"host": "jobs.example.org"})).status_code == 401
    assert (await tenant.get("/metrics")).status_code == 403
    answer = await (await site.client("viewer")).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "rota_workers 0.0" in answer.text
