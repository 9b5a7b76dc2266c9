"""How attempts end, and what is recorded of it."""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import UTC, datetime, timedelta

import pytest
from worker_stage import Stage, until

from build import a_job
from rota import Cancel, Die, Retry, RetryAfter, Snooze, current_job
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota.app import Rota
from rota.stores.memory import MemoryStore

AT_ONCE = Retry(attempts=3, base=0.0)


@pytest.mark.req("L18", "W20")
@pytest.mark.parametrize("kind", ["instant", "waiting", "thread"])
async def test_a_handler_that_raises_is_tried_again_and_dead_after_its_last_attempt(stage, kind):
    attempts: list[int] = []

    def fail() -> None:
        attempts.append(current_job().attempt)
        raise ValueError(f"attempt {current_job().attempt} went wrong")

    if kind == "thread":

        @stage.app.task(name="fail", retry=AT_ONCE)
        def job() -> None:
            fail()

    else:

        @stage.app.task(name="fail", retry=AT_ONCE)
        async def job() -> None:
            if kind == "waiting":
                await asyncio.sleep(0)
            fail()

    await stage.work()
    handle = await job.enqueue()
    dead = await stage.ended(handle)
    history = await stage.store.attempts(handle.id)

    assert attempts == [1, 2, 3]
    assert (dead.state, dead.error_class, dead.error_message) == (
        State.DEAD,
        "retryable",
        "attempt 3 went wrong",
    )
    assert [(one.attempt, one.error_type, one.message) for one in history] == [
        (number, "ValueError", f"attempt {number} went wrong") for number in (1, 2, 3)
    ]
    assert "raise ValueError" in history[0].stack


@pytest.mark.req("W20")
async def test_a_job_has_five_attempts_unless_its_task_says_otherwise(stage):
    begun: list[int] = []

    @stage.app.task
    async def fail() -> None:
        begun.append(current_job().attempt)
        raise RetryAfter(0)

    await stage.work()
    dead = await stage.ended(await fail.enqueue())

    assert (dead.state, dead.max_attempts, begun) == (State.DEAD, 5, [1, 2, 3, 4, 5])


@pytest.mark.req("W17", "W18", "W38")
@pytest.mark.parametrize(
    ("error", "error_class", "state"),
    [
        (ConnectionError("reset"), "transient", State.PENDING),
        (KeyError("who"), "retryable", State.PENDING),
        (PermissionError("slow down"), "rate_limited", State.PENDING),
        (ZeroDivisionError("never"), "non_retryable", State.DEAD),
    ],
)
async def test_the_type_of_an_exception_decides_its_class_and_the_class_what_follows(
    stage, error, error_class, state
):
    classes = {
        "ConnectionError": ErrorClass.TRANSIENT,
        "PermissionError": ErrorClass.RATE_LIMITED,
        "ArithmeticError": ErrorClass.NON_RETRYABLE,
    }

    @stage.app.task(retry=Retry(base=100, classes=classes))
    async def fail() -> None:
        raise error

    await stage.work()
    job = await stage.seen(await fail.enqueue(), lambda job: job.error_class is not None)

    assert (job.state, job.error_class, job.error_message) == (state, error_class, str(error))


@pytest.mark.req("W17")
async def test_a_very_long_message_is_cut_so_that_no_handler_can_fill_the_store(stage):
    @stage.app.task(retry=1)
    async def fail() -> None:
        raise ValueError("x" * 100_000)

    await stage.work()
    job = await stage.ended(await fail.enqueue())

    assert len(job.error_message) == 2047
    assert job.error_message.endswith("…[cut]")


async def test_snooze_runs_the_job_again_later_without_counting_the_attempt(stage):
    seen: list[int] = []

    @stage.app.task(retry=1)
    async def wait_for_it() -> str:
        seen.append(current_job().attempt)
        if len(seen) < 3:
            raise Snooze(0.01, "not there yet")
        return "there"

    await stage.work()
    handle = await wait_for_it.enqueue()

    assert await handle == "there"
    assert seen == [1, 1, 1]
    assert (await stage.job(handle)).snoozes == 2


async def test_cancel_ends_the_job_with_its_reason(stage):
    @stage.app.task
    async def pointless() -> None:
        raise Cancel("the order was withdrawn")

    await stage.work()
    job = await stage.ended(await pointless.enqueue())

    assert (job.state, job.reason) == (State.CANCELLED, "the order was withdrawn")


async def test_die_ends_the_job_whatever_attempts_are_left(stage):
    @stage.app.task(retry=Retry(attempts=5))
    async def hopeless() -> None:
        raise Die("the account is closed")

    await stage.work()
    job = await stage.ended(await hopeless.enqueue())

    assert (job.state, job.attempt, job.error_message) == (State.DEAD, 1, "the account is closed")


async def test_retry_after_sets_the_pause_and_counts_as_rate_limited(stage):
    @stage.app.task
    async def hasty() -> None:
        raise RetryAfter(120, "429")

    await stage.work()
    job = await stage.seen(await hasty.enqueue(), lambda job: job.error_class is not None)

    assert (job.state, job.error_class, job.attempt) == (State.PENDING, "rate_limited", 1)
    assert timedelta(seconds=119) < job.run_at - job.updated_at <= timedelta(seconds=120)


