"""I10: the numbers that workers give are true. Every verdict checks them; here nobody is hurt, so they are exact."""

from __future__ import annotations

import time

import pytest

from chaos.orders import Order


@pytest.mark.chaos
def test_where_nobody_is_hurt_every_end_is_counted_by_task_and_tenant(stage, one_seed, long):
    """Some fail at first, some stand in line; workers come and go, each with a goodbye."""
    run = stage(one_seed, workers=2, slots=6)
    run.begin()
    for name, tenant in (("a", "acme"), ("z", "zenith"), ("n", None)):
        order = Order(
            name, "together", 600 if long else 80, ms=40, batch=10, mix=True, pause=0.05, seed=one_seed
        )
        run.produce(order._replace(tenant=tenant))
    run.seen(lambda effects: len(effects) > 20, within=60)
    run.nemesis.terminate_a_worker()

    evidence = run.verdict(within=60)

    assert evidence.calm
    sums = evidence.tables.sums
    assert sums.counted == sums.happened
    assert sums.counted["flaky", "failed"] == sums.counted["flaky", "completed"] > 0
    assert sums.split == (sum(sums.counted.values()),) * 2


@pytest.mark.chaos
def test_where_workers_are_killed_no_more_is_counted_than_happened(stage, one_seed):
    run = stage(one_seed, workers=2, slots=6, lease=3.0, beat=1.0)
    run.begin()
    run.produce(Order("a", "together", 120, ms=60, batch=10, mix=True, pause=0.05, seed=one_seed))
    run.seen(lambda effects: len(effects) > 20, within=60)
    run.nemesis.kill_a_worker()
    time.sleep(0.5)
    run.nemesis.kill_a_worker()

    evidence = run.verdict(within=60)

    sums = evidence.tables.sums
    assert not evidence.calm
    assert sum(sums.states.values()) == sums.states["completed"] == 120
    assert 0 < sum(sums.counted.values()) <= sum(sums.happened.values())
