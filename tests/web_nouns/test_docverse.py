"""Docverse's view of a job, and the answers that lead there."""

from __future__ import annotations

import pytest

from build import a_job, a_session, claim, failed, partial
from rota._core.failure import ErrorClass
from rota._core.ids import public_id

COLUMNS = {
    "id",
    "public_id",
    "backend_job_id",
    "kind",
    "status",
    "phase",
    "org_id",
    "project_id",
    "build_id",
    "progress",
    "errors",
    "date_created",
    "date_started",
    "date_completed",
}


def place(job) -> str:
    return f"/queue/jobs/{public_id(job.id)}"


@pytest.mark.req("V3")
async def test_a_job_has_the_columns_of_docverse(site, store):
    client = await site.client("viewer")
    job = a_job("build_processing", {"project_id": 3, "build_id": "b-9"}, tenant="rubin", external_id="arq-1")
    await store.enqueue([job])

    queued = (await client.get(place(job))).json()
    [running] = await claim(store, await a_session(store, lease=1e6))
    active = (await client.get(place(job))).json()
    await store.settle([failed(running, ErrorClass.NON_RETRYABLE, "no such build", now=await store.now())])
    ended = (await client.get(place(job))).json()

    assert set(queued) == COLUMNS
    assert (queued["id"], queued["public_id"]) == (str(job.id), public_id(job.id))
    assert (queued["kind"], queued["backend_job_id"], queued["org_id"]) == (
        "build_processing",
        "arq-1",
        "rubin",
    )
    assert (queued["project_id"], queued["build_id"]) == (3, "b-9")
    assert [one["status"] for one in (queued, active, ended)] == ["queued", "in_progress", "failed"]
    assert (queued["date_started"], queued["date_completed"], queued["errors"]) == (None, None, [])
    assert active["date_started"] is not None
    assert ended["errors"] == [{"class": "non_retryable", "message": "no such build"}]
    assert ended["date_completed"] is not None


async def test_a_held_job_waits_and_a_partial_one_completed_with_errors(site, store):
    client = await site.client("viewer")
    some = a_job()
    await store.enqueue([some])
    [running] = await claim(store)
    await store.settle([partial(running)])
    held = a_job(held=True)
    await store.enqueue([held])

    assert (await client.get(place(held))).json()["status"] == "queued"
    assert (await client.get(place(some))).json()["status"] == "completed_with_errors"


@pytest.mark.req("V38")
async def test_what_starts_work_says_where_to_look_and_a_removed_job_is_not_there(site, stage):
    client = await site.client("manager")

    started = await client.post("/api/v1/jobs", json={"task": "mail", "args": {"to": "ann"}})
    url = started.json()["queue_url"]
    job = await client.get(f"/queue/jobs/{started.json()['public_id']}")
    await client.post(f"/api/v1/jobs/{started.json()['id']}/delete")
    gone = await client.get(f"/queue/jobs/{started.json()['public_id']}")

    assert started.status_code == 201
    assert url.startswith("http://")
    assert started.json()["public_id"] in url
    assert (job.status_code, job.json()["status"]) == (200, "queued")
    assert (gone.status_code, gone.json()["type"]) == (404, "urn:rota:job-not-found")
    assert (await client.get(url)).status_code == 404


async def test_a_mistyped_id_is_refused_and_another_tenants_is_not_there(site, stage):
    client = await site.client("viewer", "blue")
    theirs = await stage.job("red")

    assert (await client.get(f"/queue/jobs/{public_id(theirs)}")).status_code == 404
    assert (await client.get("/queue/jobs/0000-0000")).status_code == 422
