"""A web request that keeps its transaction open must not cost a worker anything but one late end."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from worker_stage import Stage, until

from rota import Retry, State, Unique
from rota.stores.postgres import PostgresStore


@pytest.fixture
async def stage(fresh_database, listen_url):
    store = PostgresStore(fresh_database, listen_url=listen_url)
    stage = Stage(store)
    yield stage
    await stage.close()
    await store.close()


@pytest.mark.scenario(10)
@pytest.mark.parametrize("commits", [True, False])
async def test_an_open_transaction_with_a_jobs_unique_key_delays_its_retry_and_nothing_else(
    stage, fresh_database, commits
):
    go = asyncio.Event()
    runs: list[str] = []

    @stage.app.task(unique=Unique("site"), retry=Retry(attempts=2, base=0.0))
    async def rebuild(site: str) -> None:
        runs.append(site)
        if runs == ["first"]:
            await go.wait()
            raise ValueError("again, please")

    @stage.app.task
    async def other(number: int) -> int:
        return number

    worker = await stage.work()
    first = await rebuild.using(unique="same").enqueue("first")
    await until(lambda: runs)
    async with await psycopg.AsyncConnection.connect(fresh_database) as request:
        second = await rebuild.using(unique="same", delay="1m", tx=request).enqueue("second")
        go.set()
        await until(lambda: worker.desk._busy)
        others = [await other.enqueue(number) for number in range(20)]
        async with asyncio.timeout(5):
            assert [await handle for handle in others] == list(range(20))
        assert (await first.status(), worker.desk.written) == (State.RUNNING, False)
        await (request.commit() if commits else request.rollback())

    job = await stage.ended(first)
    if commits:
        assert (job.state, job.superseded_by, runs) == (State.CANCELLED, second.id, ["first"])
    else:
        assert (job.state, runs) == (State.COMPLETED, ["first", "first"])
    await until(lambda: worker.desk.written)
    assert not worker.desk.held


async def test_a_worker_that_stops_meanwhile_leaves_the_job_to_others(stage, fresh_database):
    begun, go = asyncio.Event(), asyncio.Event()
    failed: list[str] = []

    @stage.app.task(unique=Unique("site"), retry=Retry(attempts=3, base=0.0))
    async def rebuild(site: str) -> None:
        begun.set()
        await go.wait()
        if not failed:
            failed.append(site)
            raise ValueError("again, please")

    worker = await stage.work()
    handle = await rebuild.enqueue("same")
    await begun.wait()
    async with await psycopg.AsyncConnection.connect(fresh_database) as request:
        await rebuild.using(tx=request).enqueue("same")
        go.set()
        await until(lambda: worker.desk._busy)
        await stage.stop(worker)
        await request.rollback()
    await stage.work()

    assert (await stage.ended(handle, within=15)).state is State.COMPLETED
