"""Handing jobs in over HTTP: checked before they are stored, once for each key, for one's own tenant."""

from __future__ import annotations

import pytest

from build import a_job, read
from rota import Queue, Rota
from rota._core.ids import parse_id
from rota._core.task_spec import TaskSpec
from rota.stores.memory import MemoryStore
from web_kit import served

JOBS = "/api/v1/jobs"
MAIL = {"task": "mail", "args": {"to": "ann"}}


@pytest.mark.req("D33")
async def test_a_job_is_handed_in_and_can_be_followed(site):
    client = await site.client("operator")
    answer = await client.post(JOBS, json=MAIL)
    receipt = answer.json()
    job = await read(site.store, parse_id(receipt["id"]))

    assert answer.status_code == 201
    assert (job.task, job.payload, job.queue) == ("mail", {"to": "ann"}, "post")
    assert job.created_by.startswith("operator of all (token ")
    assert (receipt["created"], receipt["stored"]) == (True, "created")
    assert answer.headers["location"] == receipt["url"]
    assert (await client.get(receipt["url"])).json()["id"] == receipt["id"]
    assert (await client.get(receipt["queue_url"])).json()["id"] == receipt["id"]


@pytest.mark.req("D33")
async def test_the_options_are_those_of_using(site):
    client = await site.client("operator")
    options = {
        "queue": "slow",
        "priority": 7,
        "delay": "5m",
        "tenant": "red",
        "subject": "site:1",
        "correlation_id": "c-1",
        "tags": ["night"],
        "deadline": 3600,
        "timeout": "90s",
        "max_attempts": 2,
        "external_id": "x-1",
        "serial": "site:1",
        "unique": {"key": "u", "until": "finished", "on_duplicate": "reject"},
    }
    answer = await client.post(JOBS, json=MAIL | {"options": options})
    job = await read(site.store, parse_id(answer.json()["id"]))

    assert (job.queue, job.priority, job.tenant, job.subject) == ("slow", 7, "red", "site:1")
    assert (job.correlation_id, job.tags, job.timeout, job.max_attempts) == ("c-1", ("night",), 90.0, 2)
    assert (job.external_id, job.gate) == ("x-1", "serial:red:site:1")
    assert (job.run_at - job.created_at).total_seconds() == 300
    again = await client.post(JOBS, json=MAIL | {"options": options})
    assert (again.status_code, again.json()["type"]) == (409, "urn:rota:not-unique")
    assert again.json()["job_id"] == answer.json()["id"]


@pytest.mark.req("D33")
async def test_a_key_makes_it_safe_to_repeat_and_other_arguments_are_a_conflict_that_names_the_job(site):
    client = await site.client("operator")
    key = {"idempotency-key": "order:7"}
    first = await client.post(JOBS, json=MAIL, headers=key)
    again = await client.post(JOBS, json=MAIL, headers=key)
    other = await client.post(JOBS, json=MAIL | {"args": {"to": "bob"}}, headers=key)

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json()["id"] == first.json()["id"]
    assert (again.json()["created"], again.json()["stored"]) == (False, "duplicate")
    assert other.json()["type"] == "urn:rota:key-conflict"
    assert other.json()["job_id"] == first.json()["id"]
    assert other.json()["public_id"] == first.json()["public_id"]


@pytest.mark.req("W36")
async def test_a_key_belongs_to_its_tenant(site):
    key = {"idempotency-key": "order:7"}
    red = await (await site.client("operator", "red")).post(JOBS, json=MAIL, headers=key)
    blue = await (await site.client("operator", "blue")).post(
        JOBS, json=MAIL | {"args": {"to": "bob"}}, headers=key
    )

    assert (red.status_code, blue.status_code) == (201, 201)


@pytest.mark.req("W36")
async def test_whose_job_it_is_the_token_says_and_not_the_body(site):
    client = await site.client("operator", "red")
    plain = await client.post(JOBS, json=MAIL)
    same = await client.post(JOBS, json=MAIL | {"options": {"tenant": "red"}})
    other = await client.post(JOBS, json=MAIL | {"options": {"tenant": "blue"}})

    for answer in (plain, same):
        assert (await read(site.store, parse_id(answer.json()["id"]))).tenant == "red"
    assert (other.status_code, other.json()["type"]) == (422, "urn:rota:payload-invalid")
    assert "is not yours" in other.json()["detail"]


