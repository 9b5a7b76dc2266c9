"""manual(app): jobs wait in memory, and run when the test says so."""

from __future__ import annotations

import asyncio
import threading

import pytest
import shop

from rota import JobNotFound, Retry, Rota, State, current_job
from rota.testing import Drained, manual
from rota.testing.running import StillRunning, TooManyRuns


async def test_jobs_wait_until_they_are_drained():
    with manual(shop.app) as jobs:
        handle = await shop.send_email.enqueue("ann@example.org")
        before = await handle.status()
        ran = await jobs.drain()

        assert before is State.PENDING
        assert [run.task for run in ran.completed] == ["send_email"]
        assert await handle == "welcome to ann@example.org"


def test_everything_works_in_tests_that_are_not_async():
    with manual(shop.app) as jobs:
        handle = shop.sign_up_in_a_thread.enqueue_sync("ann")
        ran = jobs.drain_sync()

        assert [run.task for run in ran] == ["sign_up_in_a_thread", "send_email"]
        assert jobs.job(handle).state is State.COMPLETED


async def test_jobs_that_jobs_enqueue_are_drained_too():
    with manual(shop.app) as jobs:
        await shop.sign_up.enqueue("ann")

        assert [run.task for run in (await jobs.drain()).completed] == ["sign_up", "send_email"]


async def test_jobs_run_one_after_the_other_by_priority_and_age():
    order = []
    app = Rota()

    @app.task
    def note(name: str) -> None:
        order.append(name)

    with manual(app) as jobs:
        await note.enqueue("second")
        await note.using(priority=500).enqueue("last")
        await note.using(priority=1).enqueue("first")
        await note.enqueue("third")
        await jobs.drain()

    assert order == ["first", "second", "third", "last"]


async def test_a_failed_job_waits_for_its_pause_and_the_drain_says_why():
    with manual(shop.app) as jobs:
        handle = await shop.flaky.enqueue(1)
        ran = await jobs.drain()

        [run] = ran
        assert (run.ended, run.attempt) == ("retrying", 1)
        assert isinstance(run.error, ConnectionError)
        assert run.failure is not None
        assert run.failure.message == "the line is down"
        assert jobs.job(handle).label(jobs.now) == "retrying"
        assert list(await jobs.drain()) == []


async def test_a_drain_follows_retries_by_moving_time():
    with manual(shop.app) as jobs:
        began = jobs.now
        handle = await shop.flaky.enqueue(2)
        ran = await jobs.drain(retries=True)

        assert [run.ended for run in ran] == ["retrying", "retrying", "completed"]
        assert await handle == 3
        assert 4 <= (jobs.now - began).total_seconds() <= 9  # 2 and 4 seconds, give or take a fifth


async def test_a_job_that_is_out_of_attempts_is_dead():
    with manual(shop.app) as jobs:
        handle = await shop.broken.enqueue()
        ran = await jobs.drain(retries=True)

        assert [run.ended for run in ran] == ["retrying", "dead"]
        assert (len(ran.failed), len(ran.dead)) == (2, 1)
        assert jobs.job(handle).state is State.DEAD


async def test_a_drain_can_raise_what_a_handler_raised():
    with manual(shop.app) as jobs:
        await shop.broken.enqueue()
        await shop.flaky.enqueue(1)

        with pytest.raises(ValueError, match="no such order") as raised:
            await jobs.drain(raises=True)
        notes = "\n".join(raised.value.__notes__)
        assert "raised by broken {}: retrying, attempt 1" in notes
        assert "failed as well: flaky" in notes


@pytest.mark.parametrize(
    ("mood", "ends"),
    [
        ("snooze", ["snoozed", "completed"]),
        ("cancel", ["cancelled"]),
        ("die", ["dead"]),
        ("later", ["retrying", "completed"]),
    ],
)
async def test_handlers_end_by_the_same_rules_as_in_a_worker(mood, ends):
    with manual(shop.app) as jobs:
        await shop.moody.enqueue(mood)

        assert [run.ended for run in await jobs.drain(retries=True)] == ends


async def test_scheduled_jobs_wait_for_time_to_be_moved():
    with manual(shop.app) as jobs:
        handle = await shop.send_email.using(delay="1h").enqueue("ann@example.org")

        assert len(await jobs.drain(retries=True)) == 0
        jobs.advance("59m")
        assert len(await jobs.drain()) == 0
        jobs.advance(60)
        assert len(await jobs.drain()) == 1
        assert jobs.job(handle).state is State.COMPLETED


async def test_a_drain_of_scheduled_jobs_moves_time_by_itself():
    with manual(shop.app) as jobs:
        await shop.send_email.using(delay="30d").enqueue("ann@example.org")
        await shop.send_email.using(delay="1h").enqueue("bob@example.org")

        ran = await jobs.drain(scheduled=True)

        assert [run.job.payload["to"] for run in ran] == ["bob@example.org", "ann@example.org"]


