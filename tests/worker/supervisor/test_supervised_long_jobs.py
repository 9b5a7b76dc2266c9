"""Healthy jobs that run for many leases: nobody takes them away, whatever they do to their process meanwhile."""

from __future__ import annotations

import pytest

from rota._core.job import State

LEASE, LEASES = 2.0, 5

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


@pytest.mark.scenario(5)
def test_jobs_that_wait_block_their_loop_or_hold_the_interpreter_for_many_leases_run_once(stage):
    """Beside a rival with free slots, who looks for lost jobs all the time."""
    worker = stage.work("--processes", "4", "-c", "1", lease=LEASE)
    worker.working(4)
    seconds = LEASE * LEASES
    handles = {
        task: stage.enqueue(task, {"seconds": seconds})
        for task in ("sleepy", "plain", "block_loop", "hold_gil")
    }
    for task in handles:
        stage.begun(task)
    rival = stage.work("-c", "4", lease=LEASE)
    rival.working()
    quick = stage.ended(stage.enqueue("quick"))
    jobs = {task: stage.ended(handle, seconds + 15) for task, handle in handles.items()}
    [(sessions, ended)] = stage.rows("SELECT count(*), count(ended_at) FROM rota.sessions")

    assert quick.state is State.COMPLETED
    for task, job in jobs.items():
        assert (job.state, job.attempt, job.losses) == (State.COMPLETED, 1, 0), task
        assert len(stage.marks(task)) == 1, f"{task} was begun twice"
    assert (sessions, ended) == (5, 0)
    assert "rescued" not in worker.said + rival.said
