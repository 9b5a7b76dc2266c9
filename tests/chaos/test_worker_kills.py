"""F1: workers and producers are killed with SIGKILL at random instants."""

from __future__ import annotations

import signal
import time

import pytest

from chaos.orders import Order


@pytest.mark.chaos
@pytest.mark.req("D3")
@pytest.mark.timeout(900)
def test_killing_workers_at_random_loses_no_job_and_runs_none_twice_without_a_reason(stage, seed, long):
    run = stage(seed, workers=3, slots=8, **({} if long else {"lease": 3.0, "beat": 1.0}))
    run.begin()
    for name in ("a", "b"):
        run.produce(Order(name, "together", 2500 if long else 250, ms=150, batch=25, mix=True, seed=seed))
    run.nemesis.every(1.0, run.nemesis.kill_a_worker)
    run.produced(300)
    run.drained(600 if long else 12)

    evidence = run.verdict(within=90)

    assert len(evidence.entries) == len(evidence.tables.rows) == (5000 if long else 500)
    assert any(death.code == -9 for death in evidence.deaths)


@pytest.mark.chaos
@pytest.mark.scenario(3)
@pytest.mark.req("L24")
def test_a_killed_workers_jobs_restart_elsewhere_within_twenty_seconds_at_default_settings(stage, one_seed):
    run = stage(one_seed, workers=2, slots=4)
    run.begin()
    run.produce(Order("a", "single", 6, ms=4_000))
    begun = run.seen(lambda effects: len({effect.pid for effect in effects}) == 2, within=30)
    victim = begun[0].pid
    run.fleet.signal(victim, signal.SIGKILL)
    killed_at = time.time()
    in_flight = {effect.job for effect in run.effects() if effect.pid == victim and effect.end is None}

    evidence = run.verdict(within=60)

    assert in_flight
    for job in in_flight:
        first, second = evidence.runs[job]
        assert (first.pid, first.end) == (victim, None)
        assert killed_at < second.start < killed_at + 20
        assert evidence.tried[job, first.fence].error_class == "lost"
    assert {len(runs) for job, runs in evidence.runs.items() if job not in in_flight} == {1}


@pytest.mark.chaos
def test_a_killed_producer_leaves_each_job_whole_or_not_at_all(stage, seed):
    run = stage(seed, workers=1, slots=8)
    run.begin()
    modes = {"single": 1, "together": 20, "bulk": 300, "keyed": 10}
    for mode, batch in modes.items():
        run.produce(Order(mode, mode, 1_000_000, ms=1, batch=batch, pause=0.02, seed=seed))
    run.seen(lambda effects: {effect.key.partition("-")[0] for effect in effects} == set(modes), within=60)
    for mode in modes:
        time.sleep(run.nemesis.dice.uniform(0.0, 0.2))
        run.kill_producer(mode)

    evidence = run.verdict(within=60)

    open_ends = [entry.key.partition("-")[0] for entry in evidence.entries if not entry.acked]
    assert set(open_ends) == set(modes)
    assert len([key for key in evidence.rows if key.startswith("bulk")]) % 300 == 0, "half a batch was stored"


@pytest.mark.chaos
@pytest.mark.scenario(20)
@pytest.mark.req("L26")
def test_a_rolling_deploy_loses_no_job_and_uses_up_no_attempt(stage, one_seed, long):
    run = stage(one_seed, workers=3, slots=4)
    run.begin()
    run.produce(Order("a", "together", 2000 if long else 150, ms=100, batch=10, pause=0.3, seed=one_seed))
    run.seen(lambda effects: len(effects) > 5, within=30)
    run.nemesis.every(0.7, run.nemesis.terminate_a_worker)
    run.produced(300)

    evidence = run.verdict(within=60)

    assert len([death for death in evidence.deaths if death.code == 0]) > 3
    assert [row for row in evidence.tables.rows if row.attempt != 1] == []
    assert {len(runs) for runs in evidence.runs.values()} == {1}
