"""The endpoints of DOC-20: its paths, its words, its shapes; for managers only, and each tenant apart."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from build import a_job, a_session, claim, completed, failed
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.task_spec import TaskSpec

DLQ, QUEUE = "/api/jobs/admin/dlq/", "/api/jobs/admin/queue/"
PAYLOAD = {"connection_id": 456, "external_message_id": "msg_789"}
ITEM = {
    "dlq_id",
    "category",
    "job_type",
    "status",
    "idempotency_key",
    "correlation_id",
    "error_class",
    "error_message",
    "attempt_count",
    "original_created_at",
    "created_at",
}
ENDPOINTS = [
    ("GET", DLQ),
    ("GET", f"{DLQ}{UUID(int=7)}/"),
    ("POST", f"{DLQ}{UUID(int=7)}/reprocess/"),
    ("POST", f"{DLQ}{UUID(int=7)}/discard/"),
    ("GET", f"{DLQ}statistics/"),
    ("GET", QUEUE),
    ("GET", f"{QUEUE}statistics/"),
]


@pytest.fixture
def bury(store):
    """Makes a job of DOC-20 that died."""

    async def bury(tenant: str = "firm-1", **fields) -> UUID:
        fields = {
            "category": "ingestion",
            "key": "email_fetch_conn_456",
            "correlation_id": "550e8400",
        } | fields
        job = a_job("email_ingestion_fetch", PAYLOAD, tenant=tenant, **fields)
        await store.publish([TaskSpec("email_ingestion_fetch", category="ingestion")])
        await store.enqueue([job])
        jobs = await claim(store, await a_session(store, lease=1e6))
        [dead] = [one for one in jobs if one.id == job.id]
        await store.settle([failed(dead, ErrorClass.NON_RETRYABLE, "invalid payload", now=await store.now())])
        return job.id

    return bury


@pytest.mark.req("W27")
async def test_dead_letters_are_listed_in_its_words(site, store, bury):
    client = await site.client("manager")
    dead = await bury()
    await bury(key="another", category="sync")

    listed = (await client.get(DLQ)).json()
    some = (await client.get(DLQ, params={"limit": 1, "job_type": "email_ingestion_fetch"})).json()
    older = (await client.get(DLQ, params={"before": some["dlq_items"][0]["dlq_id"]})).json()

    assert set(listed) == {"dlq_items", "total_count"}
    assert [set(item) for item in listed["dlq_items"]] == [ITEM, ITEM]
    assert listed["total_count"] == some["total_count"] == 2
    [item] = older["dlq_items"]
    [job] = await store.get([dead])
    assert item["original_created_at"] == job.created_at.isoformat().replace("+00:00", "Z")
    assert item["created_at"] == job.finished_at.isoformat().replace("+00:00", "Z")
    assert {name: item[name] for name in sorted(ITEM - {"original_created_at", "created_at"})} == {
        "attempt_count": 1,
        "category": "ingestion",
        "correlation_id": "550e8400",
        "dlq_id": str(dead),
        "error_class": "non_retryable",
        "error_message": "invalid payload",
        "idempotency_key": "email_fetch_conn_456",
        "job_type": "email_ingestion_fetch",
        "status": "pending_review",
    }
    assert (await client.get(DLQ, params={"status": "discarded"})).json() == {
        "dlq_items": [],
        "total_count": 0,
    }


@pytest.mark.req("W28")
async def test_one_dead_letter_has_its_full_payload(site, bury):
    client = await site.client("manager")
    dead = await bury()

    shown = (await client.get(f"{DLQ}{dead}/")).json()

    assert set(shown) == ITEM | {"payload"}
    assert shown["payload"] == PAYLOAD


@pytest.mark.req("W29", "W34")
async def test_reprocessing_makes_a_new_job_with_the_payload_and_a_key_of_its_own(site, store, bury):
    client = await site.client("manager")
    dead = await bury()

    answer = await client.post(f"{DLQ}{dead}/reprocess/", json={"notes": "fixed at its source"})
    again = await client.post(f"{DLQ}{dead}/reprocess/", json={"notes": "a second click"})

    assert answer.status_code == 200
    done = answer.json()
    assert set(done) == {"message", "dlq_id", "new_job_id", "new_idempotency_key"}
    assert (done["message"], done["dlq_id"]) == ("DLQ item reprocessed successfully", str(dead))
    assert re.fullmatch(r"email_fetch_conn_456_retry_\d+\.\d{3}", done["new_idempotency_key"])
    [new] = await store.get([UUID(done["new_job_id"])])
    assert (new.payload, new.key, new.state) == (PAYLOAD, done["new_idempotency_key"], State.PENDING)
    assert again.json() == done
    assert (await client.get(f"{DLQ}{dead}/")).json()["status"] == "reprocessing"
    repeated = a_job(new.task, PAYLOAD, tenant="firm-1", key=new.key)
    original = a_job(new.task, PAYLOAD, tenant="firm-1", key="email_fetch_conn_456")
    assert [one.id for one in await store.enqueue([repeated, original])] == [new.id, new.id]
    actions = [row.action for row in await store.audit(dead)]
    assert actions == ["job_dlq_reprocess_success", "job_dlq_reprocess_requested"]


@pytest.mark.req("W30")
async def test_a_dead_letter_is_discarded(site, bury):
    client = await site.client("manager")
    dead = await bury()

    done = (await client.post(f"{DLQ}{dead}/discard/", json={"notes": "not needed"})).json()
    no = await client.post(f"{DLQ}{dead}/reprocess/")

    assert (done["dlq_id"], done["status"]) == (str(dead), "discarded")
    assert (await client.get(f"{DLQ}{dead}/")).json()["status"] == "discarded"
    assert no.status_code == 409


@pytest.mark.req("W31")
async def test_dead_letters_are_counted_by_status_category_and_error(site, bury):
    client = await site.client("manager")
    first = await bury()
    await bury(key="another", category="sync")
    await client.post(f"{DLQ}{first}/discard/")

    counted = (await client.get(f"{DLQ}statistics/")).json()

    assert counted["total_count"] == 2
    assert counted["by_status"] | {"pending_review": 1, "discarded": 1} == counted["by_status"]
    assert counted["by_category"] == {"ingestion": 1, "sync": 1}
    assert counted["by_error_class"] == {"non_retryable": 2}


@pytest.mark.req("W32")
async def test_the_queue_is_listed_by_its_filters_and_counted(site, store, bury):
    client = await site.client("manager")
    dead = await bury()
    running = a_job("calendar_sync_pull", category="sync", tenant="firm-1")
    await store.enqueue([running])
    [job] = await claim(store, await a_session(store, lease=1e6))
    waiting = a_job("calendar_sync_pull", category="sync", key="k-7", delay=60.0)
    await store.enqueue([waiting, a_job(held=True)])

    async def listed(**asked) -> list[tuple[str, str]]:
        answer = await client.get(QUEUE, params=asked)
        return [(item["job_id"], item["status"]) for item in answer.json()["jobs"]]

    rows = {job_id: (str(job_id), word) for job_id, word in (
        (dead, "dlq"), (running.id, "processing"), (waiting.id, "pending"),
    )}  # fmt: skip
    assert await listed() == [rows[waiting.id], rows[running.id], rows[dead]]
    assert await listed(status="processing") == [rows[running.id]]
    assert await listed(category="sync") == [rows[waiting.id], rows[running.id]]
    assert await listed(job_type="email_ingestion_fetch") == [rows[dead]]
    assert await listed(error_class="non_retryable") == [rows[dead]]
    assert await listed(idempotency_key="k-7") == [rows[waiting.id]]
    assert await listed(limit=1, before=str(waiting.id)) == [rows[running.id]]
    assert (await client.get(QUEUE, params={"status": "lost"})).status_code == 422
    await store.settle([completed(job)])
    counted = (await client.get(f"{QUEUE}statistics/")).json()
    assert counted["by_status"] == {"completed": 1, "dlq": 1, "pending": 1}
    assert counted["by_category"] == {"ingestion": 1, "sync": 2}
    assert counted["by_error_class"] == {"non_retryable": 1}


@pytest.mark.req("W35")
@pytest.mark.parametrize(("method", "path"), ENDPOINTS, ids=lambda part: part)
async def test_only_a_manager_may(site, method, path):
    stranger = await site.anonymous().request(method, path)
    operator = await (await site.client("operator")).request(method, path)
    manager = await (await site.client("manager")).request(method, path)

    assert (stranger.status_code, operator.status_code) == (401, 403)
    assert manager.status_code == (404 if str(UUID(int=7)) in path else 200)


@pytest.mark.req("W36")
async def test_a_manager_of_one_tenant_sees_and_changes_his_own_only(site, store, bury):
    mine, theirs = await bury("firm-1"), await bury("firm-2", category="sync")
    client = await site.client("manager", "firm-1")

    listed = (await client.get(DLQ)).json()
    statistics = (await client.get(f"{DLQ}statistics/")).json()
    queue = (await client.get(QUEUE)).json()
    counted = (await client.get(f"{QUEUE}statistics/")).json()

    assert [item["dlq_id"] for item in listed["dlq_items"]] == [str(mine)]
    assert (listed["total_count"], statistics["total_count"]) == (1, 1)
    assert statistics["by_category"] == counted["by_category"] == {"ingestion": 1}
    assert [item["job_id"] for item in queue["jobs"]] == [str(mine)]
    for method, path in (("GET", ""), ("POST", "reprocess/"), ("POST", "discard/")):
        assert (await client.request(method, f"{DLQ}{theirs}/{path}")).status_code == 404
    [untouched] = await store.get([theirs])
    assert untouched.review == "pending_review"
