"""What operators do on a working day, all of it under load: set jobs aside and release them, deploy, drain, purge."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from typing import Any

import psycopg
import pytest

from chaos.fleet import environment
from chaos.orders import Order
from chaos.test_heavy_tables import FINISHED, YESTERDAY
from rota.stores.contract import Retention
from rota.stores.postgres import PostgresStore

OLD = "SELECT count(*) FROM rota.finished_jobs WHERE finished_at < now() - interval '1 hour'"


def rota(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command that an operator types."""
    return subprocess.run(
        [sys.executable, "-m", "rota.cli", "--url", url, *words],
        env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


def told(url: str, *words: str) -> Any:
    done = rota(url, "--json", *words)
    # 1: some jobs were begun between the look and the deed, and left alone.
    assert done.returncode in (0, 1), f"rota {' '.join(words)}: {done.stderr}"
    return json.loads(done.stdout)


def purge(url: str) -> None:
    """What a worker's janitor does each hour; again while the janitor of a worker that was stopped has the turn."""

    async def tidy() -> None:
        store = PostgresStore(url)
        began = time.monotonic()
        while not (await store.tidy(Retention(finished=3600.0))).finished and time.monotonic() - began < 90:
            await asyncio.sleep(0.5)
        await store.close()

    asyncio.run(tidy())


@pytest.mark.chaos
@pytest.mark.scenario(20)
@pytest.mark.timeout(900)
def test_holding_deploying_draining_and_purging_under_load_harm_no_job(
    stage, direct_database, one_seed, long
):
    """A deploy replaces workers without a pause; a drain asks all of them to stop, and then nothing runs."""
    run = stage(one_seed, workers=3, slots=4)
    with psycopg.connect(direct_database, autocommit=True) as connection:
        connection.execute(YESTERDAY)
        connection.execute(FINISHED.format("2 hours", 1_000_000 if long else 40_000))
        run.begin()
        for tenant in ("acme", "zenith"):
            order = Order(f"a-{tenant}", "together", 3000 if long else 240, ms=60, batch=10, pause=0.25)
            run.produce(order._replace(tenant=tenant, seed=one_seed))
        run.seen(lambda effects: len(effects) > 5, within=60)
        purging = threading.Thread(target=purge, args=[direct_database])
        purging.start()
        run.nemesis.every(0.8, run.nemesis.terminate_a_worker)  # a deploy, again and again
        run.enqueue([f"aside-{number}" for number in range(120)], task="threaded", ms=1000)

        held = told(
            direct_database, "jobs", "hold", "--task", "threaded", "--reason", "smtp is down", "--yes"
        )
        at = time.time()
        listed = told(direct_database, "jobs", "list", "--state", "held", "--limit", "200")
        aside = {job["id"] for job in listed}
        time.sleep(2)
        begun = {effect.job for effect in run.effects() if effect.start > at}
        released = told(direct_database, "jobs", "release", "--task", "threaded", "--yes")
        purging.join()
        left = connection.execute(OLD).fetchone()
        run.produced(300)

    evidence = run.verdict(within=90)

    assert len(aside) > 5
    assert held["done"] == released["done"] == len(aside)
    assert begun, "the others went on meanwhile"
    assert not begun & aside, "a job that was set aside has begun"
    assert left == (0,)
    assert len([death for death in evidence.deaths if death.code == 0]) > 3
    assert [row for row in evidence.tables.rows if row.attempt != 1] == [], "a deploy has cost an attempt"
    assert {len(runs) for runs in evidence.runs.values()} == {1}


@pytest.mark.chaos
@pytest.mark.scenario(20)
def test_a_drained_fleet_leaves_nothing_running_and_all_that_waits_to_the_next(
    stage, direct_database, one_seed
):
    run = stage(one_seed, workers=2, slots=4)
    run.begin()
    run.produce(Order("a", "bulk", 200, ms=150, batch=200, seed=one_seed))
    run.seen(lambda effects: len(effects) > 8, within=60)
    run.fleet.stop()
    states = {one["state"]: one["jobs"] for one in counted(direct_database)}
    unreadable = rota("postgresql://localhost:1/nothing", "--json", "jobs", "list")

    assert run.fleet.stubborn == []
    assert set(states) == {"pending", "completed"}
    assert sum(states.values()) == 200
    assert (unreadable.returncode, unreadable.stdout) == (3, ""), "what cannot be read is not an empty list"


def counted(url: str) -> list[dict[str, Any]]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT state, count(*) FROM rota.all_jobs GROUP BY 1").fetchall()
    return [{"state": state, "jobs": jobs} for state, jobs in found]
