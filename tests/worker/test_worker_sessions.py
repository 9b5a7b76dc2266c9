"""Sessions: heartbeats, trust, loss and rescue."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta

import pytest
from worker_stage import FaultyStore, Stage, until

from build import by_hand, claim, completed
from rota import Retry, current_job
from rota._core.actions import Audit, Verb, act
from rota._core.job import State
from rota.stores.contract import Answer, Wanted


@pytest.fixture
async def brief():
    """A stage whose leases are short."""
    stage = Stage(FaultyStore(), lease=0.6, beat=0.1)
    yield stage
    await stage.close()


async def test_each_life_of_a_worker_has_a_session_of_its_own(stage):
    first = await stage.work()
    await until(lambda: first.desk.session)
    await stage.stop(first)
    second = await stage.work()
    await until(lambda: second.desk.session)
    later, earlier = await stage.store.sessions()

    assert (later.id, earlier.id) == (second.desk.session.id, first.desk.session.id)
    assert earlier.ended_at is not None
    assert later.ended_at is None
    assert later.lanes == {"general": 5}


@pytest.mark.scenario(5)
async def test_a_session_lives_as_long_as_it_is_beaten_even_while_a_handler_blocks_the_loop(brief):
    @brief.app.task
    async def rude() -> str:
        time.sleep(1.5)
        return "done"

    worker = await brief.work()
    await until(lambda: worker.desk.session)
    session = worker.desk.session
    handle = await rude.enqueue()
    job = await brief.ended(handle)

    assert (job.state, job.attempt) == (State.COMPLETED, 1)
    assert worker.desk.session is session


@pytest.mark.scenario(3)
async def test_the_job_of_a_worker_that_disappears_is_given_to_another_once_and_marked_lost(brief):
    begun: list[int] = []

    @brief.app.task
    async def work() -> str:
        begun.append(current_job().attempt)
        if len(begun) == 1:
            await asyncio.sleep(60)
        return "done"

    killed = await brief.work()
    handle = await work.enqueue()
    await until(lambda: begun == [1])
    await brief.crash(killed)
    began = time.monotonic()
    await brief.work()
    job = await brief.ended(handle)
    [attempt] = await brief.store.attempts(handle.id)

    assert time.monotonic() - began < 0.6 + 1.5, "later than lease and rescue pause"
    assert (job.state, begun, job.losses) == (State.COMPLETED, [1, 2], 1)
    assert (attempt.error_class, attempt.attempt) == ("lost", 1)


async def test_a_worker_that_cannot_beat_stops_its_handlers_before_its_lease_ends(brief, caplog):
    stopped: list[float] = []

    @brief.app.task(retry=Retry(attempts=5))
    async def work() -> str:
        if current_job().attempt > 1:
            return "done elsewhere"
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(time.monotonic())

    worker = await brief.work()
    handle = await work.enqueue()
    await brief.seen(handle, lambda job: job.state is State.RUNNING)
    first = worker.desk.session
    cut = time.monotonic()
    brief.store.down = True
    await until(lambda: stopped)

    assert stopped[0] - cut < 0.6, "its lease had ended before it stopped"
    assert worker.desk.session is None
    assert f"session {first.id} is no longer trusted (its beats were not answered in time)" in caplog.text

    brief.store.down = False
    job = await brief.ended(handle)
    history = await brief.store.attempts(handle.id)
    assert worker.desk.session.id != first.id
    assert (job.state, job.result, [one.error_class for one in history]) == (
        State.COMPLETED,
        "done elsewhere",
        ["lost"],
    )
    assert worker.desk.fenced == 0, "it wrote of a job that was not its own"


async def test_ends_that_were_not_written_in_time_outlive_their_session_and_the_fence_decides(brief):
    @brief.app.task
    async def work() -> int:
        return current_job().attempt

    worker = await brief.work()
    await until(lambda: worker.desk.session)
    brief.store.refused = {"settle", "exchange"}
    handle = await work.enqueue()
    await until(lambda: worker.desk.outbox)
    brief.store.down = True
    await until(lambda: worker.desk.session is None)

    assert [run.job.id for run in worker.desk.outbox] == [handle.id]
    brief.store.down, brief.store.refused = False, set()
    ended = await brief.ended(handle)
    assert ended.result == ended.attempt, "the end that counts is the one of the last attempt"


async def test_a_session_that_the_store_has_ended_is_given_up_and_followed_by_another(stage, caplog):
    stopped: list[int] = []

    @stage.app.task
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    worker = await stage.work()
    handle = await work.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    first = worker.desk.session
    await stage.store.end_session(first.id)
    await until(lambda: worker.desk.session not in (None, first))

    assert stopped == [1]
    assert "the store says that it has ended" in caplog.text


@pytest.mark.scenario(4)
async def test_a_worker_that_wakes_too_late_changes_nothing_of_a_job_that_was_given_away(stage, caplog):
    let_go = asyncio.Event()

    @stage.app.task(retry=Retry(base=0.0))
    async def work() -> str:
        await let_go.wait()
        return "from the sleeper"

    worker = await stage.work()
    handle = await work.enqueue()
    old = await stage.seen(handle, lambda job: job.state is State.RUNNING)
    worker.runner.stop = lambda run, why: None  # asleep: nothing reaches its handler
    worker.desk.claiming = False
    change = act(old, Verb.FAIL, retry=Retry(base=0.0), now=await stage.store.now())
    await stage.store.change(change, Audit("ada", "fail", old.id))
    [new] = await claim(stage.store, wanted=Wanted(limit=1))
    let_go.set()
    await until(lambda: worker.desk.fenced == 1)
    [answer] = await stage.store.settle([completed(new, "from the new owner")])

    assert answer.answer is Answer.APPLIED
    assert (await stage.job(handle)).result == "from the new owner"
    assert (
        f"job {handle.id} had moved on (running now) when its end was written; nothing was changed."
        in caplog.text
    )


@pytest.mark.scenario(6)
async def test_a_claim_whose_answer_was_lost_is_found_by_the_heartbeat_and_handed_back_uncounted(caplog):
    caplog.set_level(logging.INFO, "rota.worker")
    start = time.monotonic()
    faster = FaultyStore(clock=lambda: datetime.now(UTC) + timedelta(seconds=20 * (time.monotonic() - start)))
    stage = Stage(faster, lease=60.0, beat=0.05)

    @stage.app.task
    async def work() -> int:
        return current_job().attempt

    await stage.work()
    faster.deaf_to = {"claim", "exchange"}
    handle = await work.enqueue()
    job = await stage.seen(handle, lambda job: job.state is State.RUNNING)
    faster.deaf_to = set()
    done = await stage.ended(handle)
    await stage.close()

    assert job.attempt == 1
    assert (done.state, done.result, done.losses) == (State.COMPLETED, 1, 0)
    assert "handed back 1 jobs whose claim was answered, but not heard" in caplog.text


@pytest.mark.scenario(6)
async def test_a_settle_whose_answer_was_lost_is_repeated_and_harmless(faulty):
    runs: list[int] = []

    @faulty.app.task
    async def work() -> str:
        runs.append(1)
        return "done"

    worker = await faulty.work()
    await until(lambda: worker.desk.session)
    faulty.store.deaf_to = {"settle", "exchange"}
    handle = await work.enqueue()
    job = await faulty.ended(handle)
    assert worker.desk.held, "it cannot know yet that its end was written"

    faulty.store.deaf_to = set()
    await until(lambda: not worker.desk.held)
    assert (await faulty.job(handle), runs, worker.desk.fenced) == (job, [1], 0)


async def test_beats_name_what_is_held_and_hear_of_what_was_taken_away(stage):
    stopped: list[int] = []

    @stage.app.task(retry=1)
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    worker = await stage.work()
    handle = await work.enqueue()
    job = await stage.seen(handle, lambda job: job.state is State.RUNNING)
    await by_hand(stage.store, job, Verb.KILL)
    await until(lambda: stopped == [1])
    await until(lambda: not worker.desk.busy)

    assert (await stage.job(handle)).state is State.DEAD
    assert (worker.desk.held, worker.desk.fenced) == (set(), 0)
