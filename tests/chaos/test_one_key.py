"""F34: a hundred callers, threads of several processes, enqueue one key at the same moment."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from itertools import pairwise

import psycopg
import pytest

PROCESSES, THREADS = 4, 25


def rush(run, how: str, rounds: int, apart: float) -> list[tuple[int, str, bool]]:
    """Let them all call; every answer that any of them got."""
    begin = time.time() + 4.0  # all have started by then
    told = {"how": how, "threads": THREADS, "rounds": rounds, "begin": begin, "apart": apart}
    names = [f"p{number}" for number in range(PROCESSES)]
    for process in [run.spawn("rush", name, {"name": name} | told) for name in names]:
        assert process.wait(timeout=300) == 0, [run.complained(name) for name in names]
    return [tuple(json.loads(line)) for name in names for line in run.said(name).splitlines()]


@pytest.mark.chaos
@pytest.mark.scenario(9)
@pytest.mark.req("W14")
@pytest.mark.timeout(900)
def test_a_hundred_callers_of_one_key_in_four_processes_make_one_job_while_workers_finish_it(
    stage, one_seed, long
):
    rounds = 200 if long else 8
    run = stage(one_seed, workers=1, slots=4)
    run.begin()

    answers = rush(run, "key", rounds, apart=0.4)
    evidence = run.verdict(within=30)

    by_round = defaultdict(list)
    for round_, job, created in answers:
        by_round[round_].append((job, created))
    assert len(by_round) == rounds
    for calls in by_round.values():
        assert len(calls) == PROCESSES * THREADS
        assert len({job for job, _ in calls}) == 1
        assert sum(created for _, created in calls) == 1
    assert len(evidence.tables.rows) == rounds


@pytest.mark.chaos
@pytest.mark.req("L12")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("until", "counts"), [("finished", "true"), ("started", "state <> 'running'")])
def test_a_unique_key_keeps_others_out_also_at_the_moment_its_holder_ends(
    stage, one_seed, long, until, counts
):
    rounds = 500 if long else 40
    run = stage(one_seed, workers=2, slots=4)
    with psycopg.connect(run.url) as connection:
        # The database itself stands guard: whoever stores a second one gets an error.
        connection.execute(f"CREATE UNIQUE INDEX guard ON rota.jobs (task, unique_key) WHERE {counts}")
    run.begin()

    answers = rush(run, until, rounds, apart=0.05)
    evidence = run.verdict(within=30)

    assert len(answers) == rounds * PROCESSES * THREADS
    made = {job for _, job, created in answers if created}
    assert made == {row.job for row in evidence.tables.rows} == {job for _, job, _ in answers}
    assert len(made) > rounds / 4, "the holder never ended while others called"
    if until == "finished":
        runs = sorted(evidence.effects, key=lambda effect: effect.start)
        overlaps = [(one, two) for one, two in pairwise(runs) if one.end > two.start]
        assert overlaps == []


@pytest.mark.chaos
@pytest.mark.scenario(9)
@pytest.mark.req("W15")
def test_another_tenant_has_its_own_job_and_other_arguments_are_a_conflict(fresh_database):
    """The same rush on the server alone: five tenants and two payloads race for one key, straight in SQL."""
    barrier = threading.Barrier(20)
    found: list[tuple[str, str]] = []

    def call(number: int) -> None:
        job = [{"task": "email", "key": "k", "tenant": f"t{number % 5}", "payload": {"n": number % 2}}]
        with psycopg.connect(fresh_database, autocommit=True) as connection:
            barrier.wait()
            [(_, _, stored)] = connection.execute(
                "SELECT * FROM rota.enqueue_jobs(%s::jsonb)", [json.dumps(job)]
            )
            found.append((f"t{number % 5}", stored))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    for tenant in {tenant for tenant, _ in found}:
        answers = sorted(stored for who, stored in found if who == tenant)
        assert answers == ["conflict", "conflict", "created", "duplicate"]
