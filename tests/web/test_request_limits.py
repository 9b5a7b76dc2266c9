"""How much one caller may send and ask, and what no store could keep."""

from __future__ import annotations

import json
import threading

import pytest
from starlette.requests import Request

from rota.stores.memory import MemoryStore
from rota.web import limits
from rota.web.limits import CALLERS, Buckets, address_of, refuse_bad_json
from rota.web.problems import Problem
from web_kit import NEAR, served

JSON = {"content-type": "application/json"}


def a_body(size: int) -> bytes:
    return json.dumps({"task": "mail", "args": {"to": "a" * size}}).encode()


async def test_a_body_of_more_than_a_mebibyte_is_refused(memory_site):
    answer = await (await memory_site.client()).post("/api/v1/jobs", content=a_body(2**20), headers=JSON)

    assert answer.status_code == 413
    assert "1,048,576 bytes" in answer.json()["detail"]


async def test_also_when_its_length_is_not_said_and_the_rest_is_not_even_read(memory_site):
    sent = 0

    async def chunks():
        nonlocal sent
        while sent < 100:
            sent += 1
            yield b"a" * 100_000

    answer = await (await memory_site.client()).post("/api/v1/jobs", content=chunks(), headers=JSON)

    assert answer.status_code == 413
    assert sent < 15


async def test_a_body_of_somebody_unknown_is_not_read_at_all(memory_site):
    async def chunks():
        raise AssertionError("read")
        yield b""

    answer = await memory_site.anonymous().post("/api/v1/jobs", content=chunks(), headers=JSON)

    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/login?key=x"),
        ("DELETE", "/api/v1/session"),
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/session"),
    ],
)
async def test_a_body_is_not_read_where_none_is_meant(memory_site, method, path):
    async def chunks():
        raise AssertionError("read")
        yield b""

    answer = await (await memory_site.client()).request(method, path, content=chunks(), headers=JSON)

    assert answer.status_code in (200, 204, 401)


async def test_nobody_in_particular_may_send_much(memory_site):
    body = b"[" + b"{}," * 2_000 + b"{}]"
    answer = await memory_site.anonymous().post("/api/v1/session", content=body, headers=JSON)

    assert (answer.status_code, answer.json()["type"]) == (413, "urn:rota:too-large")
    assert "4,096 bytes" in answer.json()["detail"]


async def test_nobody_in_particular_may_ask_without_end_and_no_other_address_pays_for_it():
    async with served(MemoryStore(), rate=0.001, burst=3) as site:
        stranger, other = site.anonymous(), site.anonymous(address=("203.0.113.10", 1))
        answers = [(await stranger.get("/healthz")).status_code for _ in range(16)]

        assert answers == [200] * 15 + [429]
        assert (await stranger.delete("/api/v1/session")).status_code == 204
        assert (await other.get("/healthz")).status_code == 200


async def test_metrics_are_counted_for_this_machine_too():
    async with served(MemoryStore(), rate=0.001, burst=2) as site:
        near = site.anonymous(address=NEAR, base="http://localhost")

        assert [(await near.get("/metrics")).status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("203.0.113.9", "203.0.113.10", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:203.0.113.9", "::ffff:203.0.113.10", False),
        ("a socket", "another", False),
    ],
)
def test_strangers_are_told_apart_by_address_or_network(one, other, same):
    counted = [address_of(Request({"type": "http", "client": (host, 1)})) for host in (one, other)]

    assert (counted[0] == counted[1]) is same
    assert address_of(Request({"type": "http", "client": None})) == "unknown"


async def test_a_long_body_is_looked_through_beside_the_loop(memory_site, monkeypatch):
    threads = []

    def seen(body: bytes) -> None:
        threads.append((len(body), threading.current_thread() is threading.main_thread()))
        refuse_bad_json(body)

    monkeypatch.setattr(limits, "refuse_bad_json", seen)
    client = await memory_site.client()
    for size in (10, 100_000):
        assert (await client.post("/api/v1/jobs", json={"unknown": "a" * size})).status_code == 422

    assert [(length > limits.LONG, main) for length, main in threads] == [(False, True), (True, False)]


async def test_a_compressed_body_is_not_opened(memory_site):
    client = await memory_site.client()
    answer = await client.post("/api/v1/jobs", content=b"x", headers=JSON | {"content-encoding": "gzip"})

    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("[" * 60 + "]" * 60, "nested more than 50 levels deep"),
        ("[" * 100_000, "nested more than 50 levels deep"),
        ('"a\\u0000b"', "contains a NUL character"),
        ("NaN", "NaN or infinite"),
        ("[-Infinity]", "NaN or infinite"),
        ('"\\ud800"', "lone surrogate"),
    ],
)
async def test_json_that_no_store_could_keep_is_refused(memory_site, argument, words):
    body = f'{{"task": "mail", "args": {{"to": {argument}}}}}'
    answer = await (await memory_site.client()).post("/api/v1/jobs", content=body, headers=JSON)

    assert answer.status_code == 422, answer.text
    assert words in answer.json()["detail"]


async def test_bytes_that_are_no_text_are_refused(memory_site):
    answer = await (await memory_site.client()).post("/api/v1/jobs", content=b"\xff{}", headers=JSON)

    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/api/v1/jobs?queue=a%00b", "/api/v1/jobs/a%00b", "/api/v1/jobs?%00=1"])
async def test_a_nul_in_the_address_is_refused(site, path):
    answer = await (await site.client()).get(path)

    assert answer.status_code == 400
    assert "NUL" in answer.json()["detail"]


async def test_each_caller_may_ask_so_often_and_no_other_pays_for_it():
    async with served(MemoryStore(), rate=0.001, burst=3) as site:
        ann, bob = await site.client("viewer"), await site.client("viewer")
        first = [(await ann.get("/api/v1/session")).status_code for _ in range(4)]
        refused = await ann.get("/api/v1/jobs")

        assert first == [200, 200, 200, 429]
        assert refused.json()["type"] == "urn:rota:too-many-requests"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await bob.get("/api/v1/session")).status_code == 200
        assert (await ann.get("/healthz")).status_code == 200


def test_a_bucket_fills_again_with_time():
    now = 0.0
    buckets = Buckets(20.0, 40, clock=lambda: now)

    assert [buckets.take("ann") for _ in range(40)] == [0.0] * 40
    assert buckets.take("ann") == pytest.approx(0.05)
    now = 0.1
    assert [buckets.take("ann") for _ in range(2)] == [0.0, 0.0]
    with pytest.raises(Problem):
        buckets.admit("ann")
    now = 1000.0
    assert [buckets.take("ann") for _ in range(40)] == [0.0] * 40
    assert buckets.take("ann") > 0.0


def test_who_only_asks_whether_there_is_one_left_takes_none():
    now = 0.0
    buckets = Buckets(1.0, 1, clock=lambda: now)
    for _ in range(3):
        buckets.refuse_spent("ann")

    assert buckets.take("ann") == 0.0
    with pytest.raises(Problem):
        buckets.refuse_spent("ann")
    now = 1.0
    buckets.refuse_spent("ann")


def test_only_so_many_callers_are_remembered():
    buckets = Buckets(1.0, 1)
    for number in range(CALLERS + 10):
        buckets.take(str(number))

    assert len(buckets._left) == CALLERS
