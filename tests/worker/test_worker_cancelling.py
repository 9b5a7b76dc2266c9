"""Cancelling running jobs, from anywhere."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from worker_stage import Stage, until

from build import by_hand
from rota import Retry, current_job
from rota._core.actions import Verb
from rota._core.job import State
from rota.stores.contract import Answer
from rota.stores.memory import MemoryStore


class Unheard(MemoryStore):
    """A store without wake-ups: cancels are found by the heartbeat alone."""

    listen = property()  # type: ignore[assignment]


@pytest.fixture(params=["by hint", "by heartbeat"])
async def heard(request):
    stage = (
        Stage(Unheard()) if request.param == "by heartbeat" else Stage(MemoryStore(), lease=60.0, beat=30.0)
    )
    yield stage
    await stage.close()


async def ask_to_cancel(stage, handle, reason="enough"):
    job = await stage.seen(handle, lambda job: job.state is State.RUNNING)
    return await by_hand(stage.store, job, Verb.CANCEL, reason=reason)


async def test_a_running_coroutine_is_cancelled_and_the_reason_is_kept(heard):
    @heard.app.task
    async def long() -> None:
        await asyncio.sleep(60)

    await heard.work()
    handle = await long.enqueue()
    await ask_to_cancel(heard, handle)
    job = await heard.ended(handle)

    assert (job.state, job.reason, job.attempt) == (State.CANCELLED, "enough", 1)


@pytest.mark.parametrize("how", ["flag", "stop_if_cancelled"])
async def test_a_handler_in_a_thread_sees_the_wish_and_ends(heard, how):
    @heard.app.task
    def long() -> None:
        job = current_job()
        while not job.cancel_requested:
            if how == "stop_if_cancelled":
                job.stop_if_cancelled()
            time.sleep(0.005)
        job.stop_if_cancelled()

    await heard.work()
    handle = await long.enqueue()
    await ask_to_cancel(heard, handle)

    assert (await heard.ended(handle)).state is State.CANCELLED


async def test_a_cancelled_job_whose_handler_fails_is_cancelled_not_tried_again(stage):
    @stage.app.task(retry=Retry(attempts=5, base=0.0))
    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("in the clean-up")

    await stage.work()
    handle = await long.enqueue()
    await ask_to_cancel(stage, handle)
    job = await stage.ended(handle)

    assert (job.state, job.attempt) == (State.CANCELLED, 1)


@pytest.mark.scenario(13)
async def test_a_handler_that_returns_in_spite_of_a_cancel_has_succeeded(stage):
    @stage.app.task
    async def nearly_done() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done already"
        return "slept"

    await stage.work()
    handle = await nearly_done.enqueue()
    asked = await ask_to_cancel(stage, handle)
    job = await stage.ended(handle)

    assert asked.answer is Answer.APPLIED
    assert (job.state, job.result) == (State.COMPLETED, "done already")


@pytest.mark.scenario(13)
async def test_cancel_and_success_at_once_give_one_terminal_state(stage):
    @stage.app.task
    async def brief() -> None:
        await asyncio.sleep(0.002)

    await stage.work(lanes={"general": 20})
    handles = [await brief.enqueue() for _ in range(50)]
    for handle in handles:
        job = await stage.job(handle)
        if job.state is State.RUNNING:
            await by_hand(stage.store, job, Verb.CANCEL)
    ended = [await stage.ended(handle) for handle in handles]
    await asyncio.sleep(0.1)

    assert {job.state for job in ended} <= {State.COMPLETED, State.CANCELLED}
    assert [await stage.job(handle) for handle in handles] == ended, "a terminal state changed"


async def test_a_cancel_that_is_not_obeyed_is_forced_after_the_grace(stage):
    let_go = threading.Event()

    @stage.app.task
    def deaf() -> None:
        let_go.wait(10)

    worker = await stage.work(stop_grace=0.05)
    handle = await deaf.enqueue()
    await ask_to_cancel(stage, handle)
    job = await stage.ended(handle)
    let_go.set()

    assert (job.state, worker.runner.abandoned) == (State.CANCELLED, 1)
    await until(lambda: worker.runner.threads.zombies == 0)


async def test_a_forced_cancel_stops_the_handler_and_drops_what_it_would_write(stage):
    stopped: list[str] = []

    @stage.app.task
    async def long() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("yes")
            raise

    worker = await stage.work()
    handle = await long.enqueue()
    job = await stage.seen(handle, lambda job: job.state is State.RUNNING)
    await by_hand(stage.store, job, Verb.CANCEL, force=True)
    await until(lambda: stopped == ["yes"])
    await until(lambda: not worker.desk.busy)

    assert (await stage.job(handle)).state is State.CANCELLED
    assert (worker.desk.fenced, worker.desk.held) == (0, set())


async def test_a_job_that_comes_back_with_a_cancel_on_it_is_never_begun(in_memory):
    begun: list[int] = []
    stage = in_memory

    @stage.app.task
    async def unwanted() -> None:
        begun.append(1)

    handle = await unwanted.enqueue()
    book = stage.store._book
    book.put((await stage.job(handle))._replace(cancel_requested_at=await stage.store.now()))
    await stage.work()

    assert (await stage.ended(handle)).state is State.CANCELLED
    assert begun == []
