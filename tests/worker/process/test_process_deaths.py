"""Handlers that kill their process, will not stop, or start others that will not: the job ends, the worker goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import process_tasks as tasks
import psutil
import pytest
from process_stage import ProcessStage, alive, gone
from worker_stage import until

from rota._core.job import State
from rota._core.retry import Retry

pytestmark = pytest.mark.slow  # real processes, each with a start of its own

STARTS = 30.0
GRACE = 0.5


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("segfault", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("kill", "SIGKILL"),
        ("exit", "exit code 7"),
        ("garbage", "SIGKILL"),
        ("closed", "exit code 70"),
    ],
)
async def test_a_child_s_death_ends_only_its_job_with_a_report(children: ProcessStage, how, kind):
    worker = await children.work()
    poison = await tasks.crash.using(max_attempts=1).enqueue(how)
    others = [await tasks.add.enqueue(number) for number in range(3)]
    dead = await children.ended(poison, STARTS)
    [attempt] = await children.store.attempts(dead.id)

    assert (dead.state, dead.error_class, dead.losses) == (State.DEAD, "crash", 1)
    assert (attempt.error_class, attempt.error_type) == ("crash", kind)
    assert f"about to go: {how}" in attempt.stack
    assert "memory: " in attempt.stack
    if how in ("segfault", "abort"):
        assert "process_tasks.py" in attempt.stack
    assert [(await children.ended(other, STARTS)).result for other in others] == [2, 3, 4]
    assert worker.desk.lanes[0].free == 5


@pytest.mark.scenario(7)
async def test_a_job_that_kills_its_child_each_time_is_dead_after_three_losses(children: ProcessStage):
    await children.work()
    dead = await children.ended(await tasks.crash.enqueue("kill"), STARTS)

    assert (dead.state, dead.losses, dead.attempt) == (State.DEAD, 3, 3)
    assert "3 times" in (dead.reason or "")
    assert [attempt.error_type for attempt in await children.store.attempts(dead.id)] == ["SIGKILL"] * 3


async def test_work_that_must_not_happen_twice_is_not_run_again_after_a_crash(
    children: ProcessStage, monkeypatch
):
    monkeypatch.setattr(tasks.crash, "retry", Retry(lost=False))
    await children.work()
    dead = await children.ended(await tasks.crash.enqueue("kill"), STARTS)

    assert (dead.state, dead.losses, dead.attempt) == (State.DEAD, 1, 1)


@pytest.mark.scenario(12)
@pytest.mark.parametrize("how", ["gil", "stubborn", "double fork"])
async def test_a_plain_function_that_will_not_stop_ends_at_its_timeout_and_grace(
    children: ProcessStage, tmp_path: Path, how
):
    await children.work(stop_grace=GRACE)
    # A child is warm: from here on only the handler's own time counts.
    await children.ended(await tasks.add.enqueue(1), STARTS)
    note = tmp_path / "note"
    began = time.monotonic()
    handle = await tasks.hold.enqueue(how, str(note))
    others = [await tasks.innocent.enqueue(number) for number in range(20)]
    assert all([(await children.ended(other, STARTS)).state is State.COMPLETED for other in others])
    job = await children.ended(handle, STARTS)
    took = time.monotonic() - began

    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert 0.3 + GRACE <= took < 0.3 + GRACE + 2
    [attempt] = await children.store.attempts(job.id)
    assert "process_tasks.py" in (attempt.stack or "")
    if how == "double fork":
        assert gone(int(note.read_text()))
    assert (await children.ended(await tasks.add.enqueue(2), STARTS)).result == 4


@pytest.mark.scenario(12)
async def test_what_a_timed_out_attempt_left_behind_is_gone_before_the_next_and_its_slot_is_left_alone(
    children: ProcessStage, tmp_path: Path
):
    await children.work(lanes={"general": 1}, stop_grace=GRACE)
    handle = await tasks.hold_then_look.enqueue(str(tmp_path / "note"))
    next_one = await tasks.nap.enqueue(GRACE + 1)
    job, rested = await children.ended(handle, STARTS), await children.ended(next_one, STARTS)

    assert (job.state, job.attempt, job.result) == (State.COMPLETED, 2, False)
    [attempt] = await children.store.attempts(job.id)
    assert attempt.error_class == "timeout"
    assert (rested.attempt, rested.result) == (1, "rested")


@pytest.mark.parametrize("how", ["blocking", "stubborn"])
async def test_a_coroutine_that_will_not_stop_ends_at_its_timeout_and_grace(children: ProcessStage, how):
    await children.work(stop_grace=GRACE)
    await children.ended(await tasks.add.enqueue(1), STARTS)
    began = time.monotonic()
    job = await children.ended(await tasks.hold_later.enqueue(how), STARTS)

    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert time.monotonic() - began < 0.3 + GRACE + 2


@pytest.mark.parametrize("task", [tasks.hold, tasks.hold_later])
async def test_a_handler_that_can_stop_cleans_up_at_its_timeout(children: ProcessStage, tmp_path, task):
    await children.work(stop_grace=20.0)
    job = await children.ended(await task.enqueue("polite", str(tmp_path / "note")), STARTS)

    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert (tmp_path / "note").read_text() == "cleaned up"


async def test_a_cancel_reaches_a_handler_in_a_child(children: ProcessStage, tmp_path):
    await children.work(stop_grace=20.0)
    handle = await tasks.until_cancelled.enqueue(str(tmp_path / "note"))
    await until((tmp_path / "note").exists, STARTS)
    await handle.cancel("enough")
    job = await children.ended(handle, STARTS)

    assert (job.state, job.reason) == (State.CANCELLED, "enough")


@pytest.mark.parametrize("task", [tasks.leave_a_daemon, tasks.leave_a_program])
async def test_what_a_handler_starts_ends_with_its_job(children: ProcessStage, tmp_path, task):
    await children.work()
    job = await children.ended(await task.enqueue(str(tmp_path / "note")), STARTS)

    assert job.state is State.COMPLETED
    assert gone(int((tmp_path / "note").read_text()))


async def test_a_copy_that_a_handler_forked_does_not_answer_for_it(children: ProcessStage):
    await children.work()
    job = await children.ended(await tasks.fork_and_return.enqueue(), STARTS)

    assert job.result == "the original"


async def test_limits_of_memory_processor_and_files_are_kept(children: ProcessStage):
    await children.work()
    small, large = await tasks.hog.enqueue(16), await tasks.hog.enqueue(2048)
    many, spinning = await tasks.open_many.enqueue(), await tasks.spin.enqueue()

    assert (await children.ended(small, STARTS)).result == 16 * 1024 * 1024
    assert "MemoryError" in [a.error_type for a in await _attempts(children, large)]
    assert "Too many open files" in (await children.ended(many, STARTS)).error_message
    [attempt] = await _attempts(children, spinning)
    assert (attempt.error_class, attempt.error_type) == ("crash", "SIGXCPU")
    assert "more processor time" in attempt.message


async def _attempts(stage: ProcessStage, handle):
    await stage.ended(handle, STARTS)
    return await stage.store.attempts(handle.id)


async def test_no_child_outlives_a_worker_that_stops(children: ProcessStage, tmp_path):
    others = {
        child.pid for child in psutil.Process().children(recursive=True)
    }  # a browser of other tests, say
    worker = await children.work()
    await children.ended(await tasks.add.enqueue(1), STARTS)
    pids = {child.pid for child in psutil.Process().children(recursive=True)} - others
    await children.stop(worker)

    assert pids
    assert all(gone(pid) for pid in pids)


async def test_a_stop_interrupts_the_child_and_hands_its_job_back(children: ProcessStage, tmp_path):
    worker = await children.work(stop_grace=20.0)
    handle = await tasks.until_cancelled.enqueue(str(tmp_path / "note"))
    await until((tmp_path / "note").exists, STARTS)
    code = await children.stop(worker, now=True)
    [job] = await children.store.get([handle.id])

    assert (code, job.state, job.attempt, job.losses) == (1, State.PENDING, 0, 0)
    assert gone(int((tmp_path / "note").read_text()))


async def test_a_job_that_is_no_longer_ours_is_ended_with_its_child_at_once(children: ProcessStage, tmp_path):
    worker = await children.work()
    note = tmp_path / "note"
    await tasks.until_cancelled.enqueue(str(note))
    await until(note.exists, STARTS)
    worker.custody.fenced(worker.desk.session, "the test says so")

    assert gone(int(note.read_text()), 1.0)


async def test_a_signal_from_outside_does_not_end_a_job(children: ProcessStage, tmp_path):
    """A service manager that ends a group signals the children too; when they stop is the worker's business."""
    await children.work()
    note = tmp_path / "note"
    handle = await tasks.until_cancelled.enqueue(str(note))
    await until(note.exists, STARTS)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(int(note.read_text()), number)
    time.sleep(0.1)

    assert alive(int(note.read_text()))
    await handle.cancel()
    assert (await children.ended(handle, STARTS)).state is State.CANCELLED
