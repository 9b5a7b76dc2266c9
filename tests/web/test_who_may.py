"""Who is let in: tokens, whom the host application knows, and nobody from a page of another site."""

from __future__ import annotations

import asyncio

import pytest

from build import a_job
from rota._core.actions import AuditFilter
from rota._core.token import text_of
from rota.admin import Admin
from rota.stores.memory import MemoryStore
from rota.web import Role, User
from rota.web.limits import Buckets
from web_kit import HOST, served

ME = "/api/v1/session"


async def test_a_token_is_who_it_was_made_for(site):
    client = await site.client("operator", "red")
    answer = await client.get(ME)

    assert answer.json()["role"] == "operator"
    assert answer.json()["tenant"] == "red"
    assert answer.json()["name"].startswith("operator of red (token ")


@pytest.mark.req("W35")
async def test_all_that_is_no_token_is_refused_in_the_same_words(site, clock):
    token = await site.token("manager", lasts=60.0)
    revoked = await site.token("manager")
    await Admin(site.store, actor="ann").revoke_token(revoked)
    texts = [
        "",
        "Bearer",
        "Bearer x",
        "Basic YW5uOnNlY3JldA==",
        f"Bearer {token[:-1]}x",
        f"Bearer {token[:20]}",
        f"Bearer {revoked}",
    ]
    answers = [await site.anonymous(authorization=text).get("/api/v1/jobs") for text in texts]
    clock.advance(61)
    answers.append(await site.anonymous(authorization=f"Bearer {token}").get("/api/v1/jobs"))

    assert {answer.status_code for answer in answers} == {401}
    bodies = [{k: v for k, v in answer.json().items() if k != "request_id"} for answer in answers]
    assert all(body == bodies[0] for body in bodies)
    assert answers[0].headers["www-authenticate"] == 'Bearer realm="rota"'


async def test_wrong_tokens_cost_the_store_little_and_keep_no_known_one_out(memory_site, monkeypatch):
    known, new = await memory_site.token("viewer"), await memory_site.token("viewer")
    user = memory_site.anonymous(authorization=f"Bearer {known}")
    assert (await user.get(ME)).status_code == 200
    asked, look = [], memory_site.store.tokens

    async def spy(**which):
        asked.append(which)
        return await look(**which)

    async def now():
        raise AssertionError("asked for nobody")

    with monkeypatch.context() as patch:
        patch.setattr(memory_site.store, "tokens", spy)
        patch.setattr(memory_site.store, "now", now)
        patch.setattr(memory_site.asgi.state.desk.door, "_wrong", Buckets(0.001, 3))
        malformed = memory_site.anonymous(authorization="Bearer rota_x")
        assert [(await malformed.get(ME)).status_code for _ in range(5)] == [401] * 5
        assert asked == []
        guesses = [text_of("a" * 12, f"{n:040}") for n in range(5)]
        clients = [memory_site.anonymous(authorization=f"Bearer {guess}") for guess in guesses]
        answers = [(await client.get(ME)).status_code for client in clients]
        assert answers == [401] * 3 + [429] * 2
        assert len(asked) == 3
        unseen = memory_site.anonymous(authorization=f"Bearer {new}")
        assert (await unseen.get(ME)).status_code == 429

    monkeypatch.setattr(memory_site.asgi.state.desk.door, "_wrong", Buckets(0.001, 0))
    assert (await user.get(ME)).status_code == 200


async def test_a_token_that_is_revoked_counts_no_more_at_once(site):
    token = await site.token("viewer")
    client = site.anonymous(authorization=f"Bearer {token}")

    assert (await client.get(ME)).status_code == 200
    await Admin(site.store, actor="ann").revoke_token(token)
    assert (await client.get(ME)).status_code == 401


async def test_what_somebody_did_stands_in_the_audit_under_his_name(site):
    job = a_job("mail", {"to": "ann"})
    await site.store.enqueue([job])
    await (await site.client("operator")).post(f"/api/v1/jobs/{job.id}/hold", json={"reason": "not now"})
    [row] = await Admin(site.store, actor="x").trail(AuditFilter(job_id=job.id))

    assert row.actor.startswith("operator of all (token ")
    assert (row.action, row.reason) == ("hold", "not now")


async def by_header(request) -> User | None:
    await asyncio.sleep(0)
    name = request.headers.get("x-user")
    return None if name is None else User(name, Role.OPERATOR, "red")


@pytest.mark.parametrize(
    "auth",
    [by_header, lambda request: User("ann", Role.OPERATOR, "red") if "x-user" in request.headers else None],
    ids=["async", "sync"],
)
async def test_a_host_application_says_who_asks(auth):
    async with served(MemoryStore(), auth=auth) as site:
        known, unknown = site.anonymous(x_user="ann"), site.anonymous()

        assert (await known.get(ME)).json() == {"name": "ann", "role": "operator", "tenant": "red"}
        assert (await unknown.get(ME)).status_code == 401


async def test_a_token_of_ours_counts_beside_the_host_application_and_a_wrong_one_is_no_second_chance():
    async with served(MemoryStore(), auth=lambda _: User("everybody", Role.MANAGER)) as site:
        token = await site.token("viewer")

        async def name(authorization: str) -> object:
            answer = await site.anonymous(authorization=authorization).get(ME)
            return answer.json().get("name", answer.status_code)

        assert str(await name(f"Bearer {token}")).startswith("viewer of all")
        assert await name(f"Bearer {token[:-1]}") == 401
        assert await name("Bearer a.token.of.theirs") == "everybody"


@pytest.mark.parametrize("wrong", ["ann", True, ("ann", "manager", None)])
async def test_a_host_application_that_answers_something_else_lets_nobody_in(wrong, caplog):
    async with served(MemoryStore(), auth=lambda _: wrong) as site:
        answer = await site.anonymous().get(ME)

    assert answer.status_code == 500
    assert "auth must answer a rota.web.User or None" in caplog.text


async def test_a_host_application_that_fails_lets_nobody_in():
    def broken(_request):
        raise RuntimeError("its database is away")

    async with served(MemoryStore(), auth=broken) as site:
        answer = await site.anonymous().get(ME)

    assert answer.status_code == 500
    assert "database" not in answer.text


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site", "origin": f"http://{HOST}"}, False),
        ({"origin": f"http://{HOST}"}, True),
        ({"origin": f"https://{HOST}"}, True),
        ({"origin": f"http://{HOST}.evil.example"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"cookie": "their=session"}, False),
        ({"authorization": "Basic YW5uOnNlY3JldA=="}, False),
        ({}, False),
        ({"authorization": "Bearer a.token.of.theirs"}, True),
        ({"authorization": "Bearer a.token.of.theirs", "cookie": "their=session"}, False),
    ],
)
async def test_nothing_is_changed_from_a_page_of_another_site(headers, allowed):
    async with served(MemoryStore(), auth=lambda _: User("ann", Role.OPERATOR)) as site:
        client = site.anonymous()
        answer = await client.post(
            "/api/v1/jobs", json={"task": "mail", "args": {"to": "a"}}, headers=headers
        )
        listed = await client.get("/api/v1/jobs", headers=headers)

    assert answer.status_code == (201 if allowed else 403)
    assert len(listed.json()["items"]) == int(allowed)


async def test_a_token_is_sent_by_no_browser_by_itself(memory_site):
    client = await memory_site.client("operator")
    body = {"task": "mail", "args": {"to": "a"}}
    answer = await client.post("/api/v1/jobs", json=body, headers={"sec-fetch-site": "cross-site"})

    assert answer.status_code == 201
