"""pgqueuer as `pgq run` runs it (with its signal handling), on one asyncpg connection as its documents show."""

import asyncio
import json
import os
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.adapters.cli.supervisor import run
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.errors import DuplicateJobError
from pgqueuer.queries import Queries

from reliability.body import perform

PACKAGE = "pgqueuer"
NOTES = {
    "defaults": "pgqueuer.run(), heartbeat timeout 30 s; batch size = half the slots, max_concurrent_tasks = slots",
    "tuned": "heartbeat timeout 3 s, dequeue timeout 1 s, stop on listener failure, restart on failure after 1 s",
}
# Finished jobs live only in its log, without their payload: the number is found by the id.
JOBS = """
select id, case status when 'queued' then 'waiting' when 'picked' then 'running' else 'failed' end, attempts, id::text
from pgqueuer
union all select job_id, case status when 'successful' then 'done' else 'failed' end, null, job_id::text
from pgqueuer_log where status in ('successful', 'exception', 'canceled', 'deleted')
"""
BY_ID = True
NUMBERS = "select id, (convert_from(payload, 'utf8')::jsonb->>'n')::int from pgqueuer"
INSERTS = "pgqueuer"
LISTENS = ""  # its only connection is the one that listens
PENDING = """
insert into pgqueuer(priority, status, entrypoint, payload)
select 0, 'queued', 'work', convert_to(({payload})::text, 'utf8') from generate_series({first}, {last}) g
"""
tuned = os.environ.get("BENCH_PROFILE") == "tuned"
pooled = bool(os.environ.get("BENCH_DIRECT_URL"))


def options():
    """Behind a pooler asyncpg's own documents say to keep no statements prepared."""
    return {"statement_cache_size": 0} if tuned and pooled else {}


def address(url):
    """asyncpg takes libpq's words for settings of the server."""
    return url.replace("&gssencmode=disable", "")


def bytes_of(job):
    return json.dumps(job).encode()


async def setup(url):
    conn = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(conn)).install()
    await conn.close()


async def open(url):
    global pool, queries
    pool = await asyncpg.create_pool(address(url), min_size=1, max_size=16, **options())
    queries = Queries(AsyncpgPoolDriver(pool))


async def enqueue(jobs):
    ids = []
    for i in range(0, len(jobs), 1000):
        part = jobs[i : i + 1000]
        ids += await queries.enqueue(["work"] * len(part), [bytes_of(j) for j in part], [0] * len(part))
    return {str(i): j["n"] for i, j in zip(ids, jobs)}


async def plain(job):
    await queries.enqueue("work", bytes_of(job), 0)


async def keyed(job, key):
    try:
        await queries.enqueue("work", bytes_of(job), 0, dedupe_key=key)
        return True
    except DuplicateJobError:
        return False


unique = keyed


async def close():
    await pool.close()


def worker(url, slots):
    @asynccontextmanager
    async def factory():
        conn = await asyncpg.connect(address(url), **options())
        pgq = PgQueuer(AsyncpgDriver(conn))

        @pgq.entrypoint("work")
        async def work(job):
            await perform(**json.loads(job.payload))

        try:
            yield pgq
        finally:
            await conn.close()

    short = {
        "heartbeat_timeout": timedelta(seconds=3),
        "dequeue_timeout": timedelta(seconds=1),
        "shutdown_on_listener_failure": True,
        "restart_on_failure": True,
        "restart_delay": timedelta(seconds=1),
    }
    asyncio.run(
        run(
            factory,
            batch_size=max(1, slots // 2),
            max_concurrent_tasks=max(2, slots),
            **(short if tuned else {}),
        )
    )
