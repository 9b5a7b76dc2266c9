import asyncio, procrastinate
from hits import hit

SIZES = {"bulk": 20_000, "drain100": 3_000, "drain8": 3_000, "concurrent": 5_000, "f": 5_000}
CONFIG = "psycopg pool of up to 20, concurrency = slots, listen/notify on"
MARK = "select case when is_called then last_value else 0 end from procrastinate_jobs_id_seq"
PENDING = "select count(*) from procrastinate_jobs where id > {mark} and status in ('todo','doing')"
BACKLOG = [
    "insert into procrastinate_jobs(queue_name, task_name, status, args) "
    "select 'default','noop','succeeded','{\"t0\":0}' from generate_series(1,{done})",
    "insert into procrastinate_jobs(queue_name, task_name, status, args, scheduled_at) "
    "select 'default','noop','todo','{\"t0\":0}', now()+interval '1 day' from generate_series(1,{scheduled})",
]
CHURN = [
    "insert into procrastinate_jobs(queue_name, task_name, status, args) "
    "select 'default','noop','todo','{\"t0\":0}' from generate_series(1,{n})",
    "update procrastinate_jobs set status = 'doing' where status = 'todo'",
    "update procrastinate_jobs set status = 'succeeded' where status = 'doing'",
]


def make(url):
    global app, noop
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=20))

    @app.task(name="noop", queue="default")
    async def noop(t0):
        hit(t0)


async def setup(url):
    make(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def open(url):
    make(url)
    await app.open_async()


async def enqueue(t0):
    await noop.defer_async(t0=t0)


async def enqueue_many(n):
    for i in range(0, n, 1000):
        await noop.batch_defer_async(*[{"t0": 0.0}] * min(1000, n - i))


async def close():
    await app.close_async()


def worker(url, slots):
    make(url)

    async def main():
        async with app.open_async():
            await app.run_worker_async(queues=["default"], concurrency=slots)

    asyncio.run(main())
