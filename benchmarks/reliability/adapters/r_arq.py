"""arq on Redis. A job's id is its number, so that its own table can be read by number."""

import asyncio
import os

from arq import Worker, create_pool, func
from arq.connections import RedisSettings

from reliability.body import perform

PACKAGE = "arq"
NOTES = {
    "defaults": "job_timeout 300 s (so a lost job is free after 310 s), max_tries 5; Redis with appendfsync always",
    "tuned": "job_timeout 5 s (free after 15 s), poll every 0.1 s, waits 25 s for jobs at a stop, 20 connection retries",
}
JOBS = None
INSERTS = "EXEC"
LISTENS = None
PENDING = None
tuned = os.environ.get("BENCH_PROFILE") == "tuned"


async def work(ctx, n, s, file, how=""):
    await perform(n, s, file, how)


def settings(url):
    found = RedisSettings.from_dsn(url)
    if tuned:
        found.conn_retries = 20
        found.retry_on_timeout = True
    return found


async def setup(url):
    pass


async def open(url):
    global pool
    pool = await create_pool(settings(url))


async def enqueue(jobs):
    left = iter(jobs)

    async def go():
        for job in left:
            await pool.enqueue_job("work", **job, _job_id=str(job["n"]))

    await asyncio.gather(*(go() for _ in range(20)))


async def plain(job):
    # None stands for "this id exists", which a random one cannot: arq says so too when its connection broke.
    if await pool.enqueue_job("work", **job) is None:
        raise ConnectionError("not enqueued")


async def keyed(job, key):
    return await pool.enqueue_job("work", **job, _job_id=key) is not None


unique = keyed


async def close():
    await pool.aclose()


def worker(url, slots):
    asyncio.set_event_loop(asyncio.new_event_loop())
    short = {"job_timeout": 5, "poll_delay": 0.1, "job_completion_wait": 25} if tuned else {}
    Worker([func(work, name="work")], redis_settings=settings(url), max_jobs=slots, **short).run()
