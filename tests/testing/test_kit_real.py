"""real(app): a worker beside the test, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
from socket import gethostname

import psycopg
import pytest
import shop

from build import a_job, new_id
from rota import Rota, RotaError, State, current_job
from rota.config import Settings
from rota.errors import ConfigError
from rota.stores.contract import SessionStart
from rota.stores.postgres import PostgresStore
from rota.testing import real
from rota.testing.running import StillRunning, TooManyRuns


async def test_jobs_run_beside_the_test(fresh_database):
    with real(shop.app, fresh_database) as jobs:
        handle = await shop.sign_up.enqueue("ann")
        ran = await jobs.drain()

        assert await handle is None
        assert sorted(run.task for run in ran.completed) == ["send_email", "sign_up"]
        jobs.assert_enqueued(shop.send_email, {"to": "ann@example.org"}, state="completed")
        assert jobs.url == fresh_database


def test_the_same_in_a_test_that_is_not_async(fresh_database):
    with real(shop.app, fresh_database) as jobs:
        handle = shop.sign_up_in_a_thread.enqueue_sync("ann")
        jobs.drain_sync()

        assert handle.status_sync() is State.COMPLETED
        assert jobs.job(handle).state is State.COMPLETED


async def test_time_can_be_moved_and_retries_followed(fresh_database):
    with real(shop.app, fresh_database) as jobs:
        handle = await shop.send_email.using(delay="30d").enqueue("ann@example.org")
        await shop.flaky.enqueue(2)
        ran = await jobs.drain(retries=True)
        before = await handle.status()
        jobs.advance("30d")
        await jobs.drain()

        assert [run.ended for run in ran] == ["retrying", "retrying", "completed"]
        assert (before, await handle.status()) == (State.PENDING, State.COMPLETED)


async def test_a_job_of_a_rolled_back_transaction_never_was(fresh_database):
    with real(shop.app, fresh_database) as jobs, psycopg.connect(fresh_database) as mine:
        shop.send_email.using(tx=mine).enqueue_sync("ann@example.org")
        mine.rollback()
        jobs.assert_not_enqueued(shop.send_email)
        shop.send_email.using(tx=mine).enqueue_sync("bob@example.org")
        mine.commit()

        assert [run.job.payload["to"] for run in await jobs.drain()] == ["bob@example.org"]


async def test_a_drain_tells_of_what_the_worker_did_before_it_too(fresh_database):
    with real(shop.app, fresh_database) as jobs:
        handle = await shop.send_email.enqueue("ann@example.org")
        await handle
        first = await jobs.drain()
        again = await jobs.drain()

    assert [run.job.payload["to"] for run in first] == ["ann@example.org"]
    assert list(again) == []


async def test_a_worker_dies_and_the_next_one_takes_over(fresh_database):
    shop.bank.clear()
    with real(shop.app, fresh_database) as jobs:
        with jobs.crash_at(shop.Bank.charge, times=1) as trap:
            handle = await shop.charge_by_key.enqueue(5)
            ran = await jobs.drain()
        await shop.charge_by_key.enqueue(6)
        await jobs.drain()

        assert (trap.crashes, len(ran.lost), jobs.job(handle).losses) == (1, 1, 1)
        assert shop.bank.charges == [5, 6]


async def test_replaced_resources_are_replaced_for_the_worker_too(fresh_database):
    app = Rota()

    @app.resource
    async def mailer():
        raise AssertionError("the real mailer must not be opened in a test")
        yield

    @app.task
    def use() -> str:
        return mailer()

    with mailer.replaced("a fake"), real(app, fresh_database):
        assert await (await use.enqueue()) == "a fake"


async def test_a_drain_is_patient_and_not_for_ever(fresh_database):
    with real(shop.app, fresh_database, timeout=0.3) as jobs:
        await shop.waits_for_ever.enqueue()
        with pytest.raises(StillRunning, match=r"waits_for_ever \(job .*, running\)"):
            await jobs.drain()
        await shop.endless.enqueue()
        with pytest.raises((TooManyRuns, StillRunning)):
            await jobs.drain(limit=5)


async def test_a_resource_that_cannot_be_opened_fails_the_test_at_once(fresh_database):
    app = Rota()

    @app.resource
    async def nothing():
        raise OSError("no such host")
        yield

    with (
        pytest.raises(RotaError, match="its resource 'nothing' could not be opened"),
        real(app, fresh_database),
    ):
        pass


async def test_jobs_of_others_are_not_run_by_a_test(fresh_database):
    store = PostgresStore(fresh_database)
    await store.enqueue([a_job("send_email", {"to": "a customer"})])

    with (
        pytest.raises(RotaError, match="holds 1 unfinished jobs, which the worker of this test would run"),
        real(shop.app, fresh_database),
    ):
        pass
    with real(shop.app, fresh_database, fresh=True) as jobs:
        jobs.assert_not_enqueued()
        await shop.send_email.using(key="k").enqueue("ann@example.org")
    with real(shop.app, fresh_database, fresh=True) as jobs:
        assert (await shop.send_email.using(key="k").enqueue("bob@example.org")).created
    await store.close()


async def test_a_worker_of_a_test_run_that_was_killed_does_not_keep_the_next_one_out(fresh_database):
    ended = subprocess.Popen(["true"])
    ended.wait()
    killed = SessionStart(id=new_id(), host=gethostname(), pid=ended.pid, lanes={"test": 1}, tasks=())
    store = PostgresStore(fresh_database)
    await store.open_session(killed, lease=1e9)
    await store.close()

    with real(shop.app, fresh_database, fresh=True) as jobs:
        jobs.assert_not_enqueued()


async def test_a_database_with_a_living_worker_is_not_emptied(fresh_database):
    from build import a_session

    store = PostgresStore(fresh_database)
    await a_session(store, "another machine")
    await store.close()

    with (
        pytest.raises(RotaError, match=r"has a living worker .* on another machine"),
        real(shop.app, fresh_database, fresh=True),
    ):
        pass


def test_production_is_no_place_for_tests(fresh_database):
    app = Rota(settings=Settings.load(url=fresh_database, env="production"))

    with pytest.raises(ConfigError, match="this is production"), real(app, fresh_database):
        pass
    with pytest.raises(ConfigError, match="needs a postgresql:// address"), real(shop.app, "memory://"):
        pass


@pytest.mark.slow
def test_without_an_address_a_server_is_started():
    with real(shop.app) as jobs:
        first = jobs.url
        assert (
            shop.send_email.enqueue_sync("ann@example.org").result_sync("20s") == "welcome to ann@example.org"
        )
    with real(shop.app) as jobs:
        jobs.assert_not_enqueued()
        assert jobs.url != first


async def test_a_handlers_own_transaction_is_committed_and_told(fresh_database):
    app = Rota(fresh_database)

    @app.task
    async def book() -> int:
        async with current_job().transaction() as connection:
            await connection.execute("CREATE TABLE booked AS SELECT 7 AS id")
        return 7

    with real(app, fresh_database) as jobs:
        handle = await book.enqueue()
        ran = await jobs.drain()

        assert [one.ended for one in ran] == ["completed"]
        assert await handle == 7