async def test_a_parent_is_ones_own_or_unknown(site):
    theirs = a_job("mail", {"to": "ann"}, tenant="blue")
    mine = a_job("mail", {"to": "ann"}, tenant="red")
    await site.store.enqueue([theirs, mine])
    client = await site.client("operator", "red")

    async def status(parent) -> int:
        return (await client.post(JOBS, json=MAIL | {"options": {"parent": str(parent)}})).status_code

    assert [await status(mine.id), await status(theirs.id), await status("nonsense")] == [201, 422, 422]


async def test_an_unknown_task_is_refused_with_the_nearest_one(site):
    answer = await (await site.client("operator")).post(JOBS, json={"task": "mial", "args": {}})

    assert (answer.status_code, answer.json()["type"]) == (422, "urn:rota:unknown-task")
    assert "did you mean 'mail'?" in answer.json()["detail"]
    assert await site.store.counts() == []


@pytest.mark.parametrize(
    "args", [{}, {"to": 7}, {"to": "ann", "colour": "red"}, {"to": "ann", "copies": "many"}]
)
async def test_arguments_that_do_not_fit_the_code_are_refused(site, args):
    answer = await (await site.client("operator")).post(JOBS, json={"task": "mail", "args": args})

    assert (answer.status_code, answer.json()["type"]) == (422, "urn:rota:payload-invalid")
    assert await site.store.counts() == []


async def test_a_task_whose_code_is_elsewhere_is_checked_by_what_its_workers_published(site):
    elsewhere = Rota(store=site.store)

    @elsewhere.task(name="resize", queue="images", serial="path", retry=2)
    def resize(path: str, width: float = 1.0) -> None: ...

    await site.store.publish([resize.spec()])
    client = await site.client("operator", "red")

    right = await client.post(JOBS, json={"task": "resize", "args": {"path": "a.jpg", "width": 2}})
    job = await read(site.store, parse_id(right.json()["id"]))
    assert (job.queue, job.max_attempts, job.gate) == ("images", 2, "serial:red:a.jpg")
    said = await client.post(
        JOBS, json={"task": "resize", "args": {"path": "a.jpg"}, "options": {"serial": "all"}}
    )
    assert (await read(site.store, parse_id(said.json()["id"]))).gate == "serial:red:all"
    for wrong in ({}, {"path": 1}, {"path": "a", "heigth": 1}):
        assert (await client.post(JOBS, json={"task": "resize", "args": wrong})).status_code == 422
    infinite = '{"task": "resize", "args": {"path": "a.jpg", "width": 1e999}}'
    answer = await client.post(JOBS, content=infinite, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "NaN or infinite" in answer.json()["detail"]


@pytest.mark.parametrize(
    "options",
    [
        {"delay": "soon"},
        {"delay": 1, "at": "2030-01-01T00:00:00Z"},
        {"at": "2030-01-01T00:00:00"},
        {"priority": -1},
        {"max_attempts": 0},
        {"queue": ""},
        {"tags": [""]},
        {"tx": 1},
        {"created_by": "somebody else"},
        {"unique": {"key": "u", "until": "never"}},
    ],
    ids=str,
)
async def test_options_that_cannot_be_meant_are_refused(memory_site, options):
    answer = await (await memory_site.client("operator")).post(JOBS, json=MAIL | {"options": options})

    assert answer.status_code == 422, answer.text
    assert await memory_site.store.counts() == []


async def test_two_keys_for_one_job_are_refused(memory_site):
    client = await memory_site.client("operator")
    body = MAIL | {"options": {"key": "a"}}

    assert (await client.post(JOBS, json=body, headers={"idempotency-key": "b"})).status_code == 422
    assert (await client.post(JOBS, json=body, headers={"idempotency-key": "a"})).status_code == 201


async def test_a_full_queue_says_when_to_come_again():
    store = MemoryStore()
    app = Rota(store=store, queues=[Queue("post", max_pending=1)])
    await store.publish([TaskSpec("mail", queue="post")])
    async with served(store) as site:
        site.app.pressure = app.pressure
        client = await site.client("operator")
        answers = [await client.post(JOBS, json=MAIL) for _ in range(3)]

    assert answers[0].status_code == 201
    assert (answers[-1].status_code, answers[-1].json()["type"]) == (429, "urn:rota:queue-full")
    assert "retry-after" in answers[-1].headers
