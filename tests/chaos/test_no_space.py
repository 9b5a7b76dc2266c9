"""F23: the server's disk is full, the one of its data or the one of its log, while everybody works."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import psycopg
import pytest

from chaos.cluster import Cluster
from chaos.orders import Order


@pytest.fixture
def own_server(request) -> Iterator[Cluster]:
    """A server with a part of it on a small disk."""
    log = {"max_wal_size": "24MB", "min_wal_size": "2MB"} if request.param.startswith("wal") else {}
    server = Cluster(small=request.param, settings=log)
    try:
        assert server.disk is not None
        if not server.disk.mounted:
            pytest.skip(f"no small disk can be mounted here: {server.disk.why}")
        server.start_migrated()
        yield server
    finally:
        server.destroy()


@pytest.mark.chaos
@pytest.mark.parametrize("own_server", ["data=40"], indirect=True, ids=["data"])
def test_a_full_disk_is_told_to_producers_and_ridden_out_by_workers(stage_there, own_server, one_seed, long):
    disk = own_server.disk
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{disk.place}'")
        # New rows want new pages there: those that the tables have are full already.
        for table in ("jobs", "keys", "failed_attempts"):
            connection.execute(f"ALTER TABLE rota.{table} SET TABLESPACE small")
        days = connection.execute(
            "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'rota.finished_jobs'::regclass"
        )
        for (day,) in days.fetchall():
            connection.execute(f"ALTER TABLE {day} SET TABLESPACE small")
    run = stage_there(one_seed, workers=2, slots=8)
    run.begin()
    run.produce(
        Order("a", "keyed", 1500 if long else 400, ms=20, batch=10, pause=0.1, seed=one_seed, pad=2000)
    )
    run.seen(lambda effects: len(effects) > 20, within=30)
    for _ in range(4 if long else 1):
        disk.fill()
        run.nemesis.note("the disk is full")
        time.sleep(3.0)
        disk.free()
        run.nemesis.note("there is space again")
        time.sleep(1.0)
    run.produced(120)

    evidence = run.verdict(within=60)

    assert sum(entry.refusals for entry in evidence.entries) > 0, "no producer heard of the full disk"
    assert [entry for entry in evidence.entries if not entry.acked] == []
    assert run.fleet.exits == []
    assert evidence.tables.tried == []


@pytest.mark.chaos
@pytest.mark.parametrize("own_server", ["wal=48"], indirect=True, ids=["log"])
def test_a_server_that_stops_because_its_log_is_full_costs_no_job_and_no_worker(
    stage_there, own_server, one_seed
):
    """PostgreSQL ends itself rather than lose a commit. When there is space, somebody starts it again."""
    disk = own_server.disk
    run = stage_there(one_seed, workers=2, slots=8)
    run.begin()
    run.produce(Order("a", "keyed", 300, ms=20, batch=10, pause=0.1, seed=one_seed))
    run.seen(lambda effects: len(effects) > 20, within=30)
    with run.outage("the log is full"):
        disk.fill()
        with pytest.raises(psycopg.OperationalError):
            write_noise(own_server.url, random.Random(one_seed))
        run.until(lambda: "No space left on device" in own_server.log())
        time.sleep(2.0)
        disk.free()
        own_server.start_if_stopped()

    evidence = run.verdict(within=60)

    assert "PANIC" in own_server.log()
    assert [entry for entry in evidence.entries if not entry.acked] == []
    assert run.fleet.exits == []


def write_noise(url: str, dice: random.Random) -> None:
    """Forty megabytes that cannot be compressed."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE TABLE noise (text text)")
        for _ in range(60):
            other.execute("INSERT INTO noise VALUES (%s)", [dice.randbytes(400_000).hex()])
