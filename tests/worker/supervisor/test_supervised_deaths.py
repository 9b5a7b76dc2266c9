"""Children that die, and a supervisor that dies: nothing is lost, and nobody waits for a lease."""

from __future__ import annotations

import os
import re
import signal
import time

import psutil
import pytest
from supervisor_stage import ask, eventually

from rota._core.job import State

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.req("L39")
def test_the_jobs_of_a_killed_child_run_elsewhere_at_once_and_lose_no_attempt(stage):
    worker = stage.work("--processes", "2")
    first, second = worker.working(2)
    handle = stage.enqueue("sleepy", {"seconds": 1.0})
    killed = stage.begun("sleepy")
    os.kill(killed, signal.SIGKILL)
    at = time.monotonic()
    stage.begun("sleepy", 2)
    waited = time.monotonic() - at
    job = stage.ended(handle)

    assert waited < 3, "the lease is 15 s"
    assert (job.state, job.attempt) == (State.COMPLETED, 1)
    assert f"(pid {killed}) was killed by SIGKILL" in worker.said
    assert f"'sleepy' (job {handle.id}" in worker.said
    replaced = eventually(lambda: len(found := worker.children()) == 2 and found)
    assert ({first, second} - {killed}) < set(replaced)
    assert worker.stop() == 0


def test_a_job_that_was_waiting_behind_the_crash_is_no_suspect(stage):
    poison = stage.enqueue("crash_once", {"number": int(signal.SIGKILL)}, max_attempts=1)
    behind = [stage.enqueue("quick") for _ in range(4)]
    stage.work("-c", "5")
    jobs = [stage.ended(handle) for handle in behind]

    assert [(job.state, job.attempt, job.losses) for job in jobs] == [(State.COMPLETED, 1, 0)] * 4
    ended = stage.ended(poison)
    assert (ended.state, ended.attempt) == (State.COMPLETED, 1)
    assert "its worker died with it" in stage.rows("SELECT message FROM rota.failed_attempts")[0][0]


@pytest.mark.scenario(7)
def test_a_poison_job_kills_one_child_once_and_takes_nobody_with_it(stage):
    before = stage.enqueue_many("sleepy", {"seconds": 0.01}, times=100)
    poison = stage.enqueue("poison", max_attempts=9)
    after = stage.enqueue_many("sleepy", {"seconds": 0.01}, times=100)
    worker = stage.work("-c", "5")
    died = stage.ended(poison, 40)
    jobs = [stage.ended(handle, 30) for handle in before + after]

    assert (died.state, died.error_class, died.losses) == (State.DEAD, "crash", 3)
    assert len(stage.marks("poison")) == 3
    assert worker.said.count(" It was running: ") == 1
    assert {(job.state, job.attempt) for job in jobs} == {(State.COMPLETED, 1)}
    assert worker.stop() == 0


def test_a_crash_report_names_the_signal_the_stack_and_the_last_lines(stage):
    stage.enqueue("crash_once", {"number": int(signal.SIGSEGV)}, max_attempts=1)
    worker = stage.work()
    eventually(lambda: "was killed by SIGSEGV" in worker.said)
    eventually(lambda: stage.rows("SELECT 1 FROM rota.failed_attempts"))
    [(message, stack), *_] = stage.rows("SELECT message, stack FROM rota.failed_attempts ORDER BY ended_at")

    assert "SIGSEGV" in message
    assert "jobs.py" in stack
    assert "in crash_once" in stack
    assert "worker started" in stack, "the last lines of its log"


@pytest.mark.req("W38")
def test_several_children_share_the_work_and_none_runs_a_job_twice(stage):
    worker = stage.work("--processes", "3", "-c", "3")
    worker.working(3)
    handles = [stage.enqueue("sleepy", {"seconds": 0.05}) for _ in range(60)]
    for handle in handles:
        stage.ended(handle)
    pids = stage.marks("sleepy")

    assert len(pids) == 60
    assert len(set(pids)) == 3
    assert worker.stop() == 0


def test_when_the_supervisor_is_killed_its_children_are_gone_at_once_and_others_take_the_jobs(stage):
    worker = stage.work("--processes", "2", lease=2)
    children = worker.working(2)
    handle = stage.enqueue("hold_gil", {"seconds": 30.0}, max_attempts=3)
    stage.begun("hold_gil")
    worker.popen.kill()
    at = time.monotonic()
    eventually(lambda: all(gone(pid) for pid in children), 2)

    assert time.monotonic() - at < 1.5
    stage.work(lease=2)
    assert stage.begun("hold_gil", 2) not in children
    assert stage.job(handle).attempt == 2


def test_what_the_jobs_of_a_killed_child_had_started_is_ended_with_it(stage):
    worker = stage.work()
    [child] = worker.working()
    stage.enqueue("start_program")
    note = stage.directory / "program"
    program = int(eventually(lambda: note.exists() and note.read_text()))
    assert not gone(program)
    os.kill(child, signal.SIGKILL)

    assert eventually(lambda: gone(program), 5)
    assert worker.stop() == 0


def test_a_child_that_dies_again_and_again_is_restarted_ever_more_slowly_and_this_can_be_seen(stage):
    broken = stage.directory / "broken"
    (stage.directory / "jobs.py").write_text(
        "import os\nif os.path.exists('broken'):\n    os._exit(3)\nfrom rota import Rota\napp = Rota()\n"
    )
    worker = stage.work("--health-port", "0")
    [child] = worker.working()
    port = worker.port()
    broken.touch()
    os.kill(child, signal.SIGKILL)
    eventually(lambda: worker.said.count("exited with code 3") == 2)
    pauses = [float(seconds) for seconds in re.findall(r"Another starts in (\d+\.\d) s", worker.said)]

    assert "was killed by SIGKILL" in worker.said
    assert worker.said.count("Another starts now.") == 1
    assert len(pauses) == 2
    assert 0.5 <= pauses[0] < pauses[1] <= 2.0
    assert eventually(lambda: re.search(r"died \d times", ask(port, "/readyz")[1]))
    assert [ask(port, path)[0] for path in ("/readyz", "/livez", "/startupz")] == [503, 200, 200]
    broken.unlink()
    eventually(lambda: worker.said.count("worker started") == 2)
    assert worker.stop() == 0
