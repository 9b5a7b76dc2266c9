"""inline(app): a job runs where it is enqueued."""

from __future__ import annotations

import asyncio

import pytest
import shop

from rota import PayloadInvalid, Rota, RotaError, State
from rota.testing import inline


async def test_a_job_has_run_when_enqueue_returns():
    with inline(shop.app) as jobs:
        handle = await shop.send_email.enqueue("ann@example.org")

        assert jobs.job(handle).state is State.COMPLETED
        assert await handle == "welcome to ann@example.org"


def test_the_same_without_async():
    with inline(shop.app):
        assert shop.sign_up_in_a_thread.enqueue_sync("ann").result_sync() is None


async def test_arguments_travel_as_json_and_are_checked_as_ever():
    app, got = Rota(), []

    @app.task
    async def keep(values: tuple[int, ...]) -> None:
        got.append(values)

    with inline(app):
        given = [1, 2]
        await keep.enqueue(given)  # type: ignore[arg-type]
        with pytest.raises(PayloadInvalid):
            await keep.enqueue("no")  # type: ignore[arg-type]

    assert got == [(1, 2)]


async def test_what_a_handler_raises_is_raised_where_the_job_was_enqueued():
    with inline(shop.app) as jobs:
        with pytest.raises(ConnectionError, match="the line is down"):
            await shop.flaky.enqueue(1)

        job = jobs.assert_enqueued(shop.flaky)
        assert (job.state, job.attempt, job.error_message) == (State.PENDING, 1, "the line is down")


async def test_without_raises_a_failure_is_only_recorded_and_retried_by_a_drain():
    with inline(shop.app, raises=False) as jobs:
        handle = await shop.flaky.enqueue(1)

        assert await handle.status() is State.PENDING
        assert [run.ended for run in await jobs.drain(retries=True)] == ["completed"]
        assert await handle == 2


@pytest.mark.parametrize("mood", ["snooze", "cancel"])
async def test_outcomes_that_are_no_failures_are_not_raised(mood):
    with inline(shop.app) as jobs:
        await shop.moody.enqueue(mood)

        assert len(jobs.ran) == 1


async def test_jobs_of_jobs_run_at_once_and_know_their_parent():
    with inline(shop.app) as jobs:
        parent = await shop.sign_up.enqueue("ann")

        child = jobs.assert_enqueued(shop.send_email, {"to": "ann@example.org"}, state="completed")
        assert child.parent_id == parent.id


async def test_a_failing_child_does_not_fail_its_parent_but_the_test_hears_of_it():
    with inline(shop.app) as jobs:
        with pytest.raises(ValueError, match="no such order"):
            await shop.breaks_a_child.enqueue()

        assert jobs.assert_enqueued(shop.breaks_a_child).result == "the child is not my business"


async def test_a_job_may_wait_for_the_job_it_enqueued():
    with inline(shop.app):
        assert await (await shop.waits_for_another.enqueue()) == "welcome to ann@example.org"


async def test_many_at_once_all_run_before_their_enqueue_returns():
    with inline(shop.app) as jobs:
        handles = await asyncio.gather(*(shop.charge_by_key.enqueue(1) for _ in range(5)))
        bulk = await shop.send_email.enqueue_many([("ann@example.org",), ("bob@example.org",)])

        states = {jobs.job(handle).state for handle in [*handles, *bulk]}
        assert states == {State.COMPLETED}


async def test_what_is_not_due_waits():
    with inline(shop.app) as jobs:
        handle = await shop.send_email.using(delay="5m").enqueue("ann@example.org")
        waiting = await handle.status()
        jobs.advance("5m")
        await jobs.drain()

        assert waiting is State.PENDING
        assert await handle.status() is State.COMPLETED


async def test_a_job_stored_with_tx_waits_for_a_drain_because_its_commit_is_not_seen():
    with inline(shop.app) as jobs:
        shop.send_email.using(tx=object()).enqueue_sync("ann@example.org")
        await shop.send_email.enqueue("bob@example.org")

        assert jobs.assert_enqueued(shop.send_email, {"to": "ann@example.org"}).state is State.HELD
        assert [run.job.payload["to"] for run in await jobs.drain()] == ["ann@example.org"]


async def test_a_task_that_enqueues_itself_ends_with_an_error_not_with_the_stack():
    with inline(shop.app), pytest.raises(RotaError, match=r"20 deep. Does a task enqueue itself"):
        await shop.endless.enqueue()


async def test_a_repeated_key_runs_once():
    with inline(shop.app) as jobs:
        for _ in range(2):
            await shop.send_email.using(key="welcome:ann").enqueue("ann@example.org")

        assert len(jobs.ran) == 1
