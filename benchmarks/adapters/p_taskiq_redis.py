import asyncio, os
from taskiq_redis import RedisStreamBroker
from hits import hit

SIZES = {"bulk": 10_000, "drain100": 10_000, "drain8": 10_000, "concurrent": 5_000}
CONFIG = "stream broker, 1 worker process, --max-async-tasks = slots, acknowledged when executed; bulk: 20 coroutines"
# Not yet handed out (after the group's last id) and handed out but not acknowledged; its stream keeps what is done.
PENDING = [
    [
        "EVAL",
        "local g=redis.call('XINFO','GROUPS',KEYS[1])[1] local n=0 local last "
        "for i=1,#g,2 do if g[i]=='pending' then n=g[i+1] end if g[i]=='last-delivered-id' then last=g[i+1] end end "
        "return n + #redis.call('XRANGE',KEYS[1],'('..last,'+','COUNT','1000')",
        "1",
        "q",
    ]
]
URL = os.environ["BENCH_URL"]
broker = None if URL == "none" else RedisStreamBroker(url=URL, queue_name="q", xread_count=100)


async def noop(t0: float) -> None:
    hit(t0)


if broker:
    noop = broker.task(task_name="noop")(noop)


async def setup(url):
    await broker.startup()
    await broker.shutdown()


async def open(url):
    await broker.startup()


async def enqueue(t0):
    await noop.kiq(t0)


async def enqueue_many(n):  # no bulk call
    left = iter(range(n))

    async def go():
        for _ in left:
            await noop.kiq(0.0)

    await asyncio.gather(*(go() for _ in range(20)))


async def close():
    await broker.shutdown()


def worker(url, slots):
    os.execvp(
        "taskiq",
        [
            "taskiq",
            "worker",
            "p_taskiq_redis:broker",
            "--workers",
            "1",
            "--max-async-tasks",
            str(slots),
            "--ack-type",
            "when_executed",
            "--log-level",
            "ERROR",
        ],
    )
