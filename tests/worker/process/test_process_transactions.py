"""A transaction of its own goes through to a child process: its rows and its job's end are one commit."""

from __future__ import annotations

import process_tasks
import psycopg
import pytest

from rota._core.job import State


@pytest.fixture
def booked(direct_database):
    """What is in the table of the business."""
    with psycopg.connect(direct_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE booked (id int, attempt int)")
        yield lambda: connection.execute("SELECT id, attempt FROM booked").fetchall()


@pytest.mark.parametrize("task", ["book", "book_later"])
async def test_rows_of_a_child_and_the_end_of_its_job_are_one_commit(children_on_postgres, booked, task):
    stage = children_on_postgres
    worker = await stage.work()
    handle = await getattr(process_tasks, task).enqueue(7)
    done = await stage.ended(handle, within=20)

    assert booked() == [(7, 1)]
    assert (done.state, done.result_json) == (State.COMPLETED, '{"booked": 7}')
    assert (worker.desk.held, worker.desk.fenced) == (set(), 0)


@pytest.mark.parametrize("ends", ["badly", "with a crash"])
@pytest.mark.parametrize("task", ["book", "book_later"])
async def test_a_child_that_fails_or_dies_leaves_nothing(children_on_postgres, booked, task, ends):
    stage = children_on_postgres
    await stage.work()
    done = await stage.ended(await getattr(process_tasks, task).enqueue(7, ends), within=30)

    assert (done.state, done.attempt) == (State.COMPLETED, 2)
    assert booked() == [(7, 2)]


async def test_a_child_of_a_store_in_memory_says_that_it_cannot(children):
    await children.work()
    dead = await children.ended(await process_tasks.book.enqueue(7), within=20)

    assert "the memory store cannot be reached from a child process (own_transaction)" in dead.error_message
