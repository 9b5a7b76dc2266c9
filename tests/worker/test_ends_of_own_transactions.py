"""The moment at which a job ends whose handler writes by `current_job().transaction()`."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from datetime import datetime

import psycopg
import pytest
from psycopg.rows import dict_row
from worker_stage import Stage

from build import a_running_job, completed
from rota import current_job
from rota._core.job import State
from rota.stores.postgres import PostgresStore

DAYS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'rota.finished_jobs'::regclass"


@pytest.fixture
async def stage(fresh_database: str, direct_database: str) -> AsyncIterator[Stage]:
    stage = Stage(PostgresStore(fresh_database, listen_url=direct_database), stop_grace=0.2)
    yield stage
    await stage.close()
    await stage.store.close()


@pytest.fixture(params=["coroutine", "thread"])
def order(request: pytest.FixtureRequest, stage: Stage, direct_database: str):
    """A task that notes the server's time behind its block, and reads rows in a way of its own."""
    late: list[datetime] = []

    def look() -> None:
        with psycopg.connect(direct_database) as other:
            late.extend(other.execute("SELECT clock_timestamp()").fetchone())

    if request.param == "coroutine":

        @stage.app.task
        async def order() -> None:
            async with current_job().transaction() as connection:
                connection.row_factory = dict_row
                await connection.execute("SELECT 1")
            look()

    else:

        @stage.app.task
        def order() -> None:
            with current_job().transaction() as connection:
                connection.row_factory = dict_row
                connection.execute("SELECT 1")
            look()

    order.late = late
    return order


async def test_it_ends_when_it_is_committed_and_not_when_its_transaction_began(stage, order):
    await stage.work()
    done = await stage.ended(await order.enqueue())

    assert done.finished_at >= order.late[0]


async def test_a_day_without_a_table_is_made_and_costs_no_attempt(stage, order, direct_database):
    await stage.work()
    with psycopg.connect(direct_database, autocommit=True) as connection:
        for (day,) in connection.execute(DAYS).fetchall():
            connection.execute(f"DROP TABLE {day}")
    done = await stage.ended(await order.enqueue())

    assert (done.state, done.attempt) == (State.COMPLETED, 1)


async def test_an_undo_waits_for_a_completion_under_way(fresh_database):
    store = PostgresStore(fresh_database)
    job = await a_running_job(store)
    own = store.own_transaction(job)
    own._plain = own._begun()  # as a handler in a thread does
    undoing, ends = threading.Thread(target=own._undo_plain), own._ends

    def interrupted(*given):
        yield from ends(*given)
        undoing.start()
        undoing.join(0.2)  # only the commit is left, on a connection that is not given back yet

    own._ends = interrupted
    own._complete_plain(own._plain, completed(job))
    undoing.join()

    assert [one.state for one in await store.get([job.id])] == [State.COMPLETED]
    await store.close()
