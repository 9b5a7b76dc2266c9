"""F26: the planner is told lies about the tables. A claim for n jobs never takes more than n, and all are drained."""

from __future__ import annotations

import asyncio
import random
import threading

import psycopg
import pytest

from build import a_job, a_session, completed
from rota.stores.contract import Wanted
from rota.stores.postgres import PostgresStore

CLAIMERS = 4


def nothing_known(connection) -> None:
    """The statistics are deleted, and the table is said to be empty."""
    connection.execute("DELETE FROM pg_statistic WHERE starelid = 'rota.jobs'::regclass")
    connection.execute("UPDATE pg_class SET reltuples = 0, relpages = 0 WHERE oid = 'rota.jobs'::regclass")


def nothing_there(connection) -> None:
    """Many pages and no row in them, as after a vacuum of dead rows: the lie that makes a join form take too much."""
    nothing_known(connection)
    connection.execute("UPDATE pg_class SET relpages = 100000 WHERE oid = 'rota.jobs'::regclass")


def all_alike(connection) -> None:
    """Every queue, priority, state and id is said to be the same: an equality seems to find the whole table."""
    for column in ("id", "queue", "priority", "state", "run_at", "version", "session_id"):
        connection.execute(f"ALTER TABLE rota.jobs ALTER COLUMN {column} SET (n_distinct = 1)")
    connection.execute("ANALYZE rota.jobs")


def all_different(connection) -> None:
    """Every value is said to be unique: an equality seems to find one row."""
    for column in ("queue", "priority", "state", "run_at", "version", "session_id"):
        connection.execute(f"ALTER TABLE rota.jobs ALTER COLUMN {column} SET (n_distinct = -1)")
    connection.execute("ANALYZE rota.jobs")


def huge(connection) -> None:
    """The table is said to have a thousand million rows in one page."""
    connection.execute("ANALYZE rota.jobs")
    connection.execute("UPDATE pg_class SET reltuples = 1e9, relpages = 1 WHERE oid = 'rota.jobs'::regclass")


def nested_loops(connection) -> None:
    """Nothing but nested loops, and nothing kept between their rounds: the plan that takes too much elsewhere."""
    nothing_there(connection)
    name = connection.info.dbname
    for choice in ("hashjoin", "mergejoin", "material", "memoize", "seqscan", "bitmapscan"):
        connection.execute(f"ALTER DATABASE {name} SET enable_{choice} = off")


def no_indexes(connection) -> None:
    """Only whole tables are read."""
    name = connection.info.dbname
    for choice in ("indexscan", "indexonlyscan", "bitmapscan"):
        connection.execute(f"ALTER DATABASE {name} SET enable_{choice} = off")


LIES = [nothing_known, nothing_there, all_alike, all_different, huge, nested_loops, no_indexes]


def poisoned(url: str, lie) -> None:
    """Fill the table and empty it again, vacuum the dead rows away, tell the lie, and let nobody correct it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE rota.jobs SET (autovacuum_enabled = off)")
        connection.execute(
            "INSERT INTO rota.jobs (id, run_at, created_at, updated_at, task) "
            "SELECT gen_random_uuid(), now(), now(), now(), 'email' FROM generate_series(1, 5000)"
        )
        connection.execute("DELETE FROM rota.jobs")
        connection.execute("VACUUM ANALYZE rota.jobs")
        lie(connection)


@pytest.mark.scenario(2)
@pytest.mark.chaos
@pytest.mark.parametrize("lie", LIES)
async def test_a_claim_takes_no_more_than_asked_for_whatever_the_planner_believes(
    fresh_database, one_seed, lie
):
    poisoned(fresh_database, lie)
    jobs = [
        a_job(
            queue=f"q{number % 3}",
            priority=100 + number % 4,
            **({"gate": f"g{number % 7}"} if number % 5 == 0 else {}),
        )
        for number in range(600)
    ]
    store = PostgresStore(fresh_database)
    await store.enqueue(jobs)
    dice = random.Random(one_seed)
    sizes = [[dice.randrange(1, 9) for _ in range(5)] for _ in range(CLAIMERS)]
    claimed: list[list] = []

    async def drain(limits: list[int]) -> None:
        mine = PostgresStore(fresh_database)
        session = await a_session(mine)
        ended, empty = [], 0
        while empty < 20:
            limit = limits[len(claimed) % len(limits)]
            await mine.next_due()
            _, found = await mine.exchange([completed(job) for job in ended], Wanted(limit), session=session)
            assert len(found) <= limit
            claimed.append([job.id for job in found])
            ended, empty = found, 0 if found else empty + 1
            await asyncio.sleep(0 if found else 0.02)
        await mine.close()

    failures: list[BaseException] = []

    def in_a_thread(limits: list[int]) -> None:
        try:
            asyncio.run(drain(limits))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=in_a_thread, args=(limits,)) for limits in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert failures == []
    taken = [job_id for batch in claimed for job_id in batch]
    assert sorted(taken) == sorted(job.id for job in jobs)
    with psycopg.connect(fresh_database) as connection:
        assert connection.execute("SELECT state, count(*) FROM rota.all_jobs GROUP BY 1").fetchall() == [
            ("completed", 600)
        ]
        assert connection.execute("SELECT max(attempt) FROM rota.all_jobs").fetchone() == (1,)
    await store.close()