async def test_nothing_is_tidied_away_however_far_time_is_moved():
    with manual(shop.app) as jobs:
        handle = await shop.send_email.enqueue("ann@example.org")
        await jobs.drain()
        jobs.advance("365d")
        await jobs.drain()

        assert jobs.job(handle).state is State.COMPLETED


async def test_time_stands_still_and_does_not_go_back():
    with manual(shop.app) as jobs:
        began = jobs.now
        await asyncio.sleep(0.01)
        assert jobs.now == began

        with pytest.raises(ValueError, match="advance must be 0 or more"):
            jobs.advance(-1)
        with pytest.raises(ValueError, match="advance 'soon' is not understood"):
            jobs.advance("soon")


async def test_a_task_that_enqueues_itself_is_found_out():
    with manual(shop.app) as jobs:
        await shop.endless.enqueue()

        with pytest.raises(
            TooManyRuns, match=r"attempts were run, and more are due; the last was endless.*limit="
        ):
            await jobs.drain(limit=20)


async def test_a_handler_that_does_not_end_is_named():
    with manual(shop.app, timeout=0.2) as jobs:
        handle = await shop.waits_for_ever.enqueue()

        with pytest.raises(StillRunning, match=f"within 0.2 s: waits_for_ever .job {handle.id}"):
            await jobs.drain()


async def test_a_job_that_waits_for_another_needs_a_second_slot():
    with manual(shop.app, slots=2) as jobs:
        handle = await shop.waits_for_another.enqueue()
        await jobs.drain()

        assert await handle == "welcome to ann@example.org"


async def test_serial_jobs_run_one_by_one_in_a_drain_too():
    app, running, most = Rota(), set(), []

    @app.task(serial="account")
    async def post(account: int, number: int) -> None:
        running.add(number)
        most.append(len(running))
        await asyncio.sleep(0.001)
        running.discard(number)

    with manual(app, slots=5) as jobs:
        for number in range(4):
            await post.enqueue(7, number)

        assert len((await jobs.drain()).completed) == 4
    assert max(most) == 1


async def test_a_job_of_a_task_that_is_not_registered_stays_and_does_not_block():
    other = Rota()

    @other.task
    def unknown_here() -> None: ...

    with manual(shop.app) as jobs:
        other._store = jobs.store
        handle = await unknown_here.enqueue()
        await shop.send_email.enqueue("ann@example.org")
        ran = await jobs.drain()

        assert [run.task for run in ran.completed] == ["send_email"]
        assert jobs.job(handle).state is State.PENDING


async def test_resources_and_middleware_work_and_a_replaced_resource_is_never_opened():
    app, seen = Rota(), []

    @app.resource
    async def database():
        seen.append("opened")
        yield "database"
        seen.append("closed")

    @app.resource
    async def mailer():
        raise AssertionError("the real mailer must not be opened in a test")
        yield

    @app.middleware
    async def noting(job, call_next):
        seen.append(f"before {job.task}")
        return await call_next()

    @app.task
    def use() -> str:
        return f"{database()} and {mailer()}"

    with manual(app) as jobs, mailer.replaced("a fake"):
        handle = await use.enqueue()
        await jobs.drain()

        assert await handle == "database and a fake"
    assert seen == ["opened", "before use", "closed"]


async def test_a_job_knows_itself_in_a_drain_as_in_a_worker():
    app, keys = Rota(), []

    @app.task(retry=Retry(attempts=3))
    def keep() -> None:
        keys.append((current_job().attempt, current_job().effect_key, threading.current_thread().name))
        if current_job().attempt < 2:
            raise ValueError

    with manual(app) as jobs:
        handle = await keep.enqueue()
        await jobs.drain(retries=True)

    assert [(attempt, key) for attempt, key, _ in keys] == [(1, str(handle.id)), (2, str(handle.id))]
    assert keys[0][2].startswith("rota-thread")


async def test_jobs_stored_with_tx_are_there_at_once():
    with manual(shop.app) as jobs:
        shop.send_email.using(tx=object()).enqueue_sync("ann@example.org")

        jobs.assert_enqueued(shop.send_email, times=1)
        assert len(await jobs.drain()) == 1


async def test_the_app_has_its_own_store_back_afterwards():
    app = Rota("memory://")
    own = app.store

    with manual(app) as jobs:
        assert app.store is jobs.front
        with manual(app) as inner:
            assert app.store is inner.front
        assert app.store is jobs.front
    assert app.store is own


def test_a_job_that_is_not_there_is_said_to_be_so():
    from uuid import uuid4

    with manual(shop.app) as jobs, pytest.raises(JobNotFound):
        jobs.job(uuid4())


async def test_what_happened_can_be_read_at_a_glance():
    with manual(shop.app) as jobs:
        await shop.send_email.enqueue("ann@example.org")
        await shop.broken.enqueue()
        ran = await jobs.drain()

    assert repr(ran).splitlines() == [
        "<Drained: 1 completed, 1 retrying>",
        "  broken {}: retrying, attempt 1 (ValueError: no such order)",
    ]
    assert repr(Drained()) == "<Drained: nothing was due>"
    assert ran[:1] == [ran[0]]