@pytest.mark.parametrize("kind", ["instant", "waiting", "thread"])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_a_handler_that_exits_ends_its_job_not_the_worker(stage, kind, error):
    if kind == "thread":

        @stage.app.task(name="leave", retry=1)
        def leave() -> None:
            raise error("enough")

    else:

        @stage.app.task(name="leave", retry=1)
        async def leave() -> None:
            if kind == "waiting":
                await asyncio.sleep(0)
            if error is SystemExit:
                sys.exit("enough")
            raise error("enough")

    @stage.app.task
    async def after() -> str:
        return "still here"

    await stage.work()
    job = await stage.ended(await leave.enqueue())

    assert (job.state, job.error_message) == (State.DEAD, "enough")
    assert await (await after.enqueue()) == "still here"


async def test_a_cancellation_from_inside_is_a_failure_like_any_other(stage):
    @stage.app.task(retry=1)
    async def trips() -> None:
        inner = asyncio.create_task(asyncio.sleep(60))
        inner.cancel()
        await inner

    await stage.work()
    job = await stage.ended(await trips.enqueue())

    assert (job.state, job.error_class) == (State.DEAD, "retryable")
    assert job.error_message.startswith("the handler was cancelled from inside")


async def test_an_exception_that_cannot_be_printed_is_recorded_by_its_type(stage):
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @stage.app.task(retry=1)
    async def fail() -> None:
        raise Mute

    await stage.work()
    job = await stage.ended(await fail.enqueue())

    assert job.state is State.DEAD
    assert "Mute (its text cannot be read" in job.error_message


async def test_a_job_whose_deadline_has_passed_is_dead_and_never_begun(stage):
    begun: list[int] = []

    @stage.app.task
    async def late() -> None:
        begun.append(1)

    handle = await late.using(deadline=0.01).enqueue()
    await asyncio.sleep(0.05)
    await stage.work()
    job = await stage.ended(handle)

    assert (job.state, job.error_class, begun) == (State.DEAD, "deadline", [])


async def test_a_job_of_an_unknown_task_is_left_unharmed_for_a_worker_that_knows_it(stage, caplog):
    @stage.app.task
    async def known() -> str:
        return "done"

    new = a_job("newcomer")
    await stage.store.enqueue([new, a_job("newcomer")])
    worker = await stage.work()
    job = await stage.seen(new.id, lambda job: job.version >= 3)

    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert await (await known.enqueue()) == "done"
    await asyncio.sleep(0.2)
    assert (await stage.job(new.id)).version == job.version, (
        "it was claimed again by a worker that cannot run it"
    )
    assert caplog.text.count("no task named 'newcomer' is registered here") == 1
    assert "handed back unharmed" in caplog.text
    assert worker.desk.fenced == 0

    other = Rota(store=stage.store, settings=stage.app.settings)

    @other.task
    async def newcomer() -> None: ...

    await stage.work(other)
    assert (await stage.ended(new.id)).state is State.COMPLETED


async def test_failures_are_logged_and_successes_are_not(stage, caplog):
    caplog.set_level(logging.INFO, "rota.worker")

    @stage.app.task(retry=AT_ONCE)
    async def shaky(good: bool) -> None:
        if not good:
            raise ValueError("not good")

    await stage.work()
    caplog.clear()
    good, bad = await shaky.enqueue(good=True), await shaky.enqueue(good=False)
    await stage.ended(good)
    await stage.ended(bad)

    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert said == [
        (
            "WARNING",
            f"job {bad.id} (shaky) failed and is tried again, attempt 1 of 3, retryable: ValueError: not good",
        ),
        (
            "WARNING",
            f"job {bad.id} (shaky) failed and is tried again, attempt 2 of 3, retryable: ValueError: not good",
        ),
        ("ERROR", f"job {bad.id} (shaky) died, attempt 3 of 3, retryable: ValueError: not good"),
    ]


@pytest.mark.parametrize(
    ("error", "named"), [(KeyError("id"), "KeyError: 'id'"), (ValueError(), "ValueError")]
)
async def test_the_log_names_an_exception_that_says_little_itself(stage, caplog, error, named):
    @stage.app.task(retry=AT_ONCE)
    async def bad() -> None:
        raise error

    await stage.work()
    await stage.ended(await bad.enqueue())

    assert caplog.messages[-1].endswith(f"retryable: {named}")


@pytest.mark.scenario(8)
@pytest.mark.parametrize("skew", [-600, 600])
async def test_a_retry_is_reckoned_by_the_stores_clock_whatever_this_machine_thinks(stage, skew):
    elsewhere = Stage(MemoryStore(clock=lambda: datetime.now(UTC) + timedelta(seconds=skew)))

    @elsewhere.app.task(retry=Retry(base=100, jitter=0))
    async def fail() -> None:
        await asyncio.sleep(0.05)
        raise ValueError("no")

    await elsewhere.work()
    handle = await fail.enqueue()
    job = await elsewhere.seen(handle, lambda job: job.error_class is not None)
    await elsewhere.close()

    # 100 s after the failure, by a clock that is ten minutes off ours: to the millisecond that the settle took.
    pause = (job.run_at - job.updated_at).total_seconds()
    assert pause == pytest.approx(100, abs=0.05)


async def test_a_slot_is_free_when_its_handler_ends_though_the_end_is_not_written_yet(faulty):
    @faulty.app.task
    async def quick() -> None: ...

    worker = await faulty.work(lanes={"general": 1})
    faulty.store.refused = {"settle", "exchange"}
    handle = await quick.enqueue()
    [lane] = worker.desk.lanes
    await until(lambda: worker.desk.outbox and lane.free == 1)

    assert (await faulty.job(handle)).state is State.RUNNING
    assert [run.id for run in worker.desk.held] == [handle.id], "beats must name it until its end is written"

    faulty.store.refused = set()
    assert (await faulty.ended(handle)).state is State.COMPLETED
    await until(lambda: not worker.desk.held)
