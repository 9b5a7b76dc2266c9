"""`current_job().transaction()`: what a handler writes there and the end of its job are one commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest
from worker_stage import Stage, until

from build import ANY, a_job, a_session
from rota import Retry, Snooze, current_job
from rota._core.job import State
from rota.errors import JobChanged
from rota.stores.contract import JobFilter
from rota.stores.postgres import PostgresStore, lent

AT_ONCE = Retry(attempts=2, base=0.0)


class Shop(Stage):
    """A stage whose database has a table of the business: orders that are booked."""

    def __init__(self, url: str, straight: str) -> None:
        store = PostgresStore(url, listen_url=straight)
        # Beats are rare, so that a worker hears of a lost job by its commit, and not before.
        super().__init__(store, stop_grace=0.2, lease=20.0, beat=6.0)
        self.url = straight
        with psycopg.connect(straight, autocommit=True) as connection:
            connection.execute("CREATE TABLE booked (id int, attempt int)")

    def booked(self) -> list[tuple[int, int]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute("SELECT id, attempt FROM booked ORDER BY 1, 2").fetchall()

    async def close(self) -> None:
        await super().close()
        await self.store.close()


@pytest.fixture
async def shop(fresh_database: str, direct_database: str) -> AsyncIterator[Shop]:
    shop = Shop(fresh_database, direct_database)
    yield shop
    await shop.close()


BOOK = "INSERT INTO booked VALUES (%s, %s)"


async def book(order: int) -> None:
    async with current_job().transaction() as connection:
        await connection.execute(BOOK, [order, current_job().attempt])


def book_plainly(order: int) -> None:
    with current_job().transaction() as connection:
        connection.execute(BOOK, [order, current_job().attempt])


@pytest.mark.parametrize("middleware", [False, True], ids=["bare", "wrapped"])
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_rows_and_the_end_of_the_job_are_one_commit(shop, kind, middleware):
    seen: list[object] = []

    if middleware:

        @shop.app.middleware
        async def around(job, call_next):
            return await call_next()

    def look() -> None:
        with psycopg.connect(shop.url) as connection:
            seen.append(connection.execute("SELECT count(*) FROM booked").fetchone())
            seen.append(connection.execute("SELECT count(*) FROM rota.finished_jobs").fetchone())

    if kind == "coroutine":

        @shop.app.task
        async def order(number: int) -> dict[str, int]:
            await book(number)
            look()
            return {"booked": number}

    else:

        @shop.app.task
        def order(number: int) -> dict[str, int]:
            book_plainly(number)
            look()
            return {"booked": number}

    worker = await shop.work()
    handle = await order.enqueue(7)
    done = await shop.ended(handle)

    assert seen == [(0,), (0,)]  # the handler is behind its block, and nothing is committed yet
    assert shop.booked() == [(7, 1)]
    assert (done.state, done.result_json, done.version) == (State.COMPLETED, '{"booked": 7}', 3)
    assert await handle == {"booked": 7}
    assert worker.desk.held == set()
    assert worker.desk.fenced == 0


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_a_handler_that_raises_leaves_nothing_and_its_retry_books_once(shop, kind):
    if kind == "coroutine":

        @shop.app.task(name="order", retry=AT_ONCE)
        async def order() -> None:
            await book(1)
            if current_job().attempt == 1:
                raise ValueError("no")

    else:

        @shop.app.task(name="order", retry=AT_ONCE)
        def order() -> None:
            book_plainly(1)
            if current_job().attempt == 1:
                raise ValueError("no")

    await shop.work()
    done = await shop.ended(await order.enqueue())

    assert done.state is State.COMPLETED
    assert shop.booked() == [(1, 2)]


async def test_one_that_was_asked_for_and_never_used_harms_nobody(shop):
    @shop.app.task(retry=Retry.never())
    def order() -> None:
        current_job().transaction()

    worker = await shop.work()
    done = await shop.ended(await order.enqueue())

    assert (done.state, worker.desk.held) == (State.COMPLETED, set())


async def test_only_a_return_commits(shop):
    @shop.app.task
    async def order() -> None:
        await book(current_job().job.snoozes)
        if not current_job().job.snoozes:
            raise Snooze(0)

    await shop.work()
    await shop.ended(await order.enqueue())

    assert shop.booked() == [(1, 1)]


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_jobs_enqueued_by_its_connection_share_its_fate(shop, kind):
    @shop.app.task
    async def mail(order: int) -> None: ...

    if kind == "coroutine":

        @shop.app.task(name="order", retry=AT_ONCE)
        async def order() -> None:
            async with current_job().transaction() as connection:
                await mail.using(tx=connection).enqueue(current_job().attempt)
            if current_job().attempt == 1:
                raise ValueError("no")

    else:

        @shop.app.task(name="order", retry=AT_ONCE)
        def order() -> None:
            with current_job().transaction() as connection:
                mail.using(tx=connection).enqueue_sync(current_job().attempt)
            if current_job().attempt == 1:
                raise ValueError("no")

    await shop.work()
    await shop.ended(await order.enqueue())
    mails = await shop.store.find(JobFilter(task="mail"))

    assert [job.payload for job in mails] == [{"order": 2}]


async def test_each_block_is_undone_by_itself_and_all_others_are_committed_together(shop):
    @shop.app.task
    async def order() -> None:
        await book(1)
        with suppress(ZeroDivisionError):
            async with current_job().transaction() as connection:
                await connection.execute(BOOK, [2, 0])
                await book(3)
                raise ZeroDivisionError
        await book(4)

    await shop.work()
    await shop.ended(await order.enqueue())

    assert shop.booked() == [(1, 1), (4, 1)]


@pytest.mark.req("D16")
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_a_worker_that_lost_its_job_commits_nothing(shop, kind):
    inside, go_on = threading.Event(), threading.Event()

    if kind == "coroutine":

        @shop.app.task(name="order")
        async def order() -> None:
            await book(1)
            if not inside.is_set():
                inside.set()
                await asyncio.to_thread(go_on.wait, 10)

    else:

        @shop.app.task(name="order")
        def order() -> None:
            book_plainly(1)
            if not inside.is_set():
                inside.set()
                go_on.wait(10)

    first = await shop.work()
    handle = await order.enqueue()
    await asyncio.to_thread(inside.wait, 10)
    with psycopg.connect(shop.url, autocommit=True) as connection:  # somebody took the job away
        connection.execute("UPDATE rota.jobs SET version = version + 1, state = 'pending', session_id = NULL")
    go_on.set()
    done = await shop.ended(handle, within=10)

    assert done.state is State.COMPLETED
    assert shop.booked() == [(1, done.attempt)]
    assert first.desk.fenced == 1


async def test_a_job_that_has_moved_on_does_not_even_begin_its_transaction(shop):
    await shop.store.enqueue([a_job()])
    [job] = await shop.store.claim(ANY, session=await a_session(shop.store))
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("UPDATE rota.jobs SET version = version + 1, state = 'held'")
    own = shop.store.own_transaction(job)

    with pytest.raises(JobChanged, match="no longer this worker's"):
        await own.__aenter__()
    with pytest.raises(JobChanged, match="no longer this worker's"):
        await asyncio.to_thread(own.__enter__)


async def test_a_handler_that_does_not_stop_is_undone_and_its_locks_are_freed(shop):
    go_on = threading.Event()

    @shop.app.task(timeout=0.3, retry=Retry.never())
    def order() -> None:
        book_plainly(1)
        go_on.wait(60)

    await shop.work()
    dead = await shop.ended(await order.enqueue(), within=20)

    def locks() -> int:
        with psycopg.connect(shop.url) as connection:
            return connection.execute(
                "SELECT count(*) FROM pg_locks WHERE relation = 'booked'::regclass"
            ).fetchone()[0]

    assert dead.error_class == "timeout"
    await until(lambda: locks() == 0)
    go_on.set()
    assert shop.booked() == []


async def test_the_next_job_of_a_gate_is_let_in(shop):
    @shop.app.task
    async def order(number: int) -> None:
        await book(number)

    await shop.work()
    handles = [await order.using(serial="till").enqueue(number) for number in range(4)]
    for handle in handles:
        await shop.ended(handle)

    assert shop.booked() == [(number, 1) for number in range(4)]


async def test_more_handlers_than_connections_take_turns(shop):
    inside: list[int] = []

    @shop.app.task
    async def order(number: int) -> None:
        async with current_job().transaction() as connection:
            with psycopg.connect(shop.url) as straight:
                found = straight.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rota handler'"
                ).fetchone()
            inside.append(found[0])
            await connection.execute(BOOK, [number, 1])
            await asyncio.sleep(0.01)

    await shop.work(lanes={"general": 40})
    await order.enqueue_many([(number,) for number in range(60)])
    await until(lambda: len(shop.booked()) == 60, within=20)

    assert max(inside) <= lent.MOST


async def test_what_a_handler_leaves_behind_on_its_connection_does_not_reach_the_next(shop):
    zones: list[str] = []

    @shop.app.task
    async def order() -> None:
        async with current_job().transaction() as connection:
            row = await (await connection.execute("SHOW search_path")).fetchone()
            zones.append(row[0])
            await connection.execute("SET search_path TO pg_catalog")

    await shop.work(lanes={"general": 1})
    for _ in range(3):
        await shop.ended(await order.enqueue())

    assert len(set(zones)) == 1


async def test_connections_that_broke_while_idle_are_replaced(shop):
    @shop.app.task(retry=Retry.never())
    async def order(number: int) -> None:
        await book(number)

    await shop.work()
    await asyncio.gather(*[shop.ended(await order.enqueue(number)) for number in range(5)])
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rota handler'"
        )
    done = await shop.ended(await order.enqueue(9), within=10)

    assert done.state is State.COMPLETED
    assert (9, 1) in shop.booked()


async def test_a_commit_that_the_database_refuses_fails_the_attempt(shop):
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE booked ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED")

    @shop.app.task(retry=Retry.never())
    async def order() -> None:
        await book(1)
        await book(1)

    await shop.work()
    dead = await shop.ended(await order.enqueue())

    assert (dead.state, dead.result_json) == (State.DEAD, None)
    assert "duplicate key value" in dead.error_message
    assert shop.booked() == []


async def test_with_in_a_coroutine_says_what_to_write(shop):
    @shop.app.task(retry=Retry.never())
    async def order() -> None:
        book_plainly(1)

    await shop.work()
    dead = await shop.ended(await order.enqueue())

    assert "order is a coroutine: write `async with current_job().transaction()`" in dead.error_message


async def test_a_loop_of_ones_own_inside_a_plain_function_is_refused(shop):
    @shop.app.task(retry=Retry.never())
    def order() -> None:
        asyncio.run(book(1))

    await shop.work()
    dead = await shop.ended(await order.enqueue())

    assert "began its transaction on an event loop of its own" in dead.error_message
    assert shop.booked() == []
