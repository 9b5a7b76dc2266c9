"""F28: the server's queue of notices is full, because somebody who listens sits in a transaction. Jobs do not mind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from build import a_job, claim
from chaos.cluster import Cluster
from chaos.orders import Order
from rota import Rota
from rota.stores.contract import Stored
from rota.stores.postgres import PostgresStore


@pytest.fixture
def own_server() -> Iterator[Cluster]:
    """A server whose queue holds half a megabyte (by default: eight gigabytes)."""
    server = Cluster(max_connections=100, settings={"max_notify_queue_pages": "64"})
    try:
        server.start_migrated()
        yield server
    finally:
        server.destroy()


@contextmanager
def stuck_listener(url: str) -> Iterator[None]:
    """Somebody else listens to something else, in a transaction, and the queue is filled up to the brim."""
    with psycopg.connect(url, autocommit=True) as stuck, psycopg.connect(url, autocommit=True) as noisy:
        stuck.execute("LISTEN noise")
        stuck.execute("BEGIN")
        stuck.execute("SELECT 1")
        size = 7000
        while size:
            try:
                noisy.execute("SELECT pg_notify('noise', repeat('x', %s))", [size])
            except psycopg.OperationalError as full:
                assert "too many notifications in the NOTIFY queue" in str(full)  # noqa: PT017
                size //= 2
        yield


async def test_every_way_to_enqueue_and_a_cancel_work_while_no_notice_can_be_sent(own_server):
    store = PostgresStore(own_server.url)
    app = Rota(store=store)
    with stuck_listener(own_server.url):
        one, many = a_job(), [a_job() for _ in range(300)]
        await store.enqueue([one])
        await asyncio.gather(*[store.enqueue([a_job()]) for _ in range(20)])
        await store.enqueue(many)
        [keyed] = await store.enqueue([a_job(key="order:7")])
        with psycopg.connect(own_server.url) as business:
            await asyncio.to_thread(store.enqueue_within, business, [a_job()])
        [running, *_] = await claim(store)

        assert keyed.stored is Stored.CREATED
        assert await app.job(running.id).cancel("not wanted")
        assert len(await claim(store)) == 100
        findings = [finding for finding in await store.diagnose() if finding.what.startswith("notices")]
        assert [(finding.level, "full" in finding.what) for finding in findings] == [("warn", True)]
    await store.close()


@pytest.mark.chaos
def test_workers_go_on_by_polling_while_no_notice_can_be_sent(stage_there, own_server, one_seed, long):
    run = stage_there(one_seed, workers=2, slots=8)
    run.begin()
    run.enqueue(["before"])
    run.begun("before", within=20)
    with stuck_listener(own_server.url):
        for mode in ("single", "together", "bulk", "keyed"):
            count = 20 if mode == "single" else 60
            run.produce(
                Order(mode, mode, count * (10 if long else 1), ms=20, batch=20, pause=0.1, seed=one_seed)
            )
        run.produced(120)
        run.drained(60)

    evidence = run.verdict(within=20, notifications=1.0)

    assert [entry for entry in evidence.entries if not entry.acked] == []
    assert evidence.tables.tried == []
    assert run.fleet.exits == []
