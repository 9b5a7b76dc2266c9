"""F21: the server takes no more connections. Who has one keeps it, and workers keep one for their heartbeat."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg
import pytest

from chaos.cluster import Cluster
from chaos.orders import Order


@pytest.fixture
def own_server() -> Iterator[Cluster]:
    """A server with few places."""
    server = Cluster(max_connections=40)
    try:
        server.start_migrated()
        yield server
    finally:
        server.destroy()


@contextmanager
def no_place_left(url: str, seconds: float) -> Iterator[int]:
    """Take every place that is free, and every one that becomes free, for so long; how many that were."""
    taken = ExitStack()
    count = 0
    with taken:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                taken.enter_context(psycopg.connect(url, connect_timeout=2))
                count += 1
                continue
            time.sleep(0.02)
        yield count


@pytest.mark.chaos
def test_workers_beat_and_work_on_while_the_server_takes_no_new_connection(
    stage_there, own_server, one_seed, long
):
    lease = 3.0
    run = stage_there(one_seed, workers=2, slots=4, lease=lease, beat=0.75)
    run.begin()
    run.produce(Order("a", "together", 2000 if long else 200, ms=100, batch=5, pause=0.15, seed=one_seed))
    run.seen(lambda effects: len({effect.pid for effect in effects}) == 2, within=30)
    before = len(run.effects())
    with no_place_left(own_server.url, 4 * lease if long else 2 * lease) as taken:
        meanwhile = len(run.effects()) - before

    evidence = run.verdict(within=60)

    assert taken > 5
    assert meanwhile > 10, "nothing ran while the server was crowded"
    assert evidence.tables.tried == []
    assert run.fleet.exits == []
