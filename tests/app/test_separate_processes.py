"""One process enqueues, another runs the jobs; they share the store and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from rota import Rota, State
from rota.stores.postgres import PostgresStore

WEB = """
    import asyncio
    from rota import Rota

    app = Rota()

    @app.task(queue="fast")
    async def double(number: int) -> int:
        raise SystemExit("the web process ran a job")

    async def main() -> None:
        async with app.lifespan():
            handles = await double.enqueue_many([1, 2, 3])
            await asyncio.sleep(0.5)
            print(*(handle.id for handle in handles))

    asyncio.run(main())
"""


@pytest.mark.req("L24")
async def test_a_web_process_only_enqueues_and_another_process_runs_its_jobs(fresh_database, work):
    web = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WEB)],
        env={**os.environ, "ROTA_URL": fresh_database},
        capture_output=True,
        text=True,
        check=True,
    )
    worker = Rota(store=PostgresStore(fresh_database))

    @worker.task
    async def double(number: int) -> int:
        return number * 2

    handles = [worker.job(job_id) for job_id in web.stdout.split()]
    assert [await handle.status() for handle in handles] == [State.PENDING] * 3
    await work(worker)

    assert [await handle for handle in handles] == [2, 4, 6]
    await worker.close()
