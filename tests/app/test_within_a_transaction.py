"""tx=: the job is stored by the caller's own connection, on the caller's thread, and lives or dies with its commit."""

from __future__ import annotations

import asyncio
import threading

import psycopg
import pytest

from rota import JobNotFound, Rota, State
from rota.errors import NotSupported, TaskError
from rota.stores.contract import JobFilter
from rota.stores.memory import MemoryStore
from rota.stores.postgres import PostgresStore


@pytest.fixture
async def app(fresh_database):
    store = PostgresStore(fresh_database)
    app = Rota(store=store)

    @app.task(unique="to")
    def send(to: str) -> None: ...

    yield app
    await app.close()


@pytest.fixture
def send(app):
    return app.tasks["send"]


async def test_a_job_is_stored_when_the_caller_commits(app, send, fresh_database):
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        handle = await send.using(tx=connection, tenant="acme").enqueue("a")
        with pytest.raises(JobNotFound):
            await handle.refresh()
        await connection.commit()

        job = await handle.refresh()
    assert (job.state, job.tenant, job.payload) == (State.PENDING, "acme", {"to": "a"})


async def test_a_job_is_gone_when_the_caller_rolls_back(app, send, fresh_database):
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        await send.using(tx=connection).enqueue_many(["a", "b"])
        await connection.rollback()

    assert await app.store.find(JobFilter()) == []


async def test_a_duplicate_does_not_abort_the_callers_transaction(app, send, fresh_database):
    first = await send.enqueue("a")
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        result = await send.using(tx=connection).enqueue_many(["a", "b"])
        await connection.commit()

    assert [handle.created for handle in result] == [False, True]
    assert result[0].id == first.id
    assert await result[1].status() is State.PENDING


def test_with_a_sync_connection_the_sync_verb_stays_on_the_callers_thread(app, send, fresh_database):
    threads = []
    within = app.store.enqueue_within

    def noted(tx, jobs):
        threads.append(threading.current_thread())
        return within(tx, jobs)

    app.store.enqueue_within = noted
    with psycopg.connect(fresh_database) as connection:
        handle = send.using(tx=connection).enqueue_sync("a")
        send.using(tx=connection).enqueue_many_sync(["b", "c"])
        by_name = app.enqueue_sync("send", {"to": "d"}, tx=connection)

    assert threads == [threading.current_thread()] * 3
    assert asyncio.run(looked_up(fresh_database)) == 4
    assert handle.created
    assert by_name.created


async def looked_up(url: str) -> int:
    store = PostgresStore(url)
    try:
        return len(await store.find(JobFilter()))
    finally:
        await store.close()


async def test_a_sync_verb_with_a_sync_connection_is_allowed_inside_an_event_loop(app, send, fresh_database):
    """It blocks, but so does every other statement on that connection."""
    with psycopg.connect(fresh_database) as connection:
        handle = send.using(tx=connection).enqueue_sync("a")

    assert await handle.status() is State.PENDING


async def test_a_sync_verb_with_an_async_connection_is_refused(app, send, fresh_database):
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        with pytest.raises(
            TaskError, match=r"enqueue_sync\(\) got an async connection as tx. Write `await enqueue"
        ):
            send.using(tx=connection).enqueue_sync("a")
        await connection.commit()

    assert await app.store.find(JobFilter()) == []


async def test_awaiting_the_handle_of_a_job_that_was_committed_meanwhile_works(
    app, send, fresh_database, work
):
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        handle = await send.using(tx=connection).enqueue("a")
        waiting = asyncio.ensure_future(handle.result(timeout=10))
        await asyncio.sleep(0.1)
        await connection.commit()
    await work(app)

    assert await waiting is None


async def test_a_store_that_cannot_says_so_and_what_to_do():
    app = Rota(store=MemoryStore())

    @app.task
    def send() -> None: ...

    with pytest.raises(NotSupported) as refused:
        await send.using(tx=object()).enqueue()

    assert str(refused.value) == (
        "the memory store cannot store jobs inside your transaction (tx=). "
        "Enqueue after your commit, or keep jobs in the PostgreSQL of your transaction."
    )


def test_the_same_refusal_without_async():
    app = Rota(store=MemoryStore())

    @app.task
    def send() -> None: ...

    with pytest.raises(NotSupported):
        send.using(tx=object()).enqueue_sync()
