"""F13: the server ends random connections of workers and producers, five times a second."""

from __future__ import annotations

import pytest

from chaos.orders import Order


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_connections_that_end_at_any_moment_cost_no_job_and_no_second_run(stage, seed, long):
    run = stage(seed, workers=2, slots=8)
    run.begin()
    goes = 150 if long else 16
    for mode in ("single", "together", "keyed"):
        size = 1 if mode == "single" else 10
        run.produce(
            Order(mode, mode, goes * size, ms=250, batch=size, pause=0.5, mix=mode != "keyed", seed=seed)
        )
    run.nemesis.every(0.2, run.nemesis.cut_backends(run.url))
    run.produced(600)
    run.drained(60 if long else 8)

    evidence = run.verdict(within=90)

    assert len(run.nemesis.timeline) > 10
    assert run.fleet.exits == []
    assert {run.how for run in evidence.effects} <= {"returned", "Planned"}
