"""What Prometheus reads: the store's numbers in its format, and nothing where nothing is known."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from http import HTTPStatus

import pytest
from prometheus_client.parser import text_string_to_metric_families

from build import NOON, Clock, a_job, a_session, new_id
from rota._core.numbers import Ending, LaneTotal, Minute, TenantTotal, Total, bucket
from rota._core.queue import Queue
from rota.admin import Admin
from rota.contrib.prometheus import exposition
from rota.errors import StoreUnavailable
from rota.stores.contract import SessionStart
from rota.worker.supervisor import health
from rota.worker.supervisor.health import Address, HealthPort, Page


def read(page: bytes) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        family.name: {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for sample in family.samples
        }
        for family in text_string_to_metric_families(page.decode())
    }


@pytest.fixture
async def worked(store, clock: Clock):
    total = Total("mail", "send", Ending.COMPLETED, 9, 0.9, 4.5, {bucket(0.1): 9}, {bucket(0.5): 9})
    lane, tenant = LaneTotal("fast", 10, 4), TenantTotal("acme-secret", 10)
    bad = total._replace(ending=Ending.DEAD, jobs=1, waits={}, runs={})
    await store.note_minutes(new_id(), [Minute(NOON, [total, bad], [tenant], [lane])])
    await store.publish_queues([Queue("mail", target="30s")])
    await store.enqueue([a_job("send", queue="mail", run_at=NOON - timedelta(seconds=90))])
    await a_session(store)
    return store


async def test_the_memory_of_workers_is_told_where_it_is_known(store):
    for pid, memory in ((7, 80_000_000), (8, None)):
        start = SessionStart(new_id(), "web-1", pid, {"general": 5}, ("mail",), memory=memory)
        await store.open_session(start, lease=60.0)

    page, _ = exposition(await Admin(store, actor="test").overview(300.0))

    assert read(page)["rota_worker_memory_bytes"] == {("web-1", "7"): 80_000_000.0}


@pytest.mark.req("L31")
async def test_depth_age_waits_durations_errors_and_slots_are_told(worked):
    page, kind = exposition(await Admin(worked, actor="test").overview(300.0))
    told = read(page)

    assert kind.startswith("text/plain")
    assert told["rota_jobs"] == {("mail", "pending", "send"): 1.0}
    assert told["rota_queue_oldest_seconds"] == {("mail",): 90.0}
    assert told["rota_queue_target_seconds"] == {("mail",): 30.0}
    assert told["rota_attempts_recent"] == {("completed", "mail", "send"): 9.0, ("dead", "mail", "send"): 1.0}
    assert 0.4 < told["rota_run_seconds"]["0.95", "send"] < 0.6
    assert told["rota_error_ratio"] == {("send",): 0.1}
    assert told["rota_lane_busy_ratio"] == {("fast",): 0.4}
    assert told["rota_workers"] == {(): 1.0}
    assert set(told["rota_read_ok"].values()) == {1.0}


async def test_no_tenant_is_in_the_metrics(worked):
    page, _ = exposition(await Admin(worked, actor="test").overview(300.0))

    assert b"acme-secret" not in page


async def test_what_cannot_be_read_has_no_series_and_says_so(worked, monkeypatch):
    async def away(*_given):
        raise StoreUnavailable("the line is cut")

    monkeypatch.setattr(worked, "figures", away)
    monkeypatch.setattr(worked, "counts", away)
    told = read(exposition(await Admin(worked, actor="test").overview(300.0))[0])

    assert not {"rota_jobs", "rota_attempts_recent", "rota_error_ratio"} & told.keys()
    assert told["rota_read_ok"]["figures",] == told["rota_read_ok"]["counts",] == 0.0
    assert told["rota_workers"] == {(): 1.0}


async def test_a_store_that_answers_nothing_is_an_error_and_no_page_of_zeros(worked, monkeypatch):
    async def away(*_given):
        raise StoreUnavailable("the line is cut")

    for verb in ("figures", "counts", "heads", "sessions", "queues"):
        monkeypatch.setattr(worked, verb, away)

    with pytest.raises(StoreUnavailable):
        await Admin(worked, actor="test").overview(300.0)


async def ask(port: HealthPort, path: str, *headers: str, host: str = "127.0.0.1:8081") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(port.address.host, port.address.port)
    writer.write("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(" ")[1]), answer.partition("\r\n\r\n")[2]


@pytest.fixture
async def port():
    async def page() -> Page:
        return Page(b"rota_workers 1.0\n", "text/plain; version=0.0.4")

    async def broken() -> Page:
        raise StoreUnavailable("the database is away")

    port = HealthPort(Address("127.0.0.1", 0), {}, {"/metrics": page, "/broken": broken}, "sesame")
    await port.open()
    yield port
    await port.close()


async def test_this_machine_may_read_the_pages(port):
    assert await ask(port, "/metrics") == (HTTPStatus.OK, "rota_workers 1.0\n")
    assert await ask(port, "/broken") == (HTTPStatus.SERVICE_UNAVAILABLE, "the database is away\n")
    assert (await ask(port, "/nothing"))[1] == "There is nothing here. Ask /metrics, /broken.\n"


@pytest.mark.parametrize("host", ["localhost:8081", "[::1]:8081", "10.0.0.7", "", socket.gethostname()])
async def test_this_machine_has_several_names(port, host):
    assert (await ask(port, "/metrics", host=host))[0] == HTTPStatus.OK


@pytest.mark.parametrize("host", ["evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example"])
async def test_a_strangers_name_that_was_pointed_at_this_machine_needs_the_token(port, host):
    assert (await ask(port, "/metrics", host=host))[0] == HTTPStatus.UNAUTHORIZED
    assert (await ask(port, "/metrics", f"Host: {host}"))[0] == HTTPStatus.UNAUTHORIZED
    assert (await ask(port, "/metrics", "Authorization: Bearer sesame", host=host))[0] == HTTPStatus.OK


async def test_what_a_proxy_passes_on_comes_from_elsewhere(port):
    assert (await ask(port, "/metrics", "X-Forwarded-For: 203.0.113.9"))[0] == HTTPStatus.UNAUTHORIZED


async def test_others_need_the_token(port, monkeypatch):
    monkeypatch.setattr(health, "_is_near", lambda _peer: False)

    assert (await ask(port, "/metrics"))[0] == HTTPStatus.UNAUTHORIZED
    assert (await ask(port, "/metrics", "Authorization: Bearer wrong"))[0] == HTTPStatus.UNAUTHORIZED
    assert (await ask(port, "/metrics", "Authorization: Bearer sesame"))[0] == HTTPStatus.OK
    assert await ask(port, "/broken", "authorization: bearer sesame") == (503, "unknown\n")
    port._token = None
    assert (await ask(port, "/metrics", "Authorization: Bearer "))[0] == HTTPStatus.UNAUTHORIZED
