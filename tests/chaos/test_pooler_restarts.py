"""F29, F30: everything goes through PgBouncer in transaction mode, which is paused, restarted and cut off."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest

from chaos.cluster import Cluster
from chaos.orders import Order
from servers import Pooler


@pytest.fixture
def pooler(own_server: Cluster) -> Iterator[Pooler]:
    pooler = Pooler(own_server, size=6)
    pooler.start()
    yield pooler
    pooler.stop()


def console(pooler: Pooler, *commands: str) -> None:
    with psycopg.connect(pooler.url("pgbouncer"), autocommit=True, prepare_threshold=None) as connection:
        for command in commands:
            connection.execute(command)


class Troubles:
    """What may happen to a pooler."""

    def __init__(self, pooler: Pooler, run) -> None:
        self._pooler, self._run = pooler, run
        self.turn = 0

    def next(self) -> None:
        trouble = [self.restarted, self.paused, self.killed][self.turn % 3]
        self.turn += 1
        self._run.nemesis.note(f"the pooler is {trouble.__name__}")
        trouble()

    def restarted(self) -> None:
        self._pooler.stop()
        time.sleep(self._run.nemesis.dice.uniform(0.0, 0.5))
        self._pooler.start()

    def paused(self) -> None:
        """Clients wait; nobody is told."""
        console(self._pooler, "PAUSE")
        time.sleep(self._run.nemesis.dice.uniform(0.5, 1.5))
        console(self._pooler, "RESUME")

    def killed(self) -> None:
        """All clients of the database are thrown out at once."""
        console(self._pooler, "KILL postgres", "RESUME postgres")


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_pooler_that_is_restarted_and_paused_costs_no_job_and_no_second_run(
    stage_there, own_server, pooler, one_seed, long
):
    run = stage_there(one_seed, workers=2, slots=8, through=pooler.before(own_server.url))
    run.begin()
    for mode in ("together", "keyed"):
        run.produce(Order(mode, mode, 1500 if long else 150, ms=60, batch=5, mix=mode != "keyed", pause=0.25,
                          seed=one_seed))  # fmt: skip
    run.seen(lambda effects: len(effects) > 10, within=30)
    troubles = Troubles(pooler, run)
    for _ in range(40 if long else 3):
        troubles.next()
        time.sleep(run.nemesis.dice.uniform(0.3, 1.0))
    run.produced(120)

    evidence = run.verdict(within=60)

    assert run.fleet.exits == []
    assert {tried.error_class for tried in evidence.tables.tried} <= {"retryable"}
    assert [entry for entry in evidence.entries if entry.key.startswith("keyed") and not entry.acked] == []
