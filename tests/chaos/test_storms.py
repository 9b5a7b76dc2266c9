"""F27: the server refuses what it is asked, again and again: locks, deadlocks, conflicts, timeouts, cancels."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from chaos.orders import Order

STORMS = {
    "conflicts": {"default_transaction_isolation": "serializable"},
    "locks": {"lock_timeout": "40ms"},
    "deadlocks": {"deadlock_timeout": "10ms"},
    "timeouts": {"statement_timeout": "60ms"},
    "cancels": {},
}
"""What is set for everybody who connects to the database."""


class Rival(threading.Thread):
    """Locks random jobs in a random order, one after another, and sessions too; keeps them for a moment."""

    def __init__(self, url: str, seed: str) -> None:
        super().__init__(name="chaos-rival")
        self._url, self._dice = url, random.Random(seed)
        self.over = threading.Event()
        self.locked = self.beaten = 0

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self.over.wait(self._dice.uniform(0.0, 0.03)):
                try:
                    self._lock_some(connection)
                except psycopg.OperationalError:  # it was the victim itself
                    self.beaten += 1

    def _lock_some(self, connection: psycopg.Connection) -> None:
        tables = ["jobs"] * 4 + ["sessions"]
        with connection.transaction():
            for table in self._dice.sample(tables, 3):
                found = connection.execute(
                    f"SELECT id FROM rota.{table} WHERE {'true' if table == 'sessions' else 'id IS NOT NULL'} LIMIT 20"
                ).fetchall()
                for (one,) in self._dice.sample(found, min(3, len(found))):
                    connection.execute(f"SELECT 1 FROM rota.{table} WHERE id = %s FOR UPDATE", [one])
                    self.locked += 1
                time.sleep(self._dice.uniform(0.0, 0.04))


@contextmanager
def rivals(url: str, seed: int, count: int = 3) -> Iterator[list[Rival]]:
    threads = [Rival(url, f"{seed}/{number}") for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.over.set()
            thread.join()


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("storm", STORMS)
def test_what_the_server_refuses_is_repeated_until_it_lands_once(
    stage, one_seed, long, storm, fresh_database
):
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        for name, value in STORMS[storm].items():
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {name} = '{value}'")
    run = stage(one_seed, workers=2, slots=8)
    run.begin()
    for mode in ("together", "keyed"):
        run.produce(Order(mode, mode, 1500 if long else 120, ms=40, batch=10, mix=mode != "keyed", pause=0.3,
                          seed=one_seed))  # fmt: skip
    with rivals(fresh_database, one_seed) as threads:
        if storm == "cancels":
            run.nemesis.every(0.1, run.nemesis.cancel_statements(fresh_database))
        run.produced(300)
        run.drained(300 if long else 5)
    run.nemesis.note(
        f"rivals locked {sum(t.locked for t in threads)} rows, lost {sum(t.beaten for t in threads)} times"
    )

    evidence = run.verdict(within=60)

    assert sum(thread.locked for thread in threads) > 50
    assert run.fleet.exits == []
    assert {tried.error_class for tried in evidence.tables.tried} <= {"retryable"}
    assert [entry for entry in evidence.entries if entry.key.startswith("keyed") and not entry.acked] == []


@pytest.mark.chaos
def test_a_server_that_throws_everybody_out_again_and_again_costs_nothing_but_time(stage, one_seed, long):
    """All of our backends at once, as an administrator does before a maintenance, several times."""
    run = stage(one_seed, workers=2, slots=8)
    run.begin()
    run.produce(Order("keyed", "keyed", 1000 if long else 100, ms=100, batch=5, pause=0.2, seed=one_seed))
    run.seen(lambda effects: len(effects) > 5, within=30)
    for _ in range(30 if long else 6):
        with psycopg.connect(run.url, autocommit=True) as ours, suppress(psycopg.Error):
            ours.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'rota'"
            )
        run.nemesis.note("threw every connection of ours out")
        time.sleep(run.nemesis.dice.uniform(0.05, 0.6))
    run.produced(120)

    evidence = run.verdict(within=60)

    assert run.fleet.exits == []
    assert evidence.tables.tried == []
    assert [entry for entry in evidence.entries if not entry.acked] == []
