"""Schedules over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota._core.schedule import ScheduleSpec

PLACE = "/api/v1/schedules/nightly"


@pytest.fixture
async def nightly(store):
    template = '{"payload": {"to": "ann", "api_token": "s3cr3t-value"}}'
    await store.publish_schedules(
        [ScheduleSpec("nightly", "mail", template, "30 2 * * *", tz="Europe/Berlin")]
    )


@pytest.mark.usefixtures("nightly")
async def test_a_schedule_tells_when_it_ticks_next_and_hides_secrets(site):
    client = await site.client("viewer")

    [listed] = (await client.get("/api/v1/schedules")).json()
    shown = await client.get(PLACE)
    coming = (await client.get(f"{PLACE}/next?count=3")).json()

    assert (listed["name"], listed["status"], listed["zone"]) == ("nightly", "active", "Europe/Berlin")
    assert listed["next"] == coming[0]["due"]
    assert len(coming) == 3
    assert all("T02:30" in tick["local"] for tick in coming)
    assert "s3cr3t-value" not in shown.text
    assert (await client.get("/api/v1/schedules/nothing")).json()["type"] == "urn:rota:schedule-not-found"


@pytest.mark.usefixtures("nightly")
async def test_a_schedule_is_paused_resumed_and_run_now(site):
    client = await site.client("operator")

    paused = (await client.post(f"{PLACE}/pause", json={"reason": "maintenance"})).json()
    resumed = (await client.post(f"{PLACE}/resume")).json()
    ran = await client.post(f"{PLACE}/run")
    job = (await client.get(ran.json()["queue_url"])).json()
    told = [row["action"] for row in (await client.get(PLACE)).json()["audit"]]

    assert (paused["status"], paused["paused_because"], paused["next"]) == ("paused", "maintenance", None)
    assert paused["paused_by"].startswith("operator of all")
    assert resumed["status"] == "active"
    assert (ran.status_code, job["id"], job["kind"]) == (201, ran.json()["job_id"], "mail")
    assert told == ["run", "resume", "pause"]


@pytest.mark.usefixtures("nightly")
async def test_the_past_is_made_good_once(site, store):
    client = await site.client("manager")
    now = await store.now()
    span = {"begin": (now - timedelta(days=3)).isoformat(), "end": (now - timedelta(days=1)).isoformat()}

    planned = (await client.post(f"{PLACE}/backfill", json=span | {"dry_run": True})).json()
    done = (await client.post(f"{PLACE}/backfill", json=span)).json()
    again = (await client.post(f"{PLACE}/backfill", json=span)).json()
    future = await client.post(
        f"{PLACE}/backfill", json=span | {"end": (now + timedelta(days=1)).isoformat()}
    )

    assert planned["ticks"] == done["ticks"] == 2
    assert planned["outcomes"] == done["outcomes"] == {"enqueued": 2}
    assert again["outcomes"] == {"already": 2}
    assert (future.status_code, future.json()["type"]) == (422, "urn:rota:schedule-error")


@pytest.mark.usefixtures("nightly")
async def test_what_a_schedule_was_told_by_hand_says_where_that_came_from(site):
    client = await site.client("operator")
    for verb in ("run", "pause"):
        answer = await client.post(f"{PLACE}/{verb}", json={"reason": "now"})

        [row] = (await client.get(f"/api/v1/audit?action={verb}")).json()["items"]
        assert row["origin"] == f"203.0.113.9, request {answer.headers['x-request-id']}"


@pytest.mark.usefixtures("nightly")
async def test_a_schedule_is_edited_after_a_look_at_what_would_come_of_it(site):
    client = await site.client("manager")

    would = (await client.patch(PLACE, json={"timing": "0 4 * * *", "dry_run": True})).json()
    before = (await client.get(PLACE)).json()
    edited = (
        await client.patch(PLACE, json={"timing": "0 4 * * *", "windows": [], "cap": 3, "reason": "late"})
    ).json()
    partly = (await client.patch(PLACE, json={"timing": None, "version": edited["version"]})).json()
    audit = (await client.get(PLACE)).json()["audit"]

    assert all("T04:00" in tick["local"] for tick in would["upcoming"])
    assert (would["dry_run"], before["edited"], before["timing"]) == (True, {}, "30 2 * * *")
    assert edited["edited"] == {"timing": "0 4 * * *", "windows": [], "cap": 3}
    assert (partly["timing"], partly["edited"]) == ("30 2 * * *", {"windows": [], "cap": 3})
    assert [(row["action"], row["reason"]) for row in audit] == [("edit", None), ("edit", "late")]


@pytest.mark.usefixtures("nightly")
async def test_an_edit_that_cannot_be_meant_is_refused(site, store):
    client = await site.client("manager")
    await store.publish([task.spec() for task in site.app.tasks.values()])

    for wish, said in (
        ({}, "nothing is to be edited"),
        ({"timing": "30 2"}, "fields instead of five"),
        ({"misfire": "all"}, "overlap='allow'"),
        ({"arguments": {"copies": 2}}, "needs the argument 'to'"),
    ):
        answer = await client.patch(PLACE, json=wish)
        assert (answer.status_code, said in answer.json()["detail"]) == (422, True), wish
    late = await client.patch(PLACE, json={"cap": 5, "version": 999})

    assert (late.status_code, late.json()["type"]) == (409, "urn:rota:schedule-changed")
