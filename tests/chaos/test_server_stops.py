"""F14, F15: PostgreSQL is stopped, or loses a process, in the middle of everything, and comes back after a while."""

from __future__ import annotations

import time

import psycopg
import pytest

from chaos.orders import Order


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_server_that_stops_hard_costs_no_worker_and_no_job(stage_there, own_server, one_seed, long):
    run = stage_there(one_seed, workers=2, slots=8, beat=5.0 if long else 2.0)
    run.begin()
    stops, apart = (30, 20.0) if long else (2, 4.0)
    pause = stops * apart / 300
    counts = {"single": 300 if long else 100, "keyed": 600 if long else 200}
    for mode, count in counts.items():
        run.produce(Order(mode, mode, count, ms=80, batch=2, mix=True, pause=pause, seed=one_seed))
    run.seen(lambda effects: len(effects) > 10, within=30)
    for _ in range(stops):
        began = time.monotonic()
        run.nemesis.stop_server(own_server)
        time.sleep(max(0.0, apart - (time.monotonic() - began)))
    run.produced(300)

    evidence = run.verdict(within=90)

    assert run.fleet.exits == []
    assert {effect.how for effect in evidence.effects} <= {"returned", "Planned"}
    assert (
        len([entry for entry in evidence.entries if entry.key.startswith("keyed") and entry.acked])
        == counts["keyed"]
    )


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_server_that_recovers_from_a_killed_process_costs_no_worker_and_no_job(
    stage_there, own_server, one_seed, long
):
    run = stage_there(one_seed, workers=2, slots=8)
    run.begin()
    kills = 40 if long else 3
    run.produce(Order("keyed", "keyed", 20 * kills, ms=80, batch=2, pause=0.3, seed=one_seed))
    run.seen(lambda effects: len(effects) > 10, within=30)
    for _ in range(kills):
        run.until(lambda: answers(own_server.url))  # it may still recover from the kill before
        run.nemesis.kill_a_backend(own_server)
        time.sleep(run.nemesis.dice.uniform(0.5, 2.0))
    run.produced(300)

    evidence = run.verdict(within=90)

    assert own_server.log().count("terminated by signal 9") >= kills - 1
    assert run.fleet.exits == []
    assert {effect.how for effect in evidence.effects} == {"returned"}
    assert [entry for entry in evidence.entries if not entry.acked] == []
