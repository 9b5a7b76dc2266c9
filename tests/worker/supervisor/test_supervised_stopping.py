"""Stops, replacements and reloads of a supervised worker."""

from __future__ import annotations

import os
import signal
import time

import pytest
from supervisor_stage import JOBS, eventually

from rota._core.job import State

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


@pytest.mark.req("L37")
def test_the_first_signal_lets_jobs_finish_and_the_second_hands_them_back_at_once(stage):
    worker = stage.work()
    worker.working()
    short, long = stage.enqueue("plain", {"seconds": 1.0}), stage.enqueue("sleepy", {"seconds": 60.0})
    stage.begun("plain")
    stage.begun("sleepy")
    worker.signal(signal.SIGTERM)
    assert stage.ended(short).state is State.COMPLETED
    assert worker.popen.poll() is None
    worker.signal(signal.SIGTERM)
    at = time.monotonic()

    assert worker.end() == 1
    assert time.monotonic() - at < 4
    job = stage.job(long)
    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert stage.rows("SELECT count(*) FROM rota.sessions WHERE ended_at IS NULL") == [(0,)]


def test_a_signal_to_every_process_of_the_service_is_still_a_graceful_stop(stage):
    worker = stage.work()
    [child] = worker.working()
    handle = stage.enqueue("sleepy", {"seconds": 1.0})
    stage.begun("sleepy")
    for pid in (child, worker.popen.pid, child):
        os.kill(pid, signal.SIGTERM)

    assert worker.end() == 0
    assert stage.job(handle).state is State.COMPLETED


@pytest.mark.req("L37")
def test_a_child_that_cannot_hear_the_stop_is_ended_after_the_grace_and_its_job_handed_back(stage):
    worker = stage.work(grace=0.5)
    worker.working()
    handle = stage.enqueue("hold_gil", {"seconds": 60.0}, max_attempts=1)
    stage.begun("hold_gil")
    time.sleep(1.0)  # until its loop counts as stuck
    worker.signal(signal.SIGTERM)
    at = time.monotonic()

    assert worker.end() == 1
    assert time.monotonic() - at < 5
    job = stage.job(handle)
    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert "it did not stop in time" in worker.said


def test_a_child_that_somebody_stops_by_hand_is_replaced_without_a_fuss(stage):
    worker = stage.work()
    [child] = worker.working()
    os.kill(child, signal.SIGTERM)
    [another] = worker.working(2)

    assert another != child
    assert "error" not in worker.said
    assert worker.stop() == 0


def test_children_are_replaced_after_so_many_jobs_and_none_is_lost(stage):
    worker = stage.work("--max-jobs", "20", "-c", "5")
    worker.working()
    handles = []
    while len(set(stage.marks("sleepy"))) < 3:
        handles += stage.enqueue_many("sleepy", {"seconds": 0.05}, times=20)
        time.sleep(0.2)
        assert len(handles) < 2000, worker.said
    jobs = [stage.ended(handle, 30) for handle in handles]

    assert {(job.state, job.attempt) for job in jobs} == {(State.COMPLETED, 1)}
    assert len(stage.marks("sleepy")) == len(handles)
    assert "jobs (--max-jobs 20). Its replacement starts now." in worker.said
    assert worker.stop() == 0
    assert "handed back" not in worker.said


def test_a_child_that_uses_too_much_memory_is_replaced_while_it_finishes_its_jobs(stage):
    worker = stage.work("--max-rss", "180MB", grace=0.3)
    worker.working()
    running = stage.enqueue("sleepy", {"seconds": 2.0})
    before = stage.begun("sleepy")
    stage.enqueue("grow", {"megabytes": 200})
    worker.working(2)
    after = stage.ended(stage.enqueue("quick")).result

    assert after != before
    job = stage.ended(running)
    assert (job.result, job.attempt) == (before, 1), (
        "the old one finished its work, although it took longer than the grace of a stop"
    )
    assert "MB (--max-rss 180 MB). Its replacement starts now." in worker.said
    eventually(lambda: worker.children() == [after])


def test_a_memory_limit_below_what_the_app_needs_is_pointed_out_instead_of_replacing_for_ever(stage):
    worker = stage.work("--max-rss", "10MB")
    [child] = worker.working()
    eventually(lambda: "no child is replaced for its memory any more" in worker.said)

    assert worker.children() == [child]


def test_sighup_brings_new_code_in_without_a_gap(stage):
    worker = stage.work("--processes", "2")
    before = set(worker.working(2))
    running = stage.enqueue("sleepy", {"seconds": 2.0})
    stage.begun("sleepy")
    (stage.directory / "jobs.py").write_text(
        JOBS + '\n@app.task\ndef fresh() -> str:\n    return "new code"\n'
    )
    worker.signal(signal.SIGHUP)
    handle = stage.enqueue("fresh")

    assert stage.ended(handle).result == "new code"
    assert stage.ended(running).attempt == 1
    eventually(lambda: len(now := set(worker.children())) == 2 and not now & before)
    assert worker.stop() == 0


def test_new_code_that_cannot_start_leaves_the_old_children_at_work(stage):
    worker = stage.work()
    [child] = worker.working()
    (stage.directory / "jobs.py").write_text("def broken(:")
    worker.signal(signal.SIGHUP)
    eventually(lambda: "The old ones go on. Correct that, and ask again." in worker.said)

    assert "SyntaxError" in worker.said
    assert stage.ended(stage.enqueue("quick")).result == child


def test_sigusr1_says_what_runs(stage):
    worker = stage.work()
    [child] = worker.working()
    handle = stage.enqueue("plain", {"seconds": 2.0})
    stage.begun("plain")
    worker.signal(signal.SIGUSR1)
    eventually(lambda: f"child 1 (pid {child}) runs 'plain' (job {handle.id}) for " in worker.said)

    assert "child 1 is ready" in worker.said


def test_without_a_supervisor_jobs_run_in_the_process_of_the_command(stage):
    worker = stage.work("--processes", "0")
    eventually(lambda: "worker started" in worker.said)

    assert stage.ended(stage.enqueue("quick")).result == worker.popen.pid
    assert worker.stop() == 0
