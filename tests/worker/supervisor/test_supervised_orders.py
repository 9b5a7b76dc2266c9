"""Orders from afar to the children of a supervisor: who was asked to go is not replaced."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from supervisor_stage import Supervised, ask, eventually

from rota._core.actions import Audit
from rota._core.job import State
from rota._core.worker_order import OrderVerb

pytestmark = pytest.mark.slow  # real processes, each with a start of its own

DRAIN, STOP = OrderVerb.DRAIN, OrderVerb.STOP


def order(stage: Any, pid: int, verb: OrderVerb) -> None:
    """Ask the child with this process for something, as soon as its session is there."""
    query = "SELECT id FROM rota.sessions WHERE pid = %s AND ended_at IS NULL"
    [session] = eventually(lambda: stage.connection.execute(query, [pid]).fetchone())
    audit = Audit("ann", verb.value, None)
    assert stage.do(lambda store: store.order_worker(session, verb, audit))


def started(worker: Supervised) -> int:
    """How many children ever began to work."""
    return worker.said.count("worker started")


def test_a_drained_worker_finishes_its_job_begins_no_other_and_ends_with_zero(stage):
    worker = stage.work("-c", "1", grace=0.3)
    [child] = worker.working()
    running = stage.enqueue("sleepy", {"seconds": 2.0})
    stage.begun("sleepy")
    order(stage, child, DRAIN)
    eventually(lambda: "nobody takes its place" in worker.said)
    later = stage.enqueue("sleepy", {"seconds": 0.0})

    assert worker.end() == 0
    assert stage.job(running).state is State.COMPLETED, "although it took longer than the grace of a stop"
    assert (stage.job(later).state, len(stage.marks("sleepy"))) == (State.PENDING, 1)
    assert started(worker) == 1
    assert "every child was asked to go: this worker ends when they have." in worker.said
    assert stage.rows("SELECT count(*) FROM rota.sessions WHERE ended_at IS NULL") == [(0,)]


def test_of_two_children_the_other_goes_on_and_the_drained_one_is_not_replaced(stage):
    worker = stage.work("--processes", "2", "--health-port", "127.0.0.1:0")
    first, second = worker.working(2)
    order(stage, first, DRAIN)
    eventually(lambda: worker.children() == [second])

    assert stage.ended(stage.enqueue("quick")).result == second
    status, words = ask(worker.port(), "/readyz")
    assert (status, "was asked from afar to go, and has gone" in words) == (200, True)
    order(stage, second, DRAIN)
    assert worker.end() == 0
    assert started(worker) == 2


def test_a_reload_renews_those_who_stay_and_calls_nobody_back(stage):
    worker = stage.work("--processes", "2")
    first, second = worker.working(2)
    order(stage, first, DRAIN)
    eventually(lambda: worker.children() == [second])
    worker.signal(signal.SIGHUP)
    eventually(lambda: len(now := worker.children()) == 1 and second not in now)

    assert started(worker) == 3
    assert worker.stop() == 0


def test_a_stopped_child_hands_back_after_the_grace_what_it_could_not_finish(stage):
    worker = stage.work(grace=0.3)
    [child] = worker.working()
    handle = stage.enqueue("sleepy", {"seconds": 60.0})
    stage.begun("sleepy")
    order(stage, child, STOP)

    assert worker.end() == 1
    job = stage.job(handle)
    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert started(worker) == 1


def test_a_child_that_stands_still_hears_of_it_through_its_supervisor_and_is_not_replaced(stage):
    worker = stage.work(grace=0.5)
    [child] = worker.working()
    handle = stage.enqueue("hold_gil", {"seconds": 60.0}, max_attempts=1)
    stage.begun("hold_gil")
    order(stage, child, STOP)

    assert worker.end() == 1
    job = stage.job(handle)
    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert "it did not stop in time" in worker.said
    assert started(worker) == 1


def test_a_child_that_dies_while_it_drains_is_not_replaced(stage):
    worker = stage.work()
    [child] = worker.working()
    stage.enqueue("sleepy", {"seconds": 60.0})
    stage.begun("sleepy")
    order(stage, child, DRAIN)
    eventually(lambda: "nobody takes its place" in worker.said)
    os.kill(child, signal.SIGKILL)

    assert worker.end() == 1
    assert started(worker) == 1


def test_every_child_tells_of_its_own_memory(stage):
    worker = stage.work("--processes", "2")
    worker.working(2)
    stage.ended(stage.enqueue("grow", {"megabytes": 150}))
    query = "SELECT memory FROM rota.sessions WHERE ended_at IS NULL ORDER BY memory"

    def told() -> bool:
        found = [memory for (memory,) in stage.rows(query)]
        return len(found) == 2 and None not in found and found[1] - found[0] > 100 << 20

    eventually(told)
    assert stage.rows(query)[0][0] > 5_000_000
