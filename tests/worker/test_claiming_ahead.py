"""Quick jobs are claimed ahead of free slots; still no more handlers run at once than there are slots."""

from __future__ import annotations

import asyncio
import threading
from itertools import count
from typing import Any

from worker_stage import Stage, until

from build import a_stored_job
from rota._core.job import State
from rota._core.outcome import Returned, completed, decide
from rota._core.retry import Retry
from rota.worker import LaneSpec, Worker
from rota.worker.lanes import AHEAD, PACE_SECONDS, Lane


def a_lane(slots: int = 8) -> Lane:
    return Lane(LaneSpec("general", slots, None))


moments = count(1.0, 2 * PACE_SECONDS)


def rounds(lane: Lane, number: int, *, ended: int | None = None, took: float = 0.002) -> list[int]:
    """Claims that all come back full, each a while after the other; all they brought ends at once, or so many."""
    asked = []
    for _ in range(number):
        asked.append(lane.reserve())
        over = asked[-1] if ended is None else min(ended, lane.slots - lane.free)
        lane.free += over
        lane.ended += over
        lane.answered(asked[-1], asked[-1], lane.hints, now=next(moments), took=took)
    return asked


# How much is asked for


def test_a_lane_whose_jobs_end_at_once_asks_for_more_and_more_up_to_a_limit():
    asked = rounds(a_lane(), 100, took=0.01)

    assert asked[0] == 8
    assert asked[-1] == max(asked) == (8 + AHEAD) // 2


def test_a_lane_whose_jobs_take_their_time_asks_for_free_slots_only():
    lane = a_lane()
    rounds(lane, 1, ended=0)
    assert (lane.free, lane.ahead, lane.hungry) == (0, 0, False)

    lane.free, lane.ended = 1, 1
    assert lane.reserve() == 1
    lane.answered(1, 1, lane.hints, now=next(moments), took=0.002)
    assert lane.ahead == 0


def test_a_lane_whose_jobs_get_longer_asks_for_nothing_ahead():
    lane = a_lane()
    rounds(lane, 50, took=0.01)
    assert lane.ahead > 50

    rounds(lane, 1, ended=0, took=0.01)

    assert lane.ahead == 0


def test_a_lane_that_has_run_dry_or_lost_its_answer_asks_for_nothing_ahead():
    for end in (lambda lane, asked: lane.answered(asked, 0, lane.hints), Lane.unanswered):
        lane = a_lane()
        rounds(lane, 50, took=0.01)

        end(lane, lane.reserve())

        assert lane.ahead == 0


# What becomes of jobs that found no slot


async def a_worker_that_asks(stage: Stage, slots: int, ahead: int) -> Worker:
    """A worker that has found nothing yet, and asks for so many more than it has slots when there is something."""
    worker = await stage.work(lanes={"general": slots})
    [lane] = worker.desk.lanes
    await until(lambda: lane.dry and not lane.asking)
    lane.ahead = ahead
    return worker


async def claimed_ahead(
    stage: Stage, slots: int, ahead: int
) -> tuple[Worker, list[Any], asyncio.Event, list[int]]:
    """A worker that asked for more than its slots, of jobs that take their time after all."""
    let_go, running, most = asyncio.Event(), [0], [0]

    @stage.app.task
    async def slow() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await let_go.wait()
        running[0] -= 1

    worker = await a_worker_that_asks(stage, slots, ahead)
    handles = await slow.enqueue_many([()] * (slots + ahead))
    await until(lambda: running[0] == slots)
    return worker, handles, let_go, most


async def test_no_more_handlers_run_at_once_than_there_are_slots(stage):
    _, handles, let_go, most = await claimed_ahead(stage, 3, 20)
    let_go.set()

    for handle in handles:
        assert (await stage.ended(handle)).state is State.COMPLETED
    assert most == [3]


async def test_a_job_that_finds_no_slot_soon_goes_back_with_its_attempt(stage):
    worker, handles, let_go, most = await claimed_ahead(stage, 3, 20)

    async def given_back() -> bool:
        jobs = await stage.store.get([handle.id for handle in handles])
        return sum(job.state is State.PENDING for job in jobs) == 20

    await until(given_back)

    jobs = await stage.store.get([handle.id for handle in handles])
    assert {job.attempt for job in jobs if job.state is State.PENDING} == {0}
    assert worker.desk.lanes[0].free == 0
    let_go.set()
    for handle in handles:
        assert (await stage.ended(handle)).attempt == 1
    assert most == [3]


async def test_a_worker_that_stops_hands_back_what_waits_for_a_slot_at_once(stage):
    worker, handles, let_go, _ = await claimed_ahead(stage, 3, 20)
    worker.stop()
    # Its list may be empty before it has heard of the stop: what found no slot soon went back, and more may come.
    await until(lambda: worker.runner._closing and not worker.desk.lanes[0].waiting)
    let_go.set()
    await stage.stop(worker)

    jobs = await stage.store.get([handle.id for handle in handles])
    assert sum(job.state is State.COMPLETED for job in jobs) == 3
    assert {(job.state, job.attempt) for job in jobs} == {(State.COMPLETED, 1), (State.PENDING, 0)}


async def test_threads_too_are_limited_to_the_slots(stage):
    let_go, lock, running, most = threading.Event(), threading.Lock(), [0], [0]

    @stage.app.task
    def slow() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        let_go.wait(5)
        with lock:
            running[0] -= 1

    await a_worker_that_asks(stage, 2, 10)
    handles = await slow.enqueue_many([()] * 12)
    await until(lambda: running[0] == 2)
    let_go.set()

    for handle in handles:
        assert (await stage.ended(handle)).state is State.COMPLETED
    assert most == [2]


def test_the_short_way_to_a_completed_job_says_what_the_rule_says():
    job = a_stored_job()

    assert completed(job) == decide(job, Returned(), retry=Retry(), now=job.updated_at)
