"""Dead letters, failures and bulk operations over HTTP."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from rota._core.actions import AuditFilter
from rota._core.job import State
from rota.admin import Admin, operations
from rota.web import driving

LETTERS = "/api/v1/dead-letters"


async def drives(site) -> None:
    """Until the server drives no operation any more."""
    await site.asgi.state.drivers.idle()


async def test_dead_letters_are_listed_in_pages_and_shown_with_their_attempts(site, stage):
    client = await site.client("viewer")
    ids = [str(await stage.dead(None)) for _ in range(3)]

    first = (await client.get(LETTERS, params={"limit": 2, "task": "mail"})).json()
    rest = (await client.get(LETTERS, params={"limit": 2, "task": "mail", "cursor": first["next"]})).json()
    shown = (await client.get(f"{LETTERS}/{ids[0]}")).json()

    assert [one["job"]["id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None
    assert (shown["review"], shown["job"]["error_message"]) == ("pending_review", "no such address")
    assert [attempt["message"] for attempt in shown["attempts"]] == ["no such address"]
    assert (await client.get(LETTERS, params={"review": "discarded"})).json()["items"] == []


async def test_a_dead_letter_is_done_again_with_edits_and_tells_where_the_new_job_is(site, stage, store):
    client = await site.client("operator")
    dead = await stage.dead("acme")

    done = (
        await client.post(f"{LETTERS}/{dead}/reprocess", json={"notes": "typo", "edits": {"to": "bob"}})
    ).json()
    again = (await client.post(f"{LETTERS}/{dead}/reprocess")).json()
    shown = (await client.get(f"{LETTERS}/{dead}")).json()
    [new] = await store.get([UUID(shown["new_job"]["id"])])

    assert (done["before"], done["after"], done["already"]) == ("pending_review", "reprocessing", False)
    assert new.payload == {"to": "bob"}
    assert (await client.get(done["queue_url"])).json()["id"] == done["new_job"]
    assert (again["new_job"], again["already"]) == (done["new_job"], True)
    assert shown["notes"] == "typo"
    assert [row["action"] for row in shown["audit"]] == [
        "job_dlq_reprocess_success",
        "job_dlq_reprocess_requested",
    ]


async def test_a_dead_letter_is_acknowledged_then_discarded_and_no_further(site, stage):
    client = await site.client("operator")
    dead = await stage.dead(None)

    known = (await client.post(f"{LETTERS}/{dead}/acknowledge", json={"notes": "ticket 12"})).json()
    stale = await client.post(f"{LETTERS}/{dead}/discard", json={"version": 1})
    gone = (await client.post(f"{LETTERS}/{dead}/discard")).json()
    no = await client.post(f"{LETTERS}/{dead}/acknowledge")

    assert (known["after"], gone["after"]) == ("acknowledged", "discarded")
    assert (stale.status_code, stale.json()["type"]) == (409, "urn:rota:job-changed")
    assert (no.status_code, no.json()["type"]) == (409, "urn:rota:move-refused")


async def test_a_job_that_is_not_dead_is_no_dead_letter(site, stage):
    client = await site.client("operator")
    waiting = await stage.job(None)

    assert (await client.get(f"{LETTERS}/{waiting}")).status_code == 409


async def test_a_group_of_failures_is_reprocessed_as_an_operation_that_can_be_followed(site, stage, store):
    client = await site.client("operator")
    letters = [await stage.dead(None) for _ in range(3)]

    [group] = (await client.get("/api/v1/failures")).json()
    place = f"/api/v1/failures/{group['fingerprint']}"
    counted = (await client.post(f"{place}/reprocess", json={"dry_run": True})).json()
    begun = await client.post(f"{place}/reprocess", json={"notes": "mail server is back"})
    await drives(site)
    operation = (await client.get(begun.json()["url"])).json()
    shown = (await client.get(place)).json()

    assert (group["letters"], group["message"], group["trend"]) == (3, "no such address", "new")
    assert (counted["id"], counted["total"]) == (None, 3)
    assert begun.status_code == 202
    assert (operation["state"], operation["done"], operation["reason"]) == (
        "finished",
        3,
        "mail server is back",
    )
    assert {letter["review"] for letter in shown["newest"]} == {"reprocessing"}
    assert {job.state for job in await store.get(letters)} == {State.DEAD}
    assert (await client.get("/api/v1/failures")).json() == []
    assert (await client.get("/api/v1/failures/nothing")).json()["type"] == "urn:rota:group-not-found"


async def test_the_beginning_of_a_group_means_all_of_it(site, stage):
    client = await site.client("operator")
    for _ in range(3):
        await stage.dead(None)

    [group] = (await client.get("/api/v1/failures")).json()
    begun = await client.post(f"/api/v1/failures/{group['fingerprint'][:6]}/acknowledge")
    await drives(site)
    operation = (await client.get(begun.json()["url"])).json()

    assert (begun.json()["total"], operation["done"]) == (3, 3)
    assert operation["wanted"]["group"] == group["fingerprint"]


async def test_an_operation_is_stopped_and_resumed(site, stage):
    client = await site.client("operator")
    for _ in range(3):
        await stage.dead(None)

    slow = {"verb": "acknowledge", "which": {"task": "mail"}, "rate": 0.01}
    begun = (await client.post("/api/v1/operations", json=slow)).json()
    place = f"/api/v1/operations/{begun['id']}"
    stopped = (await client.post(f"{place}/stop", json={"reason": "too early"})).json()
    listed = (await client.get("/api/v1/operations")).json()
    await site.asgi.state.drivers.close()

    assert (begun["total"], stopped["state"]) == (3, "stopped")
    assert [one["id"] for one in listed] == [begun["id"]]
    resumed = await client.post(f"{place}/resume")
    assert (resumed.status_code, resumed.json()["state"]) == (202, "running")
    await site.asgi.state.drivers.close()
    assert (await client.get(place)).json()["state"] == "stopped"


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({"verb": "retry"}, 422),
        ({"verb": "acknowledge", "which": {"colour": "red"}}, 422),
        ({"verb": "acknowledge", "which": {"reviews": ["resolved"]}}, 422),
        ({"verb": "acknowledge", "rate": 0}, 422),
        ({"verb": "acknowledge", "rate": 1e-300}, 422),
    ],
)
async def test_an_operation_that_makes_no_sense_is_not_begun(site, wish, status):
    client = await site.client("operator")

    assert (await client.post("/api/v1/operations", json=wish)).status_code == status
    assert (await client.get("/api/v1/operations")).json() == []


async def test_one_caller_has_so_many_operations_going_on(site, stage, monkeypatch):
    monkeypatch.setattr(driving, "DRIVEN_EACH", 2)
    for _ in range(20):  # more than they do at once, so that none of them ends
        await stage.dead(None)
    ann, bob = await site.client("operator"), await site.client("operator")
    slow = {"verb": "acknowledge", "rate": 0.01}

    begun = await asyncio.gather(*(ann.post("/api/v1/operations", json=slow) for _ in range(3)))
    refused = await ann.post("/api/v1/operations", json=slow)
    listed = (await ann.get("/api/v1/operations")).json()
    resumed = await ann.post(f"/api/v1/operations/{listed[0]['id']}/resume")

    assert sorted(answer.status_code for answer in begun) == [202, 202, 429]
    assert (refused.status_code, refused.json()["type"]) == (429, "urn:rota:too-many-operations")
    assert (resumed.status_code, len(listed)) == (429, 2)
    assert (await ann.post("/api/v1/operations", json=slow | {"dry_run": True})).status_code == 202
    assert (await bob.post("/api/v1/operations", json=slow)).status_code == 202
    await site.asgi.state.drivers.close()
    assert (await ann.post("/api/v1/operations", json={"verb": "acknowledge"})).status_code == 202
    await drives(site)


@pytest.mark.parametrize("tenant", [None, "red"])
async def test_an_operation_ends_with_the_token_that_began_or_resumed_it(
    site, stage, store, monkeypatch, tenant
):
    monkeypatch.setattr(driving, "TRUST", 0.05)
    monkeypatch.setattr(operations, "LOOK_EVERY", 0.05)
    for _ in range(3):
        await stage.dead(tenant)
    slow = {"verb": "acknowledge", "rate": 0.01}
    mona = Admin(store, actor="mona")

    async def revoked_after(method: str) -> tuple[str, list[str | None]]:
        """The operation, and why it was stopped so far. What it did in that moment may be told after that."""
        token = await site.token("operator", tenant)
        client = site.anonymous(authorization=f"Bearer {token}")
        answer = await client.post(f"/api/v1/operations{method}", json=None if method else slow)
        assert answer.status_code == 202, answer.text
        await mona.revoke_token(token, reason="laptop lost")
        async with asyncio.timeout(10):
            await drives(site)
        rows = await mona.trail(AuditFilter(about=f"operation:{answer.json()['id']}"))
        return answer.json()["id"], [row.reason for row in rows if row.action == "operation_stopped"]

    begun, once = await revoked_after("")
    resumed, twice = await revoked_after(f"/{begun}/resume")

    assert begun == resumed
    assert (once, twice) == (["its token counts no more"], ["its token counts no more"] * 2)
    assert (await mona.operation(UUID(begun))).state == "stopped"


async def test_an_operation_goes_on_when_its_beginner_logs_out(site, stage, store, monkeypatch):
    monkeypatch.setattr(driving, "TRUST", 0.01)
    for _ in range(2):
        await stage.dead(None)
    browser = site.anonymous(sec_fetch_site="same-origin")
    await browser.post("/api/v1/session", json={"token": await site.token("operator")})
    begun = await browser.post("/api/v1/operations", json={"verb": "acknowledge", "rate": 4})
    await browser.delete("/api/v1/session")
    async with asyncio.timeout(10):
        await drives(site)

    assert (await Admin(store, actor="mona").operation(UUID(begun.json()["id"]))).state == "finished"


async def test_a_tenant_operates_on_his_own_only(site, stage, store):
    mine, theirs = await stage.dead("acme"), await stage.dead("umbrella")
    client = await site.client("operator", "acme")

    begun = (await client.post("/api/v1/operations", json={"verb": "discard"})).json()
    await drives(site)

    assert (begun["total"], (await client.get(begun["url"])).json()["done"]) == (1, 1)
    reviews = {job.id: job.review for job in await store.get([mine, theirs])}
    assert reviews == {mine: "discarded", theirs: "pending_review"}
    stranger = await site.client("manager", "umbrella")
    assert (await stranger.get(begun["url"])).status_code == 404
    assert (await stranger.get("/api/v1/operations")).json() == []
