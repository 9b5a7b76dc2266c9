import asyncio
from arq import create_pool, Worker, func
from arq.connections import RedisSettings
from hits import hit

SIZES = {"bulk": 10_000, "drain100": 5_000, "drain8": 2_000, "concurrent": 5_000}
CONFIG = "max_jobs = slots, poll_delay 0.05 s instead of 0.5, no results kept; no bulk call: 50 coroutines"
PENDING = ["ZCARD arq:queue"]


async def noop(ctx, t0):
    hit(t0)


async def open(url):
    global pool
    pool = await create_pool(RedisSettings.from_dsn(url))


async def enqueue(t0):
    await pool.enqueue_job("noop", t0)


async def enqueue_many(n):
    left = iter(range(n))

    async def go():
        for _ in left:
            await pool.enqueue_job("noop", 0.0)

    await asyncio.gather(*(go() for _ in range(50)))


async def close():
    await pool.aclose()


def worker(url, slots):
    asyncio.set_event_loop(asyncio.new_event_loop())
    Worker(
        [func(noop, keep_result=0, name="noop")],
        redis_settings=RedisSettings.from_dsn(url),
        max_jobs=slots,
        poll_delay=0.05,
    ).run()
