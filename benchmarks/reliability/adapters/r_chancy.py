"""chancy with its asyncio executor, because the handler is a coroutine; its default plugins are on."""

import asyncio
import logging
import os

from chancy import Chancy, Job, Queue, Worker
from chancy.plugins.leadership import Leadership
from chancy.plugins.recovery import Recovery

from reliability.body import perform

PACKAGE = "chancy"
NOTES = {
    "defaults": "async executor, eager polling, default plugins (heartbeat 30 s, dead after 90 s, recovery every 60 s)",
    "tuned": "heartbeat 1 s, dead after 3 s, recovery and leadership every second",
}
JOBS = """
select (kwargs->>'n')::int, case when state in ('pending', 'retrying') then 'waiting' when state = 'running' then 'running'
    when state = 'succeeded' then 'done' else 'failed' end, attempts, id::text
from chancy_jobs
"""
INSERTS = "chancy_jobs"
LISTENS = "LISTEN"
PENDING = """
insert into chancy_jobs(id, queue, func, kwargs, limits, meta, priority, max_attempts, created_at, state, attempts, scheduled_at)
select gen_random_uuid(), 'default', 'reliability.adapters.r_chancy.work', {payload}, '[]', '{{}}', 0, 1, now(), 'pending', 0, now()
from generate_series({first}, {last}) g
"""
tuned = os.environ.get("BENCH_PROFILE") == "tuned"
pooled = bool(os.environ.get("BENCH_DIRECT_URL"))
log = logging.getLogger("chancy")


async def work(*, n: int, s: float, file: str, how: str = ""):
    await perform(n, s, file, how)


def queue(slots):
    # Else it would begin a slot's next job at its next poll only, whatever the figure is about.
    more = {"eager_polling": True, "polling_interval": 1}
    return Queue("default", concurrency=slots, executor=Chancy.Executor.Async, **more)


def app(url):
    plugins = [Recovery(poll_interval=1), Leadership(poll_interval=1, timeout=3)] if tuned else []
    # Its documents: no notifications behind a pooler.
    return Chancy(url, log=log, plugins=plugins, notifications=not (tuned and pooled))


def a_job(job, **more):
    return Job(func="reliability.adapters.r_chancy.work", kwargs=job, **more)


async def setup(url):
    async with app(url) as c:
        await c.migrate()
        await c.declare(queue(5))


async def open(url):
    global c
    c = app(url)
    await c.__aenter__()


async def enqueue(jobs):
    async for _ in c.push_many([a_job(job) for job in jobs], batch_size=1000):
        pass


async def plain(job):
    await c.push(a_job(job))


async def keyed(job, key):
    await c.push(a_job(job, unique_key=key))
    return None


unique = keyed


async def close():
    await c.__aexit__(None, None, None)


def worker(url, slots):
    short = {"heartbeat_poll_interval": 1, "heartbeat_timeout": 3, "backoff_max": 2.0}

    async def main():
        async with app(url) as c:
            await c.declare(queue(slots), upsert=True)
            async with Worker(c, **(short if tuned else {})) as w:
                await w.wait_for_shutdown()

    asyncio.run(main())
