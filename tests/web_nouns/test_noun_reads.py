"""Queues, tasks, workers, statistics and the audit over HTTP."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from uuid import uuid4

import pytest

from build import a_job, claim
from rota._core.suspects import Crash
from rota._core.task_spec import TaskSpec
from rota.stores.contract import SessionStart

NOWHERE = "/api/v1/{}/nowhere"


async def test_a_queue_shows_what_waits_in_it_and_who_serves_it(site, store):
    client = await site.client("viewer")
    await store.enqueue([a_job(queue="mail"), a_job(queue="mail", delay=60.0), a_job(queue="slow")])
    await store.open_session(
        SessionStart(uuid4(), "web-1", 7, {"general": 5}, ("email",), queues={"general": ("mail",)}),
        lease=60.0,
    )

    queues = {queue["name"]: queue for queue in (await client.get("/api/v1/queues")).json()}
    mail = (await client.get("/api/v1/queues/mail?since=15m")).json()

    assert (queues["mail"]["pending"], queues["mail"]["slots"], queues["slow"]["slots"]) == (2, 5, 0)
    assert mail["oldest_wait"] >= 0
    assert mail["work"]["attempts"] == 0
    assert (await client.get(NOWHERE.format("queues"))).json()["type"] == "urn:rota:queue-not-found"


@pytest.mark.parametrize("since", ["0s", "91 days", "soon", "nan", "1e400"])
async def test_a_stretch_of_time_that_makes_no_sense_is_refused(site, since):
    answer = await (await site.client("viewer")).get("/api/v1/statistics", params={"since": since})

    assert (answer.status_code, answer.json()["type"]) == (422, "urn:rota:invalid")


async def test_tasks_are_listed_with_their_schema_and_a_parked_one_is_released(site, store):
    client = await site.client("operator")
    await store.publish(
        [TaskSpec("mail", queue="post", schema_json='{"required": ["to"]}'), TaskSpec("bomb")]
    )
    await store.enqueue([a_job("bomb")])
    await store.note_crash(Crash("bomb", "v1", uuid4(), 2, "killed by SIGSEGV"), limit=1, within=3600.0)

    names = [task["name"] for task in (await client.get("/api/v1/tasks")).json()]
    mail = (await client.get("/api/v1/tasks/mail")).json()
    bomb = (await client.get("/api/v1/tasks/bomb")).json()
    released = await client.post("/api/v1/tasks/bomb/release", json={"reason": "fixed"})
    again = await client.post("/api/v1/tasks/bomb/release")

    assert names == ["bomb", "mail"]
    assert (mail["queue"], mail["arguments"], mail["parked"]) == ("post", {"required": ["to"]}, [])
    assert [parked["what"] for parked in bomb["parked"]] == ["killed by SIGSEGV"]
    assert (released.status_code, released.json()["task"]) == (200, "bomb")
    assert (again.status_code, again.json()["type"]) == (409, "urn:rota:task-not-parked")
    assert (await client.get(NOWHERE.format("tasks"))).status_code == 404


async def test_a_worker_shows_what_it_runs_and_goes_from_the_list_when_it_ends(site, store):
    client = await site.client("viewer")
    session = SessionStart(uuid4(), "web-1", 7, {"general": 5}, ("email",), code_version="v9")
    await store.open_session(session, lease=60.0)
    await store.enqueue([a_job(), a_job(delay=60.0)])
    [held] = await claim(store, session.id)

    [worker] = (await client.get("/api/v1/workers")).json()
    shown = (await client.get(f"/api/v1/workers/{session.id}")).json()
    await store.end_session(session.id)

    assert (worker["host"], worker["pid"], worker["lanes"], worker["alive"]) == (
        "web-1",
        7,
        {"general": 5},
        True,
    )
    assert [job["id"] for job in shown["running"]] == [str(held.id)]
    assert (await client.get("/api/v1/workers")).json() == []
    assert [worker["alive"] for worker in (await client.get("/api/v1/workers?ended=true")).json()] == [False]
    assert (await client.get(f"/api/v1/workers/{uuid4()}")).json()["type"] == "urn:rota:worker-not-found"


async def test_statistics_count_jobs_by_state(site, store, stage):
    await stage.dead("acme")
    await store.enqueue([a_job(delay=60.0), a_job(delay=60.0)])

    whole = (await (await site.client("viewer")).get("/api/v1/statistics?since=1h")).json()
    mine = await (await site.client("viewer", "acme")).get("/api/v1/statistics/tenants")

    assert (whole["jobs"]["pending"], whole["jobs"]["dead"], whole["capped"]) == (2, 1, False)
    assert whole["unknown"] == {}
    assert mine.status_code == 200


async def test_the_audit_is_read_in_pages_that_neither_repeat_nor_leave_out(site, stage):
    client = await site.client("operator")
    for _ in range(5):
        job_id = await stage.job(None)
        await client.post(f"/api/v1/jobs/{job_id}/hold", json={"reason": "look at it"})

    first = (await client.get("/api/v1/audit?action=hold&limit=2")).json()
    second = (await client.get(f"/api/v1/audit?action=hold&limit=2&cursor={first['next']}")).json()
    third = (await client.get(f"/api/v1/audit?action=hold&limit=2&cursor={second['next']}")).json()

    seen = [row["job_id"] for page in (first, second, third) for row in page["items"]]
    assert (len(seen), len(set(seen)), third["next"]) == (5, 5, None)
    assert {row["actor"].partition(" (")[0] for row in first["items"]} == {"operator of all"}
    assert {row["reason"] for row in first["items"]} == {"look at it"}
    assert (await client.get("/api/v1/audit?cursor=AAAA")).status_code == 422


@pytest.mark.parametrize("place", ["100000 2030-01-01T00:00:00+00:00", "-1", "9" * 30, "", "1.5", "\u0661"])
async def test_a_cursor_made_by_hand_reads_no_more_of_the_audit_than_a_page(site, stage, monkeypatch, place):
    client = await site.client("viewer")
    limits, trail = [], site.store.audit_trail

    async def spy(wanted):
        limits.append(wanted.limit)
        return await trail(wanted)

    monkeypatch.setattr(site.store, "audit_trail", spy)
    stamp = sha256(json.dumps(["/api/v1/audit", None, []]).encode()).hexdigest()[:16]
    cursors = [urlsafe_b64encode(json.dumps([stamp, text]).encode()).decode() for text in (place, "7" * 18)]
    made, high = [await client.get("/api/v1/audit", params={"limit": 1, "cursor": c}) for c in cursors]

    assert (made.status_code, made.json()["type"]) == (422, "urn:rota:bad-cursor")
    assert (high.status_code, limits) == (200, [2])


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/audit?actor=%00",
        "/api/v1/dead-letters?task=a%00b",
        "/api/v1/failures/%00",
        "/api/v1/schedules/%00",
        "/api/v1/jobs?filter=queue:%00",
        "/api/jobs/admin/queue/?job_type=%00",
    ],
)
async def test_what_no_text_can_hold_is_refused_before_a_store_is_asked(site, address):
    answer = await (await site.client("manager")).get(address)

    assert (answer.status_code, answer.json()["type"]) == (400, "urn:rota:bad-text")


@pytest.mark.parametrize(
    ("words", "said"),
    [("status:dead", "Did you mean state:dead?"), ("created>soon", "neither a length of time")],
)
async def test_a_wrong_word_of_a_filter_is_told_with_what_to_write(site, words, said):
    answer = await (await site.client("viewer")).get("/api/v1/jobs", params={"filter": words})

    assert answer.status_code == 422
    assert said in answer.json()["detail"]


async def test_a_worker_is_drained_and_stopped_and_one_that_ended_is_not(site, store):
    client = await site.client("operator")
    session = SessionStart(uuid4(), "web-1", 7, {"general": 5}, ("email",), memory=80_000_000, hears=True)
    await store.open_session(session, lease=60.0)
    place = f"/api/v1/workers/{session.id}"

    [before] = (await client.get("/api/v1/workers")).json()
    drained = (await client.post(f"{place}/drain", json={"reason": "deploy"})).json()
    stopped = (await client.post(f"{place}/stop")).json()
    drained_again = await client.post(f"{place}/drain")
    await store.end_session(session.id)
    ended = await client.post(f"{place}/stop")
    nobody = await client.post(f"/api/v1/workers/{uuid4()}/stop")

    assert (before["state"], before["memory"], before["order"]) == ("alive", 80_000_000, None)
    assert (drained["state"], drained["order"]["verb"], drained["order"]["reason"]) == (
        "draining",
        "drain",
        "deploy",
    )
    assert drained["order"]["by"].startswith("operator of all")
    assert (stopped["state"], stopped["alive"]) == ("stopping", True)
    for refused, why in ((drained_again, "a stop cannot be taken back"), (ended, "it ended at")):
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:rota:order-refused")
        assert why in refused.json()["detail"]
    assert (nobody.status_code, nobody.json()["type"]) == (404, "urn:rota:worker-not-found")
