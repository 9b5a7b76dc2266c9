"""F2, F9, F12: a worker dies, stands still or is told to stop between two steps of a job's life."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter

import pytest

from chaos.failpoints import FELL, Failpoint
from chaos.orders import Order

MOMENTS = ["after_claim", "before_settle", "after_settle"]


@pytest.mark.chaos
@pytest.mark.scenario(3)
@pytest.mark.timeout(900)
def test_a_worker_that_dies_between_claim_start_end_and_answer_loses_no_job(stage, seed, long):
    chance = {"after_claim": 0.03, "before_settle": 0.03, "after_settle": 0.03}
    points = [Failpoint(at, "die", chance[at], skip=1)._asdict() for at in MOMENTS]
    run = stage(seed, workers=3, slots=4, lease=2.0, beat=0.5, more={"CHAOS_FAIL": json.dumps(points)})
    run.begin()
    run.produce(
        Order("a", "together", 3000 if long else 250, ms=60, batch=10, mix=True, pause=0.1, seed=seed)
    )

    evidence = run.verdict(within=600 if long else 60)

    falls = Counter(death.code for death in evidence.deaths)[FELL]
    assert falls > 1  # by chance: fewer claims on a busy machine are fewer falls
    fallen_at = {moment for moment in MOMENTS if f"failpoint {moment}: die" in run.fleet.logs()}
    assert fallen_at == set(MOMENTS) if long else fallen_at
    lost = [tried for tried in evidence.tables.tried if tried.error_class == "lost"]
    unbegun = [
        tried
        for tried in lost
        if (tried.job, tried.fence) not in {(effect.job, effect.fence) for effect in evidence.effects}
    ]
    if "after_claim" in fallen_at:
        assert unbegun, "a worker died after its claim, and every job that it had claimed was begun"


@pytest.mark.chaos
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_very_job_at_whose_step_the_worker_dies_ends_once(stage, one_seed, moment):
    """The first worker falls with one job in its hands; the one that takes its place has no failpoint."""
    fallen: list[int] = []

    def once(place: int) -> dict[str, str]:
        fallen.append(place)
        return {"CHAOS_FAIL": Failpoint(moment, "die").as_json()} if len(fallen) == 1 else {}

    run = stage(one_seed, workers=1, slots=1, lease=1.5, beat=0.4, each=once)
    run.begin()
    run.enqueue(["a"])

    evidence = run.verdict(within=20)

    assert [death.code for death in evidence.deaths][:1] == [FELL]
    runs = evidence.runs[evidence.tables.rows[0].job]
    assert [(effect.attempt, effect.how) for effect in runs] == {
        "after_claim": [(2, "returned")],
        "before_settle": [(1, "returned"), (2, "returned")],
        "after_settle": [(1, "returned")],
    }[moment]


@pytest.mark.chaos
def test_a_worker_told_to_stop_while_a_claim_is_under_way_gives_its_jobs_back_uncounted(stage, one_seed):
    slow = Failpoint("after_claim", "stall", seconds=1.0).as_json()
    run = stage(
        one_seed, workers=1, slots=4, each=lambda place: {"CHAOS_FAIL": slow} if not run.fleet.pids else {}
    )
    run.begin()
    run.enqueue([f"a{number}" for number in range(4)])
    [pid] = run.fleet.living()
    run.until(lambda: "failpoint after_claim" in run.fleet.logs())
    run.fleet.signal(pid, signal.SIGTERM)
    told_at = time.time()

    evidence = run.verdict(within=30)

    first = evidence.deaths[0]
    assert (first.pid, first.code) == (pid, 0)
    assert first.at - told_at < 5, "it waited for more than the claim"
    assert {effect.pid for effect in evidence.effects} == {evidence.deaths[-1].pid}, (
        "it began what it had to give back"
    )
    assert {(row.attempt, row.version) for row in evidence.tables.rows} == {(1, 5)}
    assert evidence.tables.tried == []


@pytest.mark.chaos
def test_a_handler_that_blocks_the_loop_past_the_lease_costs_time_and_no_job(stage, one_seed, long):
    lease = 15.0 if long else 2.0
    run = stage(one_seed, workers=1, slots=4, lease=lease, beat=lease / 4)
    run.begin()
    run.enqueue(["before", "beside"], ms=100)
    run.enqueue(["blocks"], task="blocking", ms=round(4 * lease * 1000))
    run.seen(lambda effects: any(effect.key == "blocks" for effect in effects), within=20)
    run.enqueue(["behind"])
    run.until(lambda: "the event loop turns again" in run.fleet.logs(), within=5 * lease)

    evidence = run.verdict(within=5 * lease + 20)

    assert evidence.tables.tried == []
    assert {len(runs) for runs in evidence.runs.values()} == {1}
    assert "task 'blocking'" in run.fleet.logs()
