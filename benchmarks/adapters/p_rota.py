"""Rota itself, by its public API; SQL only fills tables where running a million jobs would take too long."""

import os
from rota import Rota
from backlog import FINISHED, SCHEDULED
from hits import hit

SIZES = {"drain100": 100_000, "drain8": 30_000, "concurrent": 20_000, "f": 50_000, "memory": 40_000}
CONFIG = (
    "one lane `general` with all slots, everything else at its defaults; enqueue_many in chunks of 10,000"
)
QUEUES = [f"q{i}" for i in range(5)]
# Ids are UUIDv7, so what is sent after now sorts after this one.
MARK = (
    "select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') "
    "|| '70008000000000000000')::uuid"
)
PENDING = "select count(*) from rota.jobs where id > '{mark}'"
BACKLOG = [FINISHED.replace("@", "{done}"), SCHEDULED.replace("@", "{scheduled}")]
CHURN = None  # by really running them: nothing leaves the same dead rows behind as the engine itself

url = os.environ["BENCH_URL"]
app = Rota("memory://" if url == "none" else url)


@app.task
async def noop(t0: float) -> None:
    hit(t0)


async def setup(url):
    await app.migrate()


async def open(url):
    await app.open()
    noop.prepare((0.0,), {})  # loads what checks arguments: the others did so when they were imported


async def enqueue(t0):
    await noop.enqueue(t0)


async def enqueue_many(n):
    for i in range(0, n, 10_000):
        await noop.enqueue_many([(0.0,)] * min(10_000, n - i))


async def mixed(n):
    for queue in QUEUES:
        for priority in (50, 100, 150):
            await noop.using(queue=queue, priority=priority).enqueue_many([(0.0,)] * (n // 15))
    await enqueue_many(n - n // 15 * 15)


async def urgent(t0):
    await noop.using(queue=QUEUES[-1], priority=0).enqueue(t0)


def worker(url, slots):
    from rota.worker import run

    run(app, lanes={"general": slots})
