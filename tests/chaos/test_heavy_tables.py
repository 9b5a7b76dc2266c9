"""F24, F25, F44, F49: old snapshots, long backlogs, much history, large purges, and transactions a job costs."""

from __future__ import annotations

import asyncio
import time
from statistics import quantiles

import psycopg
import pytest

from build import a_job, a_session, completed
from chaos.weights import claim_weight
from rota import Rota
from rota.config import Settings
from rota.stores.contract import JobFilter, Retention, Wanted
from rota.stores.postgres import PostgresStore, diagnose
from rota.worker import Worker

YESTERDAY = "SELECT rota.open_days(now() - interval '1 day')"  # for runs just after midnight
WAITING = """
INSERT INTO rota.jobs (id, run_at, created_at, updated_at, task)
SELECT rota.new_id(), now(), now(), now(), 'email' FROM generate_series(1, {})
"""
FINISHED = """
INSERT INTO rota.finished_jobs (id, run_at, created_at, claimed_at, finished_at, version, state, task, queue, payload,
                                priority, attempt, max_attempts, snoozes, losses)
SELECT rota.new_id(), now(), now(), now(), now() - interval '{}', 3, 'completed', 'email', 'default', '{{}}',
       100, 1, 5, 0, 0 FROM generate_series(1, {})
"""


@pytest.fixture
async def store(fresh_database):
    store = PostgresStore(fresh_database)
    yield store
    await store.close()


async def execute(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement)


async def drain(store: PostgresStore, count: int, size: int = 50) -> list[float]:
    """Claim and settle so many jobs as a worker does; how long each exchange took."""
    session = await a_session(store, lease=600)
    held, took, done = [], [], 0
    while done < count:
        await store.next_due() if not held else None
        began = time.perf_counter()
        _, claimed = await store.exchange([completed(job) for job in held], Wanted(size), session=session)
        took.append(time.perf_counter() - began)
        done += len(held)
        held = claimed
    return took


async def usual_weight(store: PostgresStore, session) -> int:
    """What a claim costs in the middle of a flow. (At most one in twenty looks from the beginning.)"""
    await store.enqueue([a_job() for _ in range(600)])
    weights = []
    for _ in range(3):
        await drain(store, 50)
        got, weight = await claim_weight(store, session, 50)
        assert got == 50
        weights.append(weight)
    return min(weights)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
async def test_claims_stay_light_while_an_old_snapshot_keeps_every_dead_row(store, fresh_database, long):
    """Nothing can be vacuumed, so each finished job leaves its rows behind; claims must not walk over them."""
    jobs = 200_000 if long else 8_000
    session = await a_session(store, lease=600)
    before = await usual_weight(store, session)
    async with await psycopg.AsyncConnection.connect(fresh_database) as old:
        await old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await old.execute("SELECT 1")
        times = []
        for _ in range(jobs // 1000):
            await store.enqueue([a_job() for _ in range(1000)])
            times += await drain(store, 1000)
        after = await usual_weight(store, session)
        pid = old.info.backend_pid
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(diagnose, "LONG_TRANSACTION", 0.0)
            found = [finding for finding in await store.diagnose() if finding.what.startswith("vacuum")]

    assert after <= 3 * before, (
        f"a claim of 50 looked at {before} pages before, at {after} after {jobs} dead jobs"
    )
    assert [finding.level for finding in found] == ["warn"]
    assert f"pg_terminate_backend({pid})" in found[0].fix
    if long:
        early, late = times[: len(times) // 10], times[-len(times) // 10 :]
        assert quantiles(late, n=20)[-1] <= 3 * quantiles(early, n=20)[-1]


@pytest.mark.chaos
@pytest.mark.timeout(3600)
async def test_a_claim_beside_a_long_backlog_and_much_history_is_as_light_as_beside_none(
    store, fresh_database, long
):
    many = 1_000_000 if long else 60_000
    session = await a_session(store, lease=600)
    await store.enqueue([a_job() for _ in range(200)])
    _, before = await claim_weight(store, session, 50)
    await execute(
        fresh_database, WAITING.format(many), YESTERDAY, FINISHED.format("1 minute", many), "ANALYZE"
    )
    got, after = await claim_weight(store, session, 50)
    times = await drain(store, 5000 if long else 500)
    began = time.perf_counter()
    page = await store.find(JobFilter(limit=50))
    listed = time.perf_counter() - began

    assert (got, len(page)) == (50, 50)
    assert after <= 2 * before, (
        f"a claim of 50 looked at {before} pages before, at {after} beside {many} others"
    )
    assert listed < 0.3, f"a page of jobs took {listed:.2f} s"
    if long:
        assert quantiles(times, n=100)[-1] < 0.020


@pytest.mark.chaos
@pytest.mark.scenario(20)
@pytest.mark.timeout(3600)
async def test_a_large_purge_goes_in_batches_and_nobody_waits_for_it(store, fresh_database, long):
    many = 1_000_000 if long else 40_000
    await execute(fresh_database, YESTERDAY, FINISHED.format("2 hours", many))
    await store.enqueue([a_job() for _ in range(20_000 if long else 3_000)])
    janitor = PostgresStore(fresh_database)
    alone = sum(await drain(store, 1500))
    purge = asyncio.create_task(janitor.tidy(Retention(finished=3600.0)))
    times = await drain(store, 1400)
    together = sum(times)
    await purge
    await janitor.close()

    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        row = await (
            await connection.execute(
                "SELECT count(*) FROM rota.finished_jobs WHERE finished_at < now() - interval '1 hour'"
            )
        ).fetchone()
    assert row == (0,)
    assert max(times) < 1.0, "an exchange waited for the purge"
    print(f"a purge of {many} rows beside it: {together / 1400 / (alone / 1500):.2f} times as slow a job")


@pytest.mark.chaos
async def test_a_worker_burns_few_transaction_numbers(store, fresh_database):
    """Two thousand million of them are all that a server has between two freezes of its tables."""
    app = Rota(store=store, settings=Settings.load(url="memory://"))
    done = asyncio.Event()
    left = [3000]

    @app.task
    async def nothing() -> None:
        left[0] -= 1
        if left[0] == 0:
            done.set()

    await nothing.enqueue_many([()] * left[0])
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:

        async def number() -> int:
            row = await (await connection.execute("SELECT pg_current_xact_id()::text::bigint")).fetchone()
            return row[0]

        before = await number()
        worker = Worker(app, lanes={"general": 50})
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(60):
            await done.wait()
        worker.stop()
        await running
        burnt = await number() - before

    assert burnt <= 0.1 * 3000, f"{burnt} transactions for 3000 jobs"
