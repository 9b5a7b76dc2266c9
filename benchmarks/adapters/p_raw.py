"""Not a peer: the ceiling. The least SQL and the least Python that still is a durable queue, behind the same interface.

Claim and completion in one statement (one round trip, one commit a batch), two lanes, a cursor that skips dead index
entries with a rescan from the left end now and then, delete on completion, one NOTIFY a statement. No retries, leases,
heartbeats, priorities or results.
"""

import asyncio, json, time, asyncpg
from hits import hit

SIZES = {"drain100": 100_000, "drain8": 40_000, "concurrent": 20_000, "f": 50_000, "memory": 40_000}
CONFIG = "asyncpg; 100 slots: 2 connections of 50 jobs each, 8 slots: 1 of 8 (its best)"
MARK = "select case when is_called then last_value else 0 end from jobs_id_seq"
PENDING = "select count(*) from jobs where id > {mark} and state < 2"
BACKLOG = [
    "insert into jobs(args, state, finished_at) select '{\"t0\":0}', 2, now() from generate_series(1,{done})",
    "insert into jobs(args, run_at) select '{\"t0\":0}', now()+interval '1 day' from generate_series(1,{scheduled})",
]
CHURN = [
    "insert into jobs(args) select '{\"t0\":0}' from generate_series(1,{n})",
    "update jobs set state = 1, claimed_at = now()",
    "delete from jobs",
]
BOTH = """with fin as (delete from jobs where id = any($2::bigint[]) returning 1)
update jobs j set state = 1, attempt = attempt + 1, claimed_at = now() where j.id = any(array(
  select id from jobs where state = 0 and id > $3 and run_at <= now() order by id limit $1 for update skip locked
)) returning j.id, j.args"""
c = pool = None
INSERT = "with i as (insert into jobs(args) values ($1) returning id) select id, pg_notify('jobs','') from i"


async def setup(url):
    c = await asyncpg.connect(url)
    await c.execute("""create table jobs (id bigint generated always as identity primary key, queue text not null default
        'default', state smallint not null default 0, priority smallint not null default 0, attempt smallint not null
        default 0, run_at timestamptz not null default now(), claimed_at timestamptz, finished_at timestamptz,
        args jsonb not null); create index on jobs (id) where state = 0""")
    await c.close()


async def open(url):
    global c
    c = await asyncpg.connect(url)


async def open_pool(url):
    global pool
    pool = asyncio.LifoQueue()  # not asyncpg's pool, which sends a reset after every use
    for _ in range(16):
        pool.put_nowait(await asyncpg.connect(url))


async def enqueue(t0):
    if pool is None:
        await c.fetch(INSERT, json.dumps({"t0": t0}))
    else:
        mine = await pool.get()
        await mine.fetch(INSERT, json.dumps({"t0": t0}))
        pool.put_nowait(mine)


async def enqueue_many(n):
    a = json.dumps({"t0": 0.0})
    async with c.transaction():
        await c.copy_records_to_table("jobs", records=((a,) for _ in range(n)), columns=["args"])
        await c.execute("notify jobs")


async def close():
    await c.close() if c else None


async def handler(args):
    hit(args["t0"])


def worker(url, slots):
    lanes = 2 if slots > 16 else 1  # two lanes of 4 drain less than half of what one lane of 8 does
    asyncio.run(Worker(url, lanes, slots // lanes).run())


class Worker:
    def __init__(self, url, lanes, batch):
        self.url, self.lanes, self.batch, self.wake = url, lanes, batch, asyncio.Event()
        self.low, self.rescan_at = 0, 0.0

    async def lane(self):
        c = await asyncpg.connect(self.url)
        both = await c.prepare(BOTH)
        ids = []
        while True:
            self.wake.clear()
            t = time.monotonic()
            full = t >= self.rescan_at
            if full:  # rows committed late, retried or released lie below the cursor
                self.rescan_at = t + 60
            rows = await both.fetch(self.batch, ids, 0 if full else self.low)
            ids = [r[0] for r in rows]
            if full:
                now = time.monotonic()
                self.rescan_at = now + max(0.25, 20 * (now - t))
            if rows:
                self.low = max(self.low, *ids)
                await asyncio.gather(*[asyncio.ensure_future(handler(json.loads(r[1]))) for r in rows])
            else:
                try:
                    await asyncio.wait_for(self.wake.wait(), 5)
                except TimeoutError:
                    self.rescan_at = 0.0

    async def run(self):
        listener = await asyncpg.connect(self.url)
        await listener.add_listener("jobs", lambda *_: self.wake.set())
        await asyncio.gather(*(self.lane() for _ in range(self.lanes)))
