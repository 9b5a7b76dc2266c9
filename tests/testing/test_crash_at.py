"""crash_at: workers die where the test says, and the job goes on by the rules of its retry."""

from __future__ import annotations

import pytest
import shop

from rota import Rota, RotaError, State
from rota.testing import inline, manual
from rota.testing.patching import CannotPatch


@pytest.fixture(autouse=True)
def empty_bank():
    shop.bank.clear()


@pytest.mark.parametrize(("point", "charged"), [("begun", 1), ("returned", 2), ("settled", 1)])
async def test_a_worker_can_die_before_during_and_after_the_end(point, charged):
    with manual(shop.app) as jobs:
        handle = await shop.charge_blindly.enqueue(5)
        with jobs.crash_at(point) as trap:
            ran = await jobs.drain()

        job = jobs.job(handle)
        lost = 0 if point == "settled" else 1
        assert trap.crashes == 1
        assert shop.bank.charges == [5] * charged
        assert (job.state, job.losses, len(ran.lost)) == (State.COMPLETED, lost, lost)
        assert len(ran.completed) == 1


@pytest.mark.parametrize(("when", "charged"), [("before", 1), ("after", 2)])
async def test_a_worker_can_die_around_a_call(when, charged):
    with manual(shop.app) as jobs:
        await shop.charge_blindly.enqueue(5)
        with jobs.crash_at(shop.Bank.charge, when=when):
            await jobs.drain()

    assert shop.bank.charges == [5] * charged


async def test_a_call_can_be_named_by_text_and_by_a_function_that_was_imported_elsewhere():
    with manual(shop.app) as jobs:
        await shop.charge_through_a_function.enqueue(5)
        with jobs.crash_at("shop.pay"):
            await jobs.drain()
        await shop.charge_through_a_function.enqueue(6)
        with jobs.crash_at(shop.pay, when="before"):
            await jobs.drain()

    assert shop.bank.charges == [5, 6]  # by key, so that the repeat changed nothing
    assert shop.pay.__name__ == "pay"


async def test_no_cleanup_of_the_handler_runs_after_its_process_died():
    with manual(shop.app) as jobs:
        await shop.charge_under_lock.enqueue(5)
        with jobs.crash_at(shop.Bank.charge):
            ran = await jobs.drain(retries=True)

        assert [run.ended for run in ran] == ["lost", "retrying", "dead"]
        assert "somebody else has the lock" in str(ran[-1])
        assert shop.bank.locked


async def test_it_can_crash_several_times_and_uses_attempts_up():
    with manual(shop.app) as jobs:
        handle = await shop.charge_under_lock.enqueue(5)
        with jobs.crash_at("begun", times=3) as trap:
            ran = await jobs.drain(retries=True)

        assert trap.crashes == 3
        assert [run.ended for run in ran] == ["lost", "lost", "lost"]
        assert jobs.job(handle).state is State.DEAD


async def test_only_the_named_task_crashes():
    with manual(shop.app) as jobs:
        await shop.send_email.enqueue("ann@example.org")
        await shop.charge_by_key.enqueue(5)
        with jobs.crash_at("returned", task=shop.charge_by_key):
            ran = await jobs.drain()

        assert [run.task for run in ran.lost] == ["charge_by_key"]


async def test_a_job_crashes_inline_too_and_is_rescued_before_enqueue_returns():
    with inline(shop.app) as jobs:
        with jobs.crash_at("returned"):
            handle = await shop.charge_by_key.enqueue(5)

        assert jobs.job(handle).state is State.COMPLETED
        assert jobs.job(handle).losses == 1
        assert shop.bank.charges == [5]


async def test_handlers_in_threads_and_middleware_die_as_well():
    app, seen = Rota(), []

    @app.middleware
    async def noting(job, call_next):
        try:
            return await call_next()
        finally:
            seen.append("cleaned up")

    @app.task
    def work() -> None:
        shop.bank.charge(5)

    with manual(app) as jobs:
        await work.enqueue()
        with jobs.crash_at(shop.Bank.charge):
            await jobs.drain()

    assert shop.bank.charges == [5, 5]
    assert seen == ["cleaned up"]  # by the second run alone


async def test_a_point_that_nobody_comes_to_is_an_error():
    with manual(shop.app) as jobs:
        await shop.send_email.enqueue("ann@example.org")

        with (
            pytest.raises(
                AssertionError, match=r"no job came to this point: after shop.Bank.charge. Did you run"
            ),
            jobs.crash_at(shop.Bank.charge),
        ):
            await jobs.drain()


async def test_an_error_in_the_block_is_not_hidden_by_the_trap():
    with manual(shop.app) as jobs, pytest.raises(ZeroDivisionError), jobs.crash_at("begun"):
        _ = 1 / 0


def test_a_point_that_cannot_be_is_refused():
    def inner() -> None: ...

    with manual(shop.app) as jobs:
        with (
            pytest.raises(
                ValueError, match=r"'ended' is no crash point. Use one of begun, returned, settled"
            ),
            jobs.crash_at("ended"),
        ):
            pass
        with (
            pytest.raises(CannotPatch, match=r"no function is found under 'shop.nobody'"),
            jobs.crash_at("shop.nobody"),
        ):
            pass
        with pytest.raises(CannotPatch, match="inner is defined inside a function"), jobs.crash_at(inner):
            pass
        with pytest.raises(ValueError, match="when is 'during'"), jobs.crash_at("begun", when="during"):
            pass
        with pytest.raises(ValueError, match="times is 0"), jobs.crash_at("begun", times=0):
            pass


def test_one_trap_at_a_time():
    with (
        manual(shop.app) as jobs,
        pytest.raises(RotaError, match="one crash_at"),
        jobs.crash_at("begun"),
        jobs.crash_at("returned"),
    ):
        pass
