"""What a child says while its job runs, however much or oddly: it never costs the job its child."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import time

import process_tasks as tasks
import pytest
from process_stage import ProcessStage

from build import a_stored_job
from rota._core.job import State
from rota._core.outcome import Raised, Snoozed
from rota.errors import Cancel
from rota.worker.execution import Run
from rota.worker.executors.process import telling
from rota.worker.executors.process.ends import said
from rota.worker.executors.process.wire import Frames, Garbled

STARTS = 20.0


async def test_a_job_may_log_more_than_a_frame_holds_and_give_any_reason(caplog, children: ProcessStage):
    caplog.set_level(logging.INFO)
    handle = await tasks.chatter.enqueue(3_000_000)
    await children.work()
    job = await children.ended(handle, STARTS)

    assert (job.state, job.losses, job.attempt) == (State.CANCELLED, 0, 1)
    assert (job.reason or "").startswith("nobody reads this")
    [record] = [record for record in caplog.records if record.getMessage() == "it goes on and on"]
    assert record.body.endswith("[cut]")


async def test_a_log_filter_of_the_worker_that_fails_costs_no_child(
    children: ProcessStage, monkeypatch, capfd
):
    def odd(record) -> bool:
        raise AttributeError("request_id")

    monkeypatch.setattr(tasks.log, "filters", [odd])
    handle = await tasks.speak.enqueue("hello")
    await children.work()
    job = await children.ended(handle, STARTS)

    assert (job.state, job.losses) == (State.COMPLETED, 0)
    assert "AttributeError: request_id" in capfd.readouterr().err


async def test_children_are_watched_also_where_the_kernel_gives_no_descriptor_of_them(
    children: ProcessStage, monkeypatch
):
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    handles = [await tasks.add.enqueue(1), await tasks.crash.using(max_attempts=1).enqueue("exit")]
    await children.work()
    added, crashed = [await children.ended(handle, STARTS) for handle in handles]

    assert added.result == 3
    assert (crashed.state, crashed.error_class) == (State.DEAD, "crash")


async def test_a_child_for_which_no_descriptor_is_left_is_tried_again_later(
    children: ProcessStage, monkeypatch
):
    from rota.worker.executors.process import children as module
    from rota.worker.executors.process import keeping

    real, refused = keeping._last_words, []

    def once() -> int:
        if not refused:
            refused.append(True)
            raise OSError(errno.EMFILE, "Too many open files")
        return real()

    monkeypatch.setattr(keeping, "_last_words", once)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.05)
    handle = await tasks.add.enqueue(1)
    await children.work()
    job = await children.ended(handle, STARTS)

    assert refused
    assert (job.result, job.attempt) == (3, 1)


def test_a_reason_without_a_text_of_its_own_is_put_into_words():
    assert telling.raised(Cancel(LookupError("gone")), tasks.add.retry)["reason"] == "gone"  # type: ignore[arg-type]


@pytest.mark.parametrize("delay", [10**400, float("inf"), float("nan"), -1, "soon", None])
def test_a_delay_that_cannot_be_is_none(delay):
    run = Run(a_stored_job(), None, time.monotonic())

    assert said(run, {"how": "snooze", "delay": delay}, b"", 100) == Snoozed(0.0, None)


def test_what_is_nested_too_deeply_is_refused_like_anything_else_that_cannot_be_read():
    deep = b"[" * 100_000
    run = Run(a_stored_job(), None, time.monotonic())

    assert isinstance(said(run, {"how": "returned", "result": True}, deep, 1_000_000), Raised)
    with pytest.raises(Garbled):
        list(Frames(body_limit=0).feed(_a_frame(deep)))


def test_the_processor_time_of_a_job_stays_within_what_the_machine_allows():
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (50, 50))\n"
        "from rota.worker.executors.process.system import limit_cpu\n"
        "limit_cpu(100.0); print(resource.getrlimit(resource.RLIMIT_CPU))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert told.stdout.strip() == "(50, 50)"


def _a_frame(header: bytes) -> bytes:
    return len(header).to_bytes(4, "big") + (0).to_bytes(4, "big") + header
