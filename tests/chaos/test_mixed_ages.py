"""F42, F43: workers of two versions of the code side by side, and a schema that is migrated under them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

from chaos.fleet import environment
from chaos.orders import Order

PATIENCE = 4.0
"""Longer than a migration waits for its lock (2 s), also on a busy machine; nobody waits longer behind it."""
WAITING = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0)::float8 FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'rota' AND wait_event_type = 'Lock'
"""
MIGRATE = """
import asyncio, sys
from rota.stores.postgres import PostgresStore, migrate
known = migrate.migrations()
new = migrate.Migration(migrate.LATEST + 1, "0999_trial", sys.argv[2])
migrate.migrations = lambda: [*known, new]
print(asyncio.run(PostgresStore(sys.argv[1]).migrate()))
"""
EXPAND = """
ALTER TABLE rota.jobs ADD COLUMN trial text;
ALTER TABLE rota.sessions ADD COLUMN trial text;
SELECT pg_sleep({});
"""


@pytest.mark.chaos
def test_jobs_of_a_task_that_only_newer_workers_know_wait_for_them_unharmed(stage, one_seed, long):
    """A rolling deploy: the new producer is there before the new workers are."""
    old = {"CHAOS_AGE": "old"}
    run = stage(one_seed, workers=3, slots=4, each=lambda place: {} if len(run.fleet.pids) >= 3 else old)
    run.begin()
    run.produce(
        Order("a", "together", 1000 if long else 150, ms=50, batch=10, mix=True, pause=0.4, seed=one_seed)
    )
    run.seen(lambda effects: len({effect.pid for effect in effects}) == 3, within=30)
    first = set(run.fleet.living())
    run.spawn("producer", "new", Order("new", "newcomers", 60, batch=20, pause=0.1)._asdict()).wait(60)
    run.until(lambda: "no task named 'newcomer'" in run.fleet.logs())
    time.sleep(1.0)
    early = [effect for effect in run.effects() if effect.key.startswith("new")]
    for pid in first:
        run.fleet.signal(pid, signal.SIGTERM)
        time.sleep(0.5)

    evidence = run.verdict(within=60)

    assert early == []
    news = [row for row in evidence.tables.rows if row.key.startswith("new")]
    assert len(news) == 60
    assert {(row.state, row.attempt) for row in news} == {("completed", 1)}
    assert {effect.pid for effect in evidence.effects if effect.key.startswith("new")}.isdisjoint(first)
    assert {tried.error_class for tried in evidence.tables.tried} <= {"retryable"}


@contextmanager
def longest_wait(url: str):
    """The longest that anybody of us waited for a lock, looked at fifty times a second."""
    seen, over = [0.0], threading.Event()

    def look() -> None:
        with psycopg.connect(url, autocommit=True, application_name="watch") as connection:
            while not over.wait(0.02):
                row = connection.execute(WAITING).fetchone()
                seen[0] = max(seen[0], row[0])

    thread = threading.Thread(target=look, name="chaos-watch")
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def migrator(url: str, sql: str) -> subprocess.Popen[str]:
    """A process that applies one more migration than this code has."""
    command = [sys.executable, "-c", MIGRATE, url, sql]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def columns(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'rota' AND column_name = 'trial'"
        ).fetchone()
    return row[0]


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_migration_under_load_keeps_nobody_waiting_and_one_that_is_killed_leaves_nothing(
    stage, one_seed, long
):
    run = stage(one_seed, workers=2, slots=8)
    run.begin()
    run.produce(Order("a", "keyed", 3000 if long else 300, ms=30, batch=5, pause=0.15, seed=one_seed))
    run.seen(lambda effects: len(effects) > 20, within=30)
    with longest_wait(run.url) as waited:
        # A reader who takes his time, and a migration that has to wait for him: everybody queues up behind it.
        with psycopg.connect(run.url) as reader:
            reader.execute("SELECT count(*) FROM rota.jobs")
            blocked = migrator(run.url, EXPAND.format(0))
            run.nemesis.note("a migration waits for a long reader")
            time.sleep(4.0)
            assert blocked.poll() is None
        assert "0999_trial" in blocked.communicate(timeout=30)[0]
        assert columns(run.url) == 2
        with psycopg.connect(run.url, autocommit=True) as connection:
            connection.execute("ALTER TABLE rota.jobs DROP COLUMN trial")
            connection.execute("ALTER TABLE rota.sessions DROP COLUMN trial")
            connection.execute("DELETE FROM rota.migrations WHERE name = '0999_trial'")
        killed = migrator(run.url, EXPAND.format(1.0))
        run.until(lambda: asleep(run.url))
        killed.kill()
        killed.communicate()
        run.nemesis.note("killed a migrator in the middle of its work")
        run.until(lambda: not asleep(run.url))
        half_done = columns(run.url)
    run.produced(120)

    evidence = run.verdict(within=60)

    assert half_done == 0
    assert waited[0] < PATIENCE, f"somebody waited {waited[0]:.1f} s for a lock"
    assert run.fleet.exits == []
    assert evidence.tables.tried == []


def asleep(url: str) -> bool:
    question = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(question).fetchone() != (0,)
