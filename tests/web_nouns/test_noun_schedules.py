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
