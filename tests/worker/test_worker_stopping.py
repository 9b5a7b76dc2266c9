"""Stopping: what runs is finished within the grace, the rest goes back uncounted."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from worker_stage import Stage, until

from rota import Retry, Snooze, current_job
from rota._core.job import State
from rota.stores.memory import MemoryStore


@pytest.mark.req("L26")
async def test_a_graceful_stop_finishes_what_runs_and_claims_nothing_more(stage):
    begun: list[int] = []

    @stage.app.task
    async def work(n: int) -> None:
        begun.append(n)
        await asyncio.sleep(0.1)

    handles = await work.enqueue_many(range(10))
    worker = await stage.work(lanes={"general": 3})
    await until(lambda: len(begun) == 3)
    code = await stage.stop(worker)
    jobs = [await stage.job(handle) for handle in handles]

    assert code == 0
    assert [job.state for job in jobs].count(State.COMPLETED) == len(begun) == 3
    assert {(job.state, job.attempt) for job in jobs if job.state is not State.COMPLETED} == {
        (State.PENDING, 0)
    }
    assert (await stage.store.sessions())[0].ended_at is not None


@pytest.mark.req("L26")
async def test_a_rolling_deploy_loses_nothing_and_counts_no_attempt(stage):
    runs: list[int] = []

    @stage.app.task(retry=1)
    async def work(n: int) -> None:
        await asyncio.sleep(0.005)
        runs.append(n)

    handles = await work.enqueue_many(range(120))
    worker = await stage.work(lanes={"general": 8})
    for _ in range(4):
        await asyncio.sleep(0.03)
        newer = await stage.work(lanes={"general": 8})
        assert await stage.stop(worker) == 0
        worker = newer
    for handle in handles:
        assert (await stage.ended(handle)).attempt == 1

    assert sorted(runs) == list(range(120))


async def test_beats_go_on_while_a_stop_waits_for_its_jobs():
    stage = Stage(MemoryStore(), lease=0.5, beat=0.1, grace=5.0)

    @stage.app.task
    async def long() -> str:
        await asyncio.sleep(1.2)
        return "finished"

    worker = await stage.work()
    handle = await long.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    code = await stage.stop(worker)

    assert (code, (await stage.job(handle)).result) == (0, "finished")


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_what_does_not_end_within_the_grace_is_interrupted_and_handed_back_uncounted(kind, caplog):
    stage = Stage(MemoryStore(), grace=0.1)

    if kind == "async":

        @stage.app.task(name="long")
        async def long() -> None:
            await asyncio.sleep(60)

    else:

        @stage.app.task(name="long")
        def long() -> None:
            while True:
                current_job().stop_if_cancelled()
                time.sleep(0.005)

    worker = await stage.work()
    handle = await long.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    code = await stage.stop(worker)
    job = await stage.job(handle)

    assert (code, job.state, job.attempt, job.losses) == (1, State.PENDING, 0, 0)
    assert job.reason == "worker is shutting down"
    assert "1 running jobs were interrupted and handed back" in caplog.text


async def test_an_interrupted_handler_may_still_say_how_its_attempt_ended():
    stage = Stage(MemoryStore(), grace=0.05)

    @stage.app.task
    async def polite() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise Snooze(100, "half done") from None

    @stage.app.task
    async def quick_witted() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "saved"
        return ""

    worker = await stage.work()
    first, second = await polite.enqueue(), await quick_witted.enqueue()
    for handle in (first, second):
        await stage.seen(handle, lambda job: job.state is State.RUNNING)
    code = await stage.stop(worker)
    snoozed, saved = await stage.job(first), await stage.job(second)

    assert (code, snoozed.snoozes, snoozed.reason) == (0, 1, "half done")
    assert (saved.state, saved.result) == (State.COMPLETED, "saved")


async def test_a_second_stop_hands_back_at_once():
    stage = Stage(MemoryStore(), grace=60.0)

    @stage.app.task
    async def long() -> None:
        await asyncio.sleep(60)

    worker = await stage.work()
    handle = await long.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    worker.stop()
    await asyncio.sleep(0.05)
    began = time.monotonic()
    code = await stage.stop(worker, now=True)

    assert (code, (await stage.job(handle)).attempt) == (1, 0)
    assert time.monotonic() - began < 1.0


@pytest.mark.parametrize(("lost", "state", "losses"), [(True, State.PENDING, 0), (False, State.DEAD, 1)])
async def test_a_thread_that_cannot_be_stopped_is_handed_back_unless_it_must_never_run_twice(
    lost, state, losses
):
    stage = Stage(MemoryStore(), grace=0.05)
    let_go = threading.Event()

    @stage.app.task(retry=Retry(lost=lost))
    def deaf() -> None:
        let_go.wait(10)

    worker = await stage.work()
    handle = await deaf.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    code = await stage.stop(worker)
    let_go.set()
    job = await stage.job(handle)

    assert (code, job.state, job.losses) == (1, state, losses)


async def test_jobs_that_arrive_during_a_stop_are_handed_back_unbegun(stage):
    begun: list[int] = []

    @stage.app.task
    async def work() -> None:
        begun.append(1)

    worker = await stage.work()
    await until(lambda: worker.desk.session)
    worker.runner.hand_back_unstarted()
    handle = await work.enqueue()
    code = await stage.stop(worker)
    job = await stage.job(handle)

    assert (code, begun, job.state, job.attempt) == (0, [], State.PENDING, 0)


async def test_cancelling_a_worker_winds_it_down_at_once(stage):
    @stage.app.task
    async def long() -> None:
        await asyncio.sleep(60)

    worker = await stage.work()
    handle = await long.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    task = stage._running.pop(worker)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    job = await stage.job(handle)

    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert (await stage.store.sessions())[0].ended_at is not None


async def test_a_stop_during_an_outage_does_not_wait_for_the_store(faulty, caplog):
    @faulty.app.task
    async def work() -> None: ...

    worker = await faulty.work()
    await until(lambda: worker.desk.session)
    faulty.store.refused = {"settle", "exchange", "end_session"}
    await work.enqueue()
    await until(lambda: worker.desk.outbox)
    began = time.monotonic()
    await faulty.stop(worker)

    assert time.monotonic() - began < 6
    assert "1 ends could not be written before the stop; other workers will rescue these jobs." in caplog.text
