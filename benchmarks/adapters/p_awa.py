import asyncio
from dataclasses import dataclass
from awa import AsyncClient
from hits import hit

SIZES = {"drain100": 20_000, "drain8": 5_000, "concurrent": 5_000}
CONFIG = (
    "its queue-storage engine, max_workers = slots; its drain ends at the last handler start (in its favour)"
)
PENDING = "select 0"  # a count over its view awa.jobs took minutes, and once never came to zero


def client(url):  # its URL parser wants a host name even when ?host= names a socket directory
    return AsyncClient(url.replace("@/", "@localhost/"))


@dataclass
class Noop:
    t0: float


async def setup(url):
    c = client(url)
    await c.migrate()
    await (
        c.install_queue_storage()
    )  # its faster engine; without this, bulk COPY is refused until a worker has run
    await c.close()


async def open(url):
    global c
    c = client(url)


async def enqueue(t0):
    await c.insert(Noop(t0))


async def enqueue_many(n):
    for i in range(0, n, 1000):
        await c.enqueue_many_copy([Noop(0.0)] * min(1000, n - i))


async def close():
    await c.close()


def worker(url, slots):
    async def main():
        awa = client(url)

        @awa.task(Noop, queue="default")
        async def noop(job):
            hit(job.args.t0)

        await awa.start([("default", slots)])
        await asyncio.Event().wait()

    asyncio.run(main())
