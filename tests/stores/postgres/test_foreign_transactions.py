"""tx=, connection by connection: jobs stored by the caller's own driver, in the caller's own transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from tx_ways import NOTE, WAYS, alchemy_connection, asyncpg_connection, sync_connection

from build import Clock, a_job, claim, read
from rota._core.job import NewJob, OnDuplicate, State
from rota.stores.contract import Enqueued, JobFilter, Stored
from rota.stores.postgres import PostgresStore


@pytest.mark.scenario(11)
@pytest.mark.parametrize("way", WAYS)
async def test_jobs_live_and_die_with_the_callers_own_rows(store, fresh_database, way):
    """One connection, three transactions: rolled back, committed, and one with duplicates in it."""
    kept = [a_job("email", {"to": "änn", "colon": ":x %s", "quote": "it's \\"}), a_job(key="order:1")]
    async with await psycopg.AsyncConnection.connect(fresh_database) as setup:
        await setup.execute(NOTE)
    async with WAYS[way](fresh_database) as tx:
        await tx.begin()
        await tx.enqueue(store, [a_job(), a_job(key="order:1")])
        await tx.write()
        await tx.rollback()

        await tx.begin()
        answers = await tx.enqueue(store, kept)
        await tx.write()
        assert await store.find(JobFilter()) == []
        await tx.commit()
        assert answers == [Enqueued(job.id, Stored.CREATED) for job in kept]

        await tx.begin()
        new = a_job()
        again = await tx.enqueue(store, [a_job(key="order:1"), new, a_job(key="order:1", payload={"n": 1})])
        await tx.write()
        await tx.commit()

    assert again == [
        Enqueued(kept[1].id, Stored.DUPLICATE),
        Enqueued(new.id, Stored.CREATED),
        Enqueued(kept[1].id, Stored.CONFLICT),
    ]
    async with await psycopg.AsyncConnection.connect(fresh_database) as reader:
        assert await (await reader.execute("SELECT count(*) FROM public.note")).fetchone() == (2,)
    assert {job.id for job in await claim(store)} == {kept[0].id, kept[1].id, new.id}
    assert (await read(store, kept[0])).payload == {"to": "änn", "colon": ":x %s", "quote": "it's \\"}


async def test_the_clock_of_the_store_counts_there_too(fresh_database):
    clock = Clock()
    clock.advance(86_400 * 400)
    store = PostgresStore(fresh_database, clock=clock)
    job = a_job(delay=60)
    async with alchemy_connection(fresh_database) as tx:
        await tx.enqueue(store, [job])
        await tx.commit()

    stored = await read(store, job)
    assert (stored.created_at, (stored.run_at - clock()).total_seconds()) == (clock(), 60)
    await store.close()


async def test_an_error_of_the_callers_transaction_stays_the_drivers(store, fresh_database):
    async with sync_connection(fresh_database) as tx:
        with pytest.raises(psycopg.errors.UndefinedTable):
            tx.given.execute("SELECT * FROM nowhere")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            await tx.enqueue(store, [a_job()])
        await tx.rollback()


async def test_a_savepoint_takes_its_jobs_back(store, fresh_database):
    outer, inner = a_job(), a_job()
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        await store.enqueue_within(connection, [outer])
        async with connection.transaction():
            await store.enqueue_within(connection, [inner])
            raise psycopg.Rollback

    assert [job.id for job in await store.find(JobFilter())] == [outer.id]
    assert (await read(store, outer)).state is State.PENDING


async def test_a_savepoint_of_asyncpg_takes_its_jobs_back(store, fresh_database):
    outer, inner, last = a_job(unique_key="a"), a_job(unique_key="b"), a_job(unique_key="b")
    async with asyncpg_connection(fresh_database) as tx, tx.given.transaction():
        await tx.enqueue(store, [outer])
        savepoint = tx.given.transaction()
        await savepoint.start()
        await tx.enqueue(store, [inner])
        await savepoint.rollback()
        [answer] = await tx.enqueue(store, [last])

    assert answer == Enqueued(last.id, Stored.CREATED)
    assert {job.id for job in await store.find(JobFilter())} == {outer.id, last.id}


@pytest.mark.parametrize("way", ["psycopg", "asyncpg", "sqlalchemy-async-session-psycopg"])
async def test_keys_serial_keys_and_options_mean_the_same_with_tx_as_without(store, fresh_database, way):
    def jobs(name: str) -> list[NewJob]:
        return [
            a_job(unique_key=name, payload={"a": 1}),
            a_job(unique_key=name, payload={"b": 2}, on_duplicate=OnDuplicate.MERGE),
            a_job(unique_key=name, on_duplicate=OnDuplicate.REJECT),
            a_job(gate=f"serial::{name}", priority=7, queue="fast", delay=60, tags=("x",), deadline_in=90.0),
            a_job(key=name, key_window=30.0),
            a_job(key=name, payload={"other": "work"}),
        ]

    async def told(answers: list[Enqueued], name: str) -> list[Any]:
        """Everything but what differs from job to job."""
        found = []
        for answer in answers:
            job = await read(store, answer.id)
            ahead = job.run_at - job.created_at, job.deadline and job.deadline - job.created_at
            keys = tuple(key and key.replace(name, "NAME") for key in (job.key, job.unique_key, job.gate))
            same = dict.fromkeys(
                ("id", "created_at", "updated_at", "run_at", "deadline", "key", "unique_key", "gate")
            )
            found.append((answer.stored, ahead, keys, job._replace(**same)))
        return found

    async with WAYS[way](fresh_database) as tx:
        await tx.begin()
        within = await tx.enqueue(store, jobs("one"))
        await tx.commit()
    without = await store.enqueue(jobs("two"))

    assert await told(within, "one") == await told(without, "two")
    assert [answer.stored for answer in within] == [
        "created", "merged", "rejected", "created", "created", "conflict"
    ]  # fmt: skip


async def test_workers_hear_of_the_job_when_the_caller_commits_and_not_before(
    store, fresh_database, direct_database
):
    heard: asyncio.Queue[Any] = asyncio.Queue()
    hearer = PostgresStore(fresh_database, listen_url=direct_database)
    listening = asyncio.create_task(hearer.listen(heard.put_nowait))
    async with asyncio.timeout(10):
        await heard.get()  # it listens now
        async with asyncpg_connection(fresh_database) as tx:
            await tx.begin()
            await tx.enqueue(store, [a_job(queue="undone")])
            await tx.rollback()
            await tx.begin()
            await tx.enqueue(store, [a_job(queue="done")])
            await store.enqueue([a_job(queue="meanwhile")])
            first = await heard.get()
            await tx.commit()
            second = await heard.get()

    assert (first.queue, second.queue) == ("meanwhile", "done")
    listening.cancel()
    await asyncio.wait([listening])
    await hearer.close()
