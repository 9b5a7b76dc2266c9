import asyncio, struct, asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from hits import hit

SIZES = {"drain100": 100_000, "drain8": 30_000, "concurrent": 10_000, "f": 50_000, "memory": 10_000}
CONFIG = "asyncpg driver, batch_size = slots, no max_concurrent_tasks (may hold more than its slots)"
QUEUES = [f"q{i}" for i in range(5)]  # an entrypoint is its address
MARK = "select case when is_called then last_value else 0 end from pgqueuer_id_seq"
PENDING = "select count(*) from pgqueuer where id > {mark}"
BACKLOG = [  # finished jobs live in the log table, so both are filled
    "insert into pgqueuer_log(job_id, status, priority, entrypoint) "
    "select g, 'successful', 0, 'noop' from generate_series(1,{done}) g",
    "insert into pgqueuer(priority, status, entrypoint, payload, execute_after) "
    "select 0,'queued','noop',null, now()+interval '1 day' from generate_series(1,{scheduled})",
]
CHURN = [
    "insert into pgqueuer(priority, status, entrypoint, payload) select 0,'queued','noop',null from generate_series(1,{n})",
    "update pgqueuer set status = 'picked', heartbeat = now(), updated = now()",
    "delete from pgqueuer",
]


async def setup(url):
    conn = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(conn)).install()
    await conn.close()


async def open(url):
    global conn, q
    conn = await asyncpg.connect(url)
    q = Queries(AsyncpgDriver(conn))


async def open_pool(url):
    global conn, q
    conn = await asyncpg.create_pool(url, min_size=16, max_size=16)
    q = Queries(AsyncpgPoolDriver(conn))


async def enqueue(t0):
    await q.enqueue("noop", struct.pack("d", t0), 0)


async def enqueue_many(n):
    p = struct.pack("d", 0.0)
    for i in range(0, n, 1000):
        k = min(1000, n - i)
        await q.enqueue(["noop"] * k, [p] * k, [0] * k)


async def mixed(n):
    p = struct.pack("d", 0.0)
    for i in range(0, n, 1000):
        k = min(1000, n - i)
        await q.enqueue([QUEUES[j % 5] for j in range(k)], [p] * k, [j % 3 for j in range(k)])


async def urgent(t0):
    await q.enqueue(QUEUES[-1], struct.pack("d", t0), 100)  # here the higher number runs first


async def close():
    await conn.close()


def worker(url, slots):
    async def main():
        conn = await asyncpg.connect(url)
        pgq = PgQueuer(AsyncpgDriver(conn))

        async def noop(job):
            hit(struct.unpack("d", job.payload)[0])

        for name in ("noop", *QUEUES):
            pgq.entrypoint(name)(noop)
        await pgq.run(batch_size=slots)

    asyncio.run(main())
