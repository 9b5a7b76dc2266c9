"""What charts draw, over HTTP: slices of work and of depth."""

from __future__ import annotations

import pytest

from build import a_job, new_id
from rota._core.numbers import Ending, Minute, Total, bucket, minute_of


async def test_work_is_told_along_time(site, store):
    now = minute_of(await store.now())
    done = Total("mail", "send", Ending.COMPLETED, 3, waits={bucket(2.0): 3}, runs={bucket(0.5): 3})
    await store.note_minutes(new_id(), [Minute(now, [done, Total("slow", "send", Ending.FAILED, 1)])])
    client = await site.client("viewer")

    hour = (await client.get("/api/v1/statistics/series")).json()
    slow = (await client.get("/api/v1/statistics/series?since=6h&step=1h&queue=slow")).json()
    none = (await client.get("/api/v1/statistics/series?since=30d&task=other")).json()

    assert hour["step"] == 60
    assert len(hour["points"]) in (61, 62)
    [point] = [point for point in hour["points"] if point["completed"]]
    assert (point["completed"], point["failed"], point["dead"], point["other"]) == (3, 1, 0, 0)
    assert 1.5 < point["wait_p95"] < 2.5
    [cell] = point["runs"]
    assert cell["seconds"] <= 0.5 < cell["below"]
    assert cell["attempts"] == 3
    assert slow["step"] == 3600
    assert sum(point["failed"] for point in slow["points"]) == 1
    assert none["step"] == 21_600
    assert not any(point["failed"] for point in none["points"])


async def test_depths_are_told_along_time_and_nobody_looked_is_null(site, store):
    await store.enqueue([a_job(queue="mail"), a_job(queue="mail")])
    await store.note_depths()

    found = (await (await site.client("viewer")).get("/api/v1/statistics/depths?since=10m")).json()

    seen = [point for point in found["points"] if point["whole"] is not None]
    assert [point["queues"]["mail"]["pending"] for point in seen] == [2]
    assert seen[0]["whole"]["oldest_wait"] >= 0
    assert len(found["points"]) - len(seen) >= 9


@pytest.mark.parametrize("noun", ["series", "depths"])
@pytest.mark.parametrize(
    "asked", [{"step": "90s"}, {"since": "30d", "step": "5m"}, {"since": "7d", "step": "1m"}]
)
async def test_a_step_that_cannot_be_drawn_is_refused_with_why(site, noun, asked):
    answer = await (await site.client("viewer")).get(f"/api/v1/statistics/{noun}", params=asked)

    assert (answer.status_code, answer.json()["type"]) == (422, "urn:rota:bad-step")
    assert "step" in answer.json()["detail"]
