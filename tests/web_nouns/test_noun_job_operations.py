"""Operations on jobs over HTTP: begun with the number that was shown, driven here, steered like the others."""

from __future__ import annotations

import pytest

from rota._core.job import State
from rota.web.driving import drivers_of

JOBS, OPERATIONS = "/api/v1/jobs/operations", "/api/v1/operations"


async def drives(site) -> None:
    await drivers_of(site.asgi).idle()


async def test_all_jobs_that_match_are_done_and_it_is_told_how_far(site, stage, store):
    jobs = [await stage.job(None) for _ in range(3)]
    client = await site.client("operator")
    wish = {"verb": "hold", "filter": "task:mail", "reason": "flood"}

    counted = await client.post(JOBS, json=wish | {"dry_run": True})
    begun = await client.post(JOBS, json=wish | {"expected": counted.json()["total"]})
    await drives(site)
    shown = (await client.get(begun.json()["url"])).json()

    assert (counted.json()["id"], counted.json()["what"]) == (None, "would hold 3 jobs")
    assert begun.status_code == 202
    assert (shown["state"], shown["done"], shown["total"], shown["capped"]) == ("finished", 3, 3, False)
    assert (shown["what"], shown["wanted"]["filter"]) == ("hold 3 jobs (task:mail)", "task:mail")
    assert {job.state for job in await store.get(jobs)} == {State.HELD}
    assert [one["id"] for one in (await client.get(OPERATIONS)).json()] == [shown["id"]]
    rows = (await client.get("/api/v1/audit", params={"about": f"operation:{shown['id']}"})).json()["items"]
    assert [row["action"] for row in rows] == ["hold"] * 3 + ["operation_begun"]


async def test_when_many_more_match_than_were_shown_nothing_is_begun(site, stage):
    for _ in range(12):
        await stage.job(None)
    client = await site.client("operator")

    refused = await client.post(JOBS, json={"verb": "cancel", "filter": "", "expected": 1})

    assert (refused.status_code, refused.json()["type"]) == (409, "urn:rota:grown")
    assert (refused.json()["matched"], refused.json()["capped"], refused.json()["expected"]) == (12, False, 1)
    assert (await client.get(OPERATIONS)).json() == []


async def test_only_a_manager_deletes_or_goes_on_deleting(site, stage, store):
    dead = [await stage.dead(None) for _ in range(3)]
    waits = await stage.job(None)
    operator, manager = await site.client("operator"), await site.client("manager")
    wish = {"verb": "delete", "filter": "task:mail", "expected": 3, "rate": 0.01}

    refused = await operator.post(JOBS, json=wish)
    begun = (await manager.post(JOBS, json=wish)).json()
    stopped = await operator.post(f"{OPERATIONS}/{begun['id']}/stop")
    await drivers_of(site.asgi).close()
    resumed = await operator.post(f"{OPERATIONS}/{begun['id']}/resume")

    assert (refused.status_code, refused.json()["needed"]) == (403, "manager")
    assert (stopped.status_code, resumed.status_code) == (200, 403)
    assert (await manager.post(JOBS, json=wish | {"rate": None})).status_code == 202
    await drives(site)
    assert await store.get(dead) == []
    assert len(await store.get([waits])) == 1
    assert (await manager.post(f"{OPERATIONS}/{begun['id']}/resume")).status_code == 202
    await drivers_of(site.asgi).close()


@pytest.mark.parametrize(
    ("wish", "kind"),
    [
        ({"verb": "hold", "filter": ""}, "expected-missing"),
        ({"verb": "kill", "filter": "", "expected": 1}, "invalid"),
        ({"verb": "hold", "filter": "colour:red", "expected": 1}, "bad-filter"),
        ({"verb": "delete", "filter": "state:pending", "expected": 1}, "bad-filter"),
        ({"verb": "hold", "filter": "args.password:hunter2", "expected": 1}, "bad-filter"),
        ({"verb": "hold", "filter": "", "expected": -1}, "invalid"),
        ({"verb": "hold", "filter": "", "expected": 1, "rate": 1e-9}, "invalid"),
    ],
)
async def test_what_makes_no_sense_is_not_begun(site, wish, kind):
    client = await site.client("manager")
    answer = await client.post(JOBS, json=wish)

    assert (answer.status_code, answer.json()["type"]) == (422, f"urn:rota:{kind}")
    assert (await client.get(OPERATIONS)).json() == []


async def test_a_tenant_operates_on_his_own_jobs_only(site, stage, store):
    mine, theirs = await stage.job("acme"), await stage.job("umbrella")
    client = await site.client("operator", "acme")

    begun = (await client.post(JOBS, json={"verb": "hold", "filter": "", "expected": 1})).json()
    await drives(site)
    foreign = await client.post(JOBS, json={"verb": "hold", "filter": "tenant:umbrella", "expected": 1})

    assert (await client.get(begun["url"])).json()["done"] == 1
    assert [job.state for job in await store.get([mine, theirs])] == [State.HELD, State.PENDING]
    assert foreign.status_code == 403
    stranger = await site.client("manager", "umbrella")
    assert (await stranger.get(begun["url"])).status_code == 404


async def test_a_queue_is_purged_by_who_types_its_name_again(site, stage, store):
    waits = [await stage.job(None, queue="post") for _ in range(2)]
    other = await stage.job(None, queue="slow")
    client, place = await site.client("manager"), "/api/v1/queues/post/purge"

    counted = await client.post(place, json={"dry_run": True})
    nameless, misnamed = await client.post(place, json={}), await client.post(place, json={"name": "slow"})
    before = {job.state for job in await store.get(waits)}
    begun = await client.post(place, json={"name": "post", "expected": 2, "reason": "sent by hand"})
    await drives(site)
    shown = (await client.get(begun.json()["url"])).json()

    assert (counted.json()["id"], counted.json()["total"]) == (None, 2)
    assert {(one.status_code, one.json()["type"]) for one in (nameless, misnamed)} == {
        (422, "urn:rota:not-the-name")
    }
    assert (begun.status_code, shown["state"], shown["done"]) == (202, "finished", 2)
    assert before == {State.PENDING}
    assert {job.state for job in await store.get(waits)} == {State.CANCELLED}
    assert [job.state for job in await store.get([other])] == [State.PENDING]
