"""Sessions of people with a browser: opened by a token or a link, in a cookie that other sites never see."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import rota.web
from rota import Rota
from rota._core.token import id_in
from rota.admin import Admin
from rota.errors import ConfigError
from rota.stores.memory import MemoryStore
from rota.web import Role, User, sessions
from web_kit import HOST, NEAR, served

ME = "/api/v1/session"
SAME = {"sec-fetch-site": "same-origin"}
BOTH = "a secret that two servers have, of some length"
SAME_SITE = {"sec_fetch_site": "same-origin"}


async def logged_in(site, token: str, **options):
    client = site.anonymous(**options)
    answer = await client.post(ME, json={"token": token}, headers=SAME)
    assert answer.status_code == 200, answer.text
    return client, answer


async def test_a_token_opens_a_session_that_is_what_the_token_is(site):
    client, answer = await logged_in(site, await site.token("operator", "red"))

    assert answer.json() == {"name": "operator of red", "role": "operator", "tenant": "red"}
    assert (await client.get(ME)).json()["role"] == "operator"


async def test_the_cookie_is_for_nobody_but_us(memory_site):
    token = await memory_site.token("viewer")
    _, plain = await logged_in(memory_site, token)
    _, safe = await logged_in(memory_site, token, base=f"https://{HOST}")

    said = plain.headers["set-cookie"]
    assert said.startswith("rota_session=")
    assert {"HttpOnly", "Path=/", "SameSite=strict", "Max-Age=43200"} <= set(said.split("; "))
    assert token not in said
    assert safe.headers["set-cookie"].startswith("__Host-rota_session=")
    assert "Secure" in safe.headers["set-cookie"].split("; ")


async def test_under_a_prefix_the_cookie_is_for_that_prefix_and_still_needs_tls(memory_site):
    host = Starlette(routes=[Mount("/a/jobs", memory_site.asgi)])
    transport = httpx.ASGITransport(host, client=("203.0.113.9", 40_000))
    async with httpx.AsyncClient(transport=transport, base_url=f"https://{HOST}/a/jobs") as client:
        answer = await client.post(ME, json={"token": await memory_site.token("viewer")}, headers=SAME)
        said = answer.headers["set-cookie"]

        assert said.startswith("__Secure-rota_session=")
        assert {"Secure", "Path=/a/jobs"} <= set(said.split("; "))
        assert (await client.get(ME)).status_code == 200


async def test_a_session_ends_with_its_token(site):
    token = await site.token("manager")
    client, _ = await logged_in(site, token)
    await Admin(site.store, actor="ann").revoke_token(token)

    assert (await client.get(ME)).status_code == 401


async def test_a_session_changes_things_from_our_own_pages_only(memory_site):
    client, _ = await logged_in(memory_site, await memory_site.token("operator"))
    body = {"task": "mail", "args": {"to": "ann"}}

    assert (await client.post("/api/v1/jobs", json=body, headers=SAME)).status_code == 201
    assert (await client.post("/api/v1/jobs", json=body)).status_code == 403
    foreign = {"sec-fetch-site": "cross-site"}
    assert (await client.post("/api/v1/jobs", json=body, headers=foreign)).status_code == 403


async def test_who_logs_out_is_out_also_with_a_copy_of_the_cookie(memory_site):
    client, _ = await logged_in(memory_site, await memory_site.token("viewer"))
    copy = memory_site.anonymous(cookie=f"rota_session={client.cookies['rota_session']}")
    assert (await copy.get(ME)).status_code == 200

    answer = await client.delete(ME, headers=SAME)

    assert answer.status_code == 204
    assert (await client.get(ME)).status_code == 401
    assert (await copy.get(ME)).status_code == 401


async def test_a_forged_or_foreign_cookie_is_nobodys(memory_site):
    client, _ = await logged_in(memory_site, await memory_site.token("viewer"))
    good = client.cookies["rota_session"]
    async with served(MemoryStore()) as other:
        elsewhere = other.anonymous(cookie=f"rota_session={good}")
        assert (await elsewhere.get(ME)).status_code == 401
    other_letter = "x" if good[-9] != "x" else "y"  # the last one has bits that nobody reads
    for wrong in (good[:-9] + other_letter + good[-8:], "x", "", good.split(".")[0]):
        assert (await memory_site.anonymous(cookie=f"rota_session={wrong}").get(ME)).status_code == 401


async def test_servers_with_one_secret_know_each_others_sessions():
    store = MemoryStore()
    async with served(store, secret=BOTH) as one, served(store, secret=BOTH) as two:
        client, _ = await logged_in(one, await one.token("viewer"))
        elsewhere = two.anonymous(cookie=f"rota_session={client.cookies['rota_session']}")

        assert (await elsewhere.get(ME)).status_code == 200


async def test_who_logs_out_is_out_on_every_server_with_the_secret_and_after_a_restart(store):
    options = {"secret": BOTH, "pages": True}
    async with served(store, **options) as one, served(store, **options) as two:
        token = await one.token("viewer")
        client, _ = await logged_in(one, token)
        other, _ = await logged_in(one, token)
        kept = client.cookies["rota_session"]
        copy, stays = (
            two.anonymous(cookie=f"rota_session={mine.cookies['rota_session']}", **SAME_SITE)
            for mine in (client, other)
        )
        assert (await copy.get(ME)).status_code == 200

        assert (await client.delete(ME, headers=SAME)).status_code == 204
        assert (await copy.get(ME)).status_code == 401
        assert (await copy.get("/jobs", headers={"accept": "text/html"})).status_code == 303
        assert (await copy.delete(ME)).status_code == 204  # no harm, and no second session ends by it
        assert (await stays.get(ME)).status_code == 200
    async with served(store, **options) as restarted:
        again = restarted.anonymous(cookie=f"rota_session={kept}")
        assert (await again.get(ME)).status_code == 401
    rows = await store.audit(limit=10)
    assert [row.actor for row in rows if row.action == "logged_out"] == [f"token {id_in(token)}"]


async def test_who_leaves_by_the_page_is_out_on_every_server_too(store):
    options = {"secret": BOTH, "pages": True}
    async with served(store, **options) as one, served(store, **options) as two:
        browser = await one.browser("viewer")
        copy = two.anonymous(cookie=f"rota_session={browser.cookies['rota_session']}")
        assert (await copy.get(ME)).status_code == 200
        assert (await browser.post("/leave")).status_code == 303

        assert (await copy.get(ME)).status_code == 401


@pytest.mark.parametrize("path", [ME, "/enter"])
async def test_one_token_opens_so_many_sessions(path):
    async with served(MemoryStore(), pages=True) as site:
        token = await site.token("viewer")
        client = site.anonymous(accept="text/html", **SAME_SITE)
        sent = [{"json": {"token": token}} if path == ME else {"data": {"token": token}}] * 22
        answers = [(await client.post(path, **said)).status_code for said in sent]

        assert set(answers[:20]) <= {200, 303}
        assert answers[-1] == 429


@pytest.mark.parametrize("secret", ["", "hunter2", "x" * 31])
def test_a_secret_that_can_be_guessed_is_refused(secret):
    with pytest.raises(
        ConfigError, match=f"has {len(secret)} characters, and whoever guesses it is a manager"
    ):
        rota.web.http_api(Rota(store=MemoryStore()), secret=secret)


async def test_a_session_ends_after_twelve_hours(memory_site, monkeypatch):
    client, _ = await logged_in(memory_site, await memory_site.token("viewer"))
    monkeypatch.setattr(sessions, "LASTS", -1)

    assert (await client.get(ME)).status_code == 401


async def test_a_wrong_token_opens_nothing_and_guessing_is_slow_and_stands_in_the_log(memory_site, caplog):
    client = memory_site.anonymous()
    answers = [await client.post(ME, json={"token": "rota_x"}, headers=SAME) for _ in range(7)]

    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
    assert "set-cookie" not in answers[0].headers
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"request {answer.headers['x-request-id']}: somebody at '203.0.113.9' tried to log in with what does not count"
        for answer in answers[:5]
    ]


async def test_one_who_guesses_keeps_nobody_out_at_his_address(memory_site):
    token = await memory_site.token("viewer")
    guessing = memory_site.anonymous()
    for _ in range(6):
        last = await guessing.post(ME, json={"token": "rota_x"}, headers=SAME)
    assert last.status_code == 429

    _, answer = await logged_in(memory_site, token)
    assert answer.json()["role"] == "viewer"


async def test_a_login_link_counts_whoever_guessed_before():
    async with served(MemoryStore(), hosts=None) as site:
        near = site.anonymous(address=NEAR, base="http://127.0.0.1:8484")
        guesses = [(await near.get("/login?key=guessed")).status_code for _ in range(6)]

        assert guesses == [401] * 5 + [429]
        assert (await near.get(rota.web.login_link(site.asgi))).status_code == 303


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_no_other_site_logs_anybody_in_or_out(memory_site, method):
    token = await memory_site.token("viewer")
    body = {"token": token} if method == "POST" else None
    client = memory_site.anonymous(sec_fetch_site="cross-site")

    assert (await client.request(method, ME, json=body)).status_code == 403


async def test_a_login_link_counts_once_on_this_machine():
    async with served(MemoryStore(), hosts=None) as site:
        link = rota.web.login_link(site.asgi)
        near = site.anonymous(address=NEAR, base="http://127.0.0.1:8484")
        again = site.anonymous(address=NEAR, base="http://127.0.0.1:8484")

        answer = await near.get(link)
        assert answer.status_code == 303
        assert answer.headers["location"] == ME
        assert (await near.get(ME)).json() == {"name": "local", "role": "manager", "tenant": None}
        assert (await again.get(link)).status_code == 401
        assert (await again.get("/login?key=guessed")).status_code == 401


async def test_a_login_link_is_nothing_for_other_machines():
    async with served(MemoryStore()) as site:
        link = rota.web.login_link(site.asgi, user=User("ann", Role.VIEWER))

        assert (await site.anonymous().get(link)).status_code == 401


async def test_a_login_link_is_too_old_after_ten_minutes(monkeypatch):
    links = sessions.Links()
    key = links.make(User("ann"))
    later = sessions.monotonic() + 601
    monkeypatch.setattr(sessions, "monotonic", lambda: later)

    assert links.take(key) is None
