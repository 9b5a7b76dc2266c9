"""procrastinate on its psycopg pool; its documents' task for stalled jobs runs beside it only where it is tuned."""

import asyncio
import os

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued

from reliability.body import perform

PACKAGE = "procrastinate"
NOTES = {
    "defaults": "run_worker_async, no rescue (the task for stalled jobs is left to the user)",
    "tuned": "heartbeat 1 s, stalled after 3 s, poll 1 s; its documents' retry of stalled jobs every second",
}
JOBS = """
select (args->>'n')::int, case status when 'todo' then 'waiting' when 'doing' then 'running'
    when 'succeeded' then 'done' else 'failed' end, attempts, id::text
from procrastinate_jobs
"""
INSERTS = "procrastinate_defer"
LISTENS = "LISTEN"
PENDING = """
insert into procrastinate_jobs(queue_name, task_name, status, args)
select 'default', 'work', 'todo', {payload} from generate_series({first}, {last}) g
"""
tuned = os.environ.get("BENCH_PROFILE") == "tuned"
pooled = bool(os.environ.get("BENCH_DIRECT_URL"))


def make(url):
    global app, work
    # Behind a pooler psycopg's own documents say to prepare nothing.
    more = {"kwargs": {"prepare_threshold": None}} if tuned and pooled else {}
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=20, **more)
    )

    @app.task(name="work", queue="default")
    async def work(n, s, file, how=""):
        await perform(n, s, file, how)


async def setup(url):
    make(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def open(url):
    make(url)
    await app.open_async()


async def enqueue(jobs):
    for i in range(0, len(jobs), 1000):
        await work.batch_defer_async(*jobs[i : i + 1000])


async def plain(job):
    await work.defer_async(**job)


async def keyed(job, key):
    try:
        await work.configure(queueing_lock=key).defer_async(**job)
        return True
    except AlreadyEnqueued:
        return False


unique = keyed


async def close():
    await app.close_async()


async def rescue(url):
    """What its "retry stalled jobs" page says, in a loop of its own instead of a periodic task."""
    await open(url)
    while True:
        try:
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=3):
                await app.job_manager.retry_job(job)
        except Exception as error:
            print(f"rescue: {error!r}", flush=True)
        await asyncio.sleep(1)


def worker(url, slots):
    make(url)
    short = {
        "update_heartbeat_interval": 1,
        "stalled_worker_timeout": 3,
        "fetch_job_polling_interval": 1,
        "listen_notify": not pooled,
    }

    async def main():
        async with app.open_async():
            await app.run_worker_async(queues=["default"], concurrency=slots, **(short if tuned else {}))

    asyncio.run(main())
