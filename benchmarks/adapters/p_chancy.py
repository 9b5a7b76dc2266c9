import asyncio, logging
from chancy import Chancy, Job, Queue, Worker
from hits import hit

SIZES = {"bulk": 10_000, "drain100": 10_000, "drain8": 5_000, "concurrent": 5_000, "f": 10_000}
CONFIG = "async executor, concurrency = slots, eager polling, 1 s polling interval"
PENDING = "select count(*) from chancy_jobs where state in ('pending','running','retrying') and scheduled_at <= now()"
COLUMNS = (
    "id, queue, func, kwargs, limits, meta, priority, max_attempts, created_at, state, attempts, scheduled_at"
)
ROW = "gen_random_uuid(),'default','p_chancy.noop','{}','[]','{}',0,1,now()"
BACKLOG = [
    f"insert into chancy_jobs({COLUMNS}, completed_at) select {ROW},'succeeded',1,now(),now() from generate_series(1,{{done}})",
    f"insert into chancy_jobs({COLUMNS}) select {ROW},'pending',0,now()+interval '1 day' from generate_series(1,{{scheduled}})",
]
CHURN = [
    f"insert into chancy_jobs({COLUMNS}) select {ROW},'pending',0,now() from generate_series(1,{{n}})",
    "update chancy_jobs set state = 'running', started_at = now()",
    "update chancy_jobs set state = 'succeeded', completed_at = now()",
]
log = logging.getLogger("chancy")


async def noop(*, t0: float):
    hit(t0)


def queue(slots):
    return Queue(
        "default", concurrency=slots, executor=Chancy.Executor.Async, eager_polling=True, polling_interval=1
    )


def job(t0):
    return Job(func="p_chancy.noop", kwargs={"t0": t0})


async def setup(url):
    async with Chancy(url, log=log) as c:
        await c.migrate()
        await c.declare(queue(100))


async def open(url):
    global c
    c = Chancy(url, log=log)
    await c.__aenter__()


async def enqueue(t0):
    await c.push(job(t0))


async def enqueue_many(n):
    j = job(0.0)
    async for _ in c.push_many([j] * n, batch_size=1000):
        pass


async def close():
    await c.__aexit__(None, None, None)


def worker(url, slots):
    async def main():
        async with Chancy(url, log=log) as c:
            await c.declare(queue(slots), upsert=True)
            async with Worker(c) as w:
                await w.wait_for_shutdown()

    asyncio.run(main())
