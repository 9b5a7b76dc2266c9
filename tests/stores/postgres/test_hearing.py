"""Hints between processes: prompt, few, never the last one missing; and a listener that cannot be silenced for long."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest

from build import a_job, claim
from rota.stores.contract import DeafHint, Hint, ResyncHint, WorkHint
from rota.stores.postgres import PostgresStore, listen

LISTENERS = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND query ~ '^(LISTEN|SELECT pg_notify)' ORDER BY backend_start DESC"
)

PRODUCER = """
    import asyncio, sys, time
    from uuid import UUID
    from build import a_job
    from rota.stores.postgres import PostgresStore

    async def produce(url):
        store = PostgresStore(url)
        await store.open()
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            began = time.time()
            await store.enqueue([a_job(queue="mail:out", priority=7)])
            print(began, flush=True)
        await store.close()

    asyncio.run(produce(sys.argv[1]))
"""


class Ear:
    """What was heard, and when."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._heard: asyncio.Queue[tuple[float, Hint]] = asyncio.Queue()
        self._task = asyncio.create_task(store.listen(self._hear))

    def _hear(self, hint: Hint) -> None:
        self._heard.put_nowait((time.time(), hint))

    async def next(self, within: float = 10.0) -> Hint:
        return (await self.timed(within))[1]

    async def timed(self, within: float = 10.0) -> tuple[float, Hint]:
        async with asyncio.timeout(within):
            return await self._heard.get()

    async def pid(self) -> int:
        """The server process that talks to this ear."""
        async with self._store._desks().connections.connection() as connection, asyncio.timeout(5):
            while not (row := await (await connection.execute(LISTENERS)).fetchone()):
                await asyncio.sleep(0.01)
            return row[0]

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


@pytest.fixture
async def hearer(fresh_database: str, listen_url: str | None) -> AsyncIterator[PostgresStore]:
    """A store of a process that waits for work."""
    store = PostgresStore(fresh_database, listen_url=listen_url)
    yield store
    await store.close()


@pytest.fixture
async def ear(hearer: PostgresStore) -> AsyncIterator[Ear]:
    """It listens, and has heard so."""
    ear = Ear(hearer)
    assert await ear.next() == ResyncHint()
    yield ear
    await ear.close()


async def test_an_enqueue_in_one_process_wakes_another_within_a_tenth_of_a_second(ear, fresh_database):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    producer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(PRODUCER), fresh_database,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert await producer.stdout.readline() == b"ready\n"

    delays = []
    for _ in range(9):
        producer.stdin.write(b"go\n")
        began = float(await producer.stdout.readline())
        at, hint = await ear.timed()
        assert hint == WorkHint("mail:out", 7)
        delays.append(at - began)

    assert statistics.median(delays) < 0.1
    producer.stdin.close()
    assert await producer.wait() == 0


@pytest.mark.parametrize("together", [True, False])
async def test_a_burst_sends_few_hints_and_the_last_one_sees_all_jobs(store, direct_database, together):
    """A worker that looks whenever it is told finds everything, although it was told seldom."""
    async with await psycopg.AsyncConnection.connect(direct_database, autocommit=True) as listener:
        await listener.execute("LISTEN rota")
        jobs = [a_job() for _ in range(500)]

        async def burst() -> None:
            if together:
                await asyncio.gather(*[store.enqueue([job]) for job in jobs])
            else:
                for job in jobs:
                    await store.enqueue([job])

        began = time.monotonic()
        bursting = asyncio.create_task(burst())
        seen: list[int] = []
        async with await psycopg.AsyncConnection.connect(direct_database, autocommit=True) as looker:
            while not bursting.done() or not seen or seen[-1] < 500:
                async for _ in listener.notifies(timeout=0.05, stop_after=1):
                    row = await (await looker.execute("SELECT count(*) FROM rota.jobs")).fetchone()
                    seen.append(row[0])
                assert time.monotonic() - began < 30, f"the last hint is missing: {seen[-3:]}"
        await bursting
        lasted = time.monotonic() - began

    assert seen[-1] == 500
    # One in 5 ms. (One by one they may take longer than that, on a slow machine or behind a pooler.)
    assert len(seen) <= (min(250, lasted / 0.004 + 2) if together else lasted / 0.004 + 2)


async def test_a_listener_whose_connection_is_cut_says_so_and_listens_again(ear, store, hearer):
    """As often as it happens, and as promptly as the first time."""
    for _ in range(6):
        async with store._desks().connections.connection() as connection:
            await connection.execute("SELECT pg_terminate_backend(%s)", [await ear.pid()])

        assert [await ear.next(), await ear.next(within=2)] == [DeafHint(), ResyncHint()]
        assert hearer.hearing
    await store.enqueue([a_job(queue="mail")])
    assert await ear.next() == WorkHint("mail", 100)


async def test_what_was_stored_while_it_was_deaf_is_found_after_the_resync(ear, store, hearer):
    async with store._desks().connections.connection() as connection:
        await connection.execute("SELECT pg_terminate_backend(%s)", [await ear.pid()])
        job = a_job()
        await store.enqueue([job])

    while await ear.next() != ResyncHint():
        pass
    assert [found.id for found in await claim(hearer)] == [job.id]


@pytest.mark.slow
async def test_a_connection_that_fell_silent_is_noticed_by_its_own_ping_and_replaced(
    hearer, store, monkeypatch
):
    """Its server process is stopped: no answer, no error, as when a firewall forgot the connection."""
    monkeypatch.setattr(listen, "PING_EVERY", 0.2)
    monkeypatch.setattr(listen, "ANSWER_WITHIN", 0.3)
    ear = Ear(hearer)
    assert await ear.next() == ResyncHint()
    frozen = await ear.pid()
    os.kill(frozen, signal.SIGSTOP)
    try:
        assert [await ear.next(within=20), await ear.next()] == [DeafHint(), ResyncHint()]
        await store.enqueue([a_job(queue="mail")])
        assert await ear.next() == WorkHint("mail", 100)
    finally:
        os.kill(frozen, signal.SIGCONT)
        await ear.close()


async def test_a_connection_that_hears_its_pings_is_left_alone(hearer, store, monkeypatch):
    monkeypatch.setattr(listen, "PING_EVERY", 0.05)
    ear = Ear(hearer)
    assert await ear.next() == ResyncHint()
    first = await ear.pid()

    await asyncio.sleep(0.5)
    await store.enqueue([a_job(queue="mail")])

    assert await ear.next() == WorkHint("mail", 100)
    assert await ear.pid() == first
    await ear.close()


@pytest.mark.parametrize("notice", ["", "w", "w:soon:mail", "c:nobody", "x:100:mail", "p:another's ping"])
async def test_notices_that_are_not_ours_are_passed_over(ear, store, notice):
    async with store._desks().connections.connection() as connection:
        await connection.execute("SELECT pg_notify('rota', %s)", [notice])
    await store.enqueue([a_job(queue="mail")])

    assert await ear.next() == WorkHint("mail", 100)
