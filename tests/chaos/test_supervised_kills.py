"""F4, F5: `rota worker` with its children; children and supervisors are killed at random instants."""

from __future__ import annotations

import pytest

from chaos.orders import Order


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_killing_children_and_supervisors_loses_no_job_and_leaves_no_process_behind(stage, seed, long):
    run = stage(seed, workers=2, slots=4, lease=4.0, beat=1.0, supervised=2)
    run.begin()
    run.produce(
        Order("a", "together", 3000 if long else 300, ms=120, batch=10, mix=True, pause=0.3, seed=seed)
    )
    run.seen(lambda effects: len({effect.pid for effect in effects}) >= 4, within=60)
    families: list[float] = []

    def kill_a_child() -> None:
        children = [child for pid in run.fleet.living() for child in run.fleet.children(pid)]
        if children and run.fleet.kill_child(child := run.nemesis.dice.choice(sorted(children))):
            run.nemesis.note(f"killed child {child}")

    def kill_a_supervisor() -> None:
        if living := run.fleet.living():
            pid = run.nemesis.dice.choice(living)
            run.nemesis.note(f"killing supervisor {pid} and watching its children")
            families.append(run.fleet.kill_family(pid) or 0.0)

    run.nemesis.every(1.0, kill_a_child)
    run.nemesis.every(3.0, kill_a_supervisor)
    run.produced(300)
    run.drained(300 if long else 10)

    evidence = run.verdict(within=90)

    assert len(run.nemesis.timeline) > 3
    assert max(families, default=0.0) < 2.0, "children outlived their supervisor"
    assert {tried.error_class for tried in evidence.tables.tried} <= {"crash", "lost", "retryable"}
    assert run.fleet.exits == []
