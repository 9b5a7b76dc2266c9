"""Children whose loop or whole interpreter stands still: their jobs end in time, and everybody else goes on."""

from __future__ import annotations

import os
import signal
import time

import pytest
from supervisor_stage import eventually

from rota._core.job import State

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


@pytest.mark.scenario(12)
@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("block_loop", {"seconds": 60.0}),
        ("hold_gil", {"seconds": 60.0}),
        ("hold_gil", {"seconds": 60.0, "pause": 0.02}),
        ("hold_gil_in_thread", {"seconds": 60.0}),
    ],
    ids=[
        "blocks the loop",
        "holds the GIL at once",
        "holds the GIL after an await",
        "holds the GIL in a thread",
    ],
)
def test_a_job_that_cannot_be_stopped_ends_at_its_timeout_and_grace_while_others_go_on(stage, task, payload):
    worker = stage.work("--processes", "2", "-c", "2")
    children = worker.working(2)
    guilty = stage.enqueue(task, payload, timeout=1.0, max_attempts=1)
    culprit = stage.begun(task)
    at = time.monotonic()
    time.sleep(0.2)  # by now it holds on
    innocent = [stage.enqueue("quick") for _ in range(3)]
    for handle in innocent:
        assert stage.ended(handle, 5).result in set(children) - {culprit}, "the other child goes on"
    meanwhile = time.monotonic() - at
    job = stage.ended(guilty, 8)
    took = time.monotonic() - at
    [(message,)] = stage.rows("SELECT message FROM rota.failed_attempts")

    assert meanwhile < 2
    assert 1.3 < took < 6, "its timeout is 1 s, the grace 0.5 s"
    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert message.startswith("it ran longer than its timeout of 1 s and could not be stopped")
    assert (
        f"ending child {children.index(culprit) + 1} (pid {culprit}): job {guilty.id} (task '{task}')"
        in worker.said
    )
    assert "jobs.py, line" in worker.said
    assert worker.stop() == 0


def test_jobs_beside_one_that_cannot_be_stopped_are_handed_back_and_lose_no_attempt(stage):
    worker = stage.work("-c", "5", lease=60, beat=20)
    worker.working()
    beside = stage.enqueue("plain", {"seconds": 3.0})
    never_again = stage.enqueue("once", max_attempts=1)
    stage.begun("plain")
    stage.begun("once")
    stage.enqueue("hold_gil", {"seconds": 60.0}, timeout=1.0, max_attempts=1)
    job = stage.ended(beside)

    assert (job.state, job.attempt, job.losses) == (State.COMPLETED, 1, 0)
    assert len(stage.marks("plain")) == 2
    assert stage.ended(never_again).state is State.DEAD, "Retry(lost=False) says never again"
    assert len(stage.marks("once")) == 1


@pytest.mark.scenario(5)
def test_a_session_is_kept_alive_while_a_job_holds_the_interpreter_longer_than_the_lease(stage):
    worker = stage.work(lease=2)
    worker.working()
    handle = stage.enqueue("hold_gil", {"seconds": 4.5})
    job = stage.ended(handle)
    [(sessions, ended)] = stage.rows("SELECT count(*), count(ended_at) FROM rota.sessions")

    assert (job.state, job.attempt) == (State.COMPLETED, 1)
    assert (sessions, ended) == (1, 0)
    assert (
        f"something holds the interpreter, and these jobs run: task 'hold_gil' (job {handle.id})"
        in worker.said
    )
    assert "The supervisor keeps its session alive." in worker.said
    eventually(lambda: "turns again, after " in worker.said)
    assert stage.ended(stage.enqueue("quick")).state is State.COMPLETED, "and it works on"


def test_a_job_that_holds_the_interpreter_can_be_cancelled(stage):
    worker = stage.work()
    worker.working()
    handle = stage.enqueue("hold_gil", {"seconds": 60.0})
    stage.begun("hold_gil")
    stage.app.job(handle.id).cancel_sync("wrong input")
    stage.app.close_sync()
    job = stage.ended(handle, 8)

    assert (job.state, job.reason) == (State.CANCELLED, "wrong input")
    assert "was cancelled, and could not be stopped" in worker.said


def test_a_child_that_was_stopped_for_a_moment_loses_nothing(stage):
    worker = stage.work(lease=6)
    [child] = worker.working()
    handle = stage.enqueue("sleepy", {"seconds": 0.5})
    stage.begun("sleepy")
    os.kill(child, signal.SIGSTOP)
    eventually(lambda: "the whole process is stopped" in worker.said)
    os.kill(child, signal.SIGCONT)
    job = stage.ended(handle)

    assert (job.state, job.attempt, job.result) == (State.COMPLETED, 1, child)
    assert worker.children() == [child]


@pytest.mark.req("L39")
def test_a_child_that_stays_stopped_is_replaced_and_its_jobs_start_again(stage):
    worker = stage.work(lease=2)
    [child] = worker.working()
    handle = stage.enqueue("sleepy", {"seconds": 0.5})
    stage.begun("sleepy")
    os.kill(child, signal.SIGSTOP)
    job = stage.ended(handle)

    assert (job.state, job.attempt, job.losses) == (State.COMPLETED, 1, 0)
    assert job.result != child
    assert f"(pid {child}): it was stopped as a whole for 2 s" in worker.said
