"""Connections belong to event loops: each loop has its own, and a loop that is gone leaves none behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import suppress

import psycopg
import pytest

from build import a_job
from rota.stores.postgres import PostgresStore

OPEN = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'rota'"
)


async def test_loops_that_end_without_a_goodbye_leave_no_connections_behind(fresh_database):
    store = PostgresStore(fresh_database)

    def short_lives() -> None:
        for _ in range(8):
            asyncio.run(store.enqueue([a_job()]))

    thread = threading.Thread(target=short_lives)
    thread.start()
    await asyncio.to_thread(thread.join)
    await store.enqueue([a_job()])

    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as watcher:
        row = await (await watcher.execute(OPEN)).fetchone()
    await store.close()
    assert row is not None
    assert row[0] <= 2


async def test_two_loops_use_one_store_at_the_same_time(fresh_database):
    store = PostgresStore(fresh_database)

    async def fifty() -> None:
        await asyncio.gather(*[store.enqueue([a_job()]) for _ in range(50)])
        await store.close()

    threads = [threading.Thread(target=lambda: asyncio.run(fifty())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)

    [count] = await store.counts()
    await store.close()
    assert count.jobs == 150


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.003, 0.01])
def test_a_script_that_fails_while_its_calls_are_under_way_ends(fresh_database, pause):
    """psycopg's pool takes a cancellation for a failed connection: asyncio.run() would then wait for ever."""
    script = (
        "import asyncio\n"
        "from rota.stores.postgres import PostgresStore\n"
        "async def main():\n"
        f"    store = PostgresStore({fresh_database!r})\n"
        "    await store.now()\n"
        "    calls = [asyncio.create_task(store.now()) for _ in range(8)]\n"
        f"    await asyncio.sleep({pause})\n"
        "    raise SystemExit(3)\n"
        "asyncio.run(main())\n"
    )

    running = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        running.wait(20)
    code = running.poll()
    running.kill()
    running.wait()

    assert code == 3, "it still ran after 20 seconds" if code is None else "it ended otherwise"
