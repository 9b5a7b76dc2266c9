"""The audit over HTTP, of a tenant among busy others."""

from __future__ import annotations

from build import a_job
from rota._core.actions import Audit
from rota.admin import scope


async def test_a_page_that_is_not_full_goes_on_when_rows_of_others_were_in_the_way(site, monkeypatch):
    monkeypatch.setattr(scope, "ROUND", 2)
    monkeypatch.setattr(scope, "PAGE_ROUNDS", 2)
    mine, theirs = a_job(tenant="red"), a_job(tenant="blue")
    await site.store.enqueue([mine, theirs])
    for job_id in (mine.id, *[theirs.id] * 9):
        await site.store.note(Audit("ann", "reveal", job_id))
    client = await site.client("viewer", "red")

    pages, cursor = [], {}
    while cursor is not None:
        page = (await client.get("/api/v1/audit", params=cursor)).json()
        pages.append([row["job_id"] for row in page["items"]])
        cursor = None if page["next"] is None else {"cursor": page["next"]}
    assert pages == [[], [], [str(mine.id)]]


async def test_the_audit_says_from_which_address_and_request_an_action_came_but_not_to_a_tenant(site):
    job = a_job(tenant="red")
    await site.store.enqueue([job])
    operator = await site.client("operator")
    answer = await operator.post(f"/api/v1/jobs/{job.id}/hold", json={"reason": "look at it"})
    whole, theirs = await site.client("viewer"), await site.client("viewer", "red")

    [row] = (await whole.get("/api/v1/audit?action=hold")).json()["items"]
    assert row["origin"] == f"203.0.113.9, request {answer.headers['x-request-id']}"
    [row] = (await theirs.get("/api/v1/audit?action=hold")).json()["items"]
    assert row["origin"] is None
