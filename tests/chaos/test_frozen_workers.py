"""F3: workers stand still past their lease, others run their jobs, then they wake up and go on."""

from __future__ import annotations

import random
import threading

import pytest

from chaos.orders import Order

LEASE = 2.0


def freeze_rounds(run, seed: int, rounds: int, at_once: int) -> int:
    """Freeze some workers past their lease, again and again; how many zombies that made."""
    dice = random.Random(seed)
    zombies = 0
    for _ in range(rounds):
        # Only workers in the middle of a job become zombies.
        run.seen(lambda effects: len(busy(effects)) > at_once, within=60)
        chosen = dice.sample(sorted(busy(run.effects())), at_once)
        threads = [
            threading.Thread(
                target=run.nemesis.freeze_a_worker, args=(pid, LEASE + 1.3 + dice.uniform(0.0, 1.0))
            )
            for pid in chosen
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        zombies += len(chosen)
    return zombies


def busy(effects) -> set[int]:
    return {effect.pid for effect in effects if effect.end is None}


@pytest.mark.chaos
@pytest.mark.scenario(4)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("reckless", [False, True], ids=["careful", "reckless"])
def test_a_worker_that_wakes_up_after_its_lease_changes_nothing(stage, one_seed, long, reckless):
    """A reckless one does not even look at its lease: then the fence in the store alone protects."""
    run = stage(one_seed, workers=4, slots=3, lease=LEASE, beat=0.5, reckless=reckless)
    run.begin()
    rounds, at_once = (50, 2) if long else (3, 2)
    run.produce(Order("a", "together", rounds * 30, ms=900, batch=5, pause=0.2, seed=one_seed))
    zombies = freeze_rounds(run, one_seed, rounds, at_once)

    evidence = run.verdict(within=120)

    assert zombies == rounds * at_once
    lost = [tried for tried in evidence.tables.tried if tried.error_class == "lost"]
    assert len(lost) >= zombies
    if reckless:
        assert "had moved on" in run.fleet.logs()
        ended = {(effect.job, effect.fence) for effect in evidence.effects if effect.how == "returned"}
        assert {(tried.job, tried.fence) for tried in lost} & ended, "no zombie finished its handler"
