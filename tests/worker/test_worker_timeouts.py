"""Timeouts finalise an attempt, whatever its handler does about it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from worker_stage import until

from build import a_stored_job
from rota import Retry, Snooze, current_job
from rota._core.job import State
from rota.worker.deadlines import FEWEST_TO_SWEEP, Deadlines
from rota.worker.execution import Run


@pytest.mark.req("D15", "L21")
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_job_that_runs_too_long_is_stopped_and_counts_as_timed_out(stage, kind):
    if kind == "async":

        @stage.app.task(name="slow", timeout=0.05, retry=1)
        async def slow() -> None:
            await asyncio.sleep(60)

    else:

        @stage.app.task(name="slow", timeout=0.05, retry=1)
        def slow() -> None:
            while not current_job().cancel_requested:
                time.sleep(0.005)

    worker = await stage.work()
    job = await stage.ended(await slow.enqueue())

    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert job.error_message.startswith("it ran longer than its timeout of 0.05 s.")
    assert (worker.runner.abandoned, worker.runner.threads.zombies) == (0, 0)


@pytest.mark.req("L21")
async def test_a_job_may_have_a_timeout_of_its_own(stage):
    @stage.app.task(timeout=60, retry=1)
    async def slow() -> None:
        await asyncio.sleep(60)

    await stage.work()
    job = await stage.ended(await slow.using(timeout=0.05).enqueue())

    assert "its timeout of 0.05 s" in job.error_message


async def test_a_timed_out_attempt_is_tried_again_like_any_other_failure(stage):
    @stage.app.task(timeout=0.05, retry=Retry(attempts=2, base=0.0))
    async def slow_at_first() -> str:
        if current_job().attempt == 1:
            await asyncio.sleep(60)
        return "in time"

    await stage.work()

    assert await (await slow_at_first.enqueue()) == "in time"


@pytest.mark.parametrize("how", ["return", "raise", "snooze"])
async def test_whatever_a_handler_makes_of_being_stopped_it_has_timed_out(stage, how):
    @stage.app.task(timeout=0.05, retry=1)
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if how == "raise":
                raise ValueError("interrupted") from None
            if how == "snooze":
                raise Snooze(1) from None
        return "done after all"

    await stage.work()
    job = await stage.ended(await stubborn.enqueue())

    assert (job.state, job.error_class) == (State.DEAD, "timeout")


@pytest.mark.scenario(12)
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_handler_that_does_not_stop_is_left_behind_and_its_late_end_changes_nothing(
    stage, kind, caplog
):
    let_go = threading.Event()
    ended: list[str] = []

    if kind == "async":

        @stage.app.task(name="deaf", timeout=0.02, retry=1)
        async def deaf() -> str:
            while not let_go.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
            ended.append("late")
            return "too late"

    else:

        @stage.app.task(name="deaf", timeout=0.02, retry=1)
        def deaf() -> str:
            let_go.wait(10)
            ended.append("late")
            return "too late"

    @stage.app.task
    async def next_one() -> str:
        return "ran"

    worker = await stage.work(lanes={"general": 1}, stop_grace=0.05)
    handle = await deaf.enqueue()
    job = await stage.ended(handle)

    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert await (await next_one.enqueue()) == "ran", "its slot was not freed"
    assert worker.runner.abandoned == 1
    assert worker.runner.threads.zombies == (1 if kind == "thread" else 0)
    assert f"job {handle.id} (deaf) was told to stop (timeout) and did not" in caplog.text

    let_go.set()
    await until(lambda: ended == ["late"])
    await until(lambda: worker.runner.threads.zombies == 0)
    assert (await stage.job(handle)).version == job.version
    assert worker.desk.fenced == 0


async def test_a_thread_behind_middleware_is_waited_for_like_any_other(stage):
    diary: list[str] = []

    @stage.app.middleware
    async def around(job, call_next):
        try:
            return await call_next()
        finally:
            diary.append("middleware left")

    @stage.app.task(timeout=0.05, retry=1)
    def slow() -> None:
        while not current_job().cancel_requested:
            time.sleep(0.005)
        time.sleep(0.1)
        diary.append("thread ended")

    worker = await stage.work()
    job = await stage.ended(await slow.enqueue())

    assert (job.state, job.error_class) == (State.DEAD, "timeout")
    assert diary == ["thread ended", "middleware left"]
    assert (worker.runner.abandoned, worker.runner.threads.zombies) == (0, 0)


async def test_the_middleware_of_a_thread_that_never_stops_is_left_when_the_thread_is_left_behind(stage):
    """Its Task would outlive every cancellation, and `asyncio.run()` of a whole app would never end."""
    let_go, left = threading.Event(), asyncio.Event()

    @stage.app.middleware
    async def around(job, call_next):
        try:
            return await call_next()
        finally:
            left.set()

    @stage.app.task(timeout=0.02, retry=1)
    def deaf() -> None:
        let_go.wait(30)

    worker = await stage.work(stop_grace=0.05)
    job = await stage.ended(await deaf.enqueue())
    await asyncio.wait_for(left.wait(), 5)

    assert (job.state, job.error_class, worker.runner.threads.zombies) == (State.DEAD, "timeout", 1)
    let_go.set()
    await until(lambda: worker.runner.threads.zombies == 0)


async def test_a_handler_that_ends_in_time_is_left_alone(stage):
    @stage.app.task(timeout=0.2)
    async def brief() -> str:
        await asyncio.sleep(0.01)
        return "in time"

    await stage.work()
    results = [await (await brief.enqueue()) for _ in range(5)]
    await asyncio.sleep(0.25)

    assert results == ["in time"] * 5


async def test_deadlines_forget_ended_runs_long_before_their_time():
    deadlines = Deadlines(asyncio.get_running_loop(), lambda run: None)
    for _ in range(20 * FEWEST_TO_SWEEP):
        run = Run(a_stored_job(), None, 0.0)
        deadlines.set(run, 3600.0)
        run.ended = True

    assert len(deadlines) <= FEWEST_TO_SWEEP
    deadlines.close()


async def test_deadlines_come_in_order_of_time_and_only_the_latest_of_a_run_counts():
    due: list[str] = []
    names: dict[Run, str] = {}
    deadlines = Deadlines(asyncio.get_running_loop(), lambda run: due.append(names[run]))
    first, second, moved = (Run(a_stored_job(), None, 0.0) for _ in range(3))
    names |= {first: "first", second: "second", moved: "moved"}
    deadlines.set(second, 0.04)
    deadlines.set(first, 0.02)
    deadlines.set(moved, 0.01)
    deadlines.set(moved, 0.06)
    await until(lambda: len(due) == 3)

    assert due == ["first", "second", "moved"]
    deadlines.close()
