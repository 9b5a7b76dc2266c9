"""Rota itself, by its public API; SQL only fills tables where running a million jobs would take too long."""
import os
from rota import Rota
from hits import hit

SIZES = {"drain100": 100_000, "drain8": 30_000, "concurrent": 20_000, "f": 50_000, "memory": 40_000}
CONFIG = "one lane `general` with all slots, everything else at its defaults; enqueue_many in chunks of 10,000"
QUEUES = [f"q{i}" for i in range(5)]
# Ids are UUIDv7, so what is sent after now sorts after this one.
MARK = ("select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') "
        "|| '70008000000000000000')::uuid")
PENDING = "select count(*) from rota.jobs where id > '{mark}'"
OLD_ID = ("(lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 3000000 + g), 12, '0') "
          "|| '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid")  # in the order of their time
BACKLOG = [
    "insert into rota.finished_jobs(id, run_at, created_at, claimed_at, finished_at, version, snoozes, priority, attempt, "
    f"max_attempts, losses, state, task, queue, payload) select {OLD_ID}, now(), now(), now(), now(), 3, 0, 100, 1, 5, 0, "
    "'completed', 'noop', 'default', '{\"t0\": 0.0}' from generate_series(1,{done}) g",
    "insert into rota.jobs(id, run_at, created_at, updated_at, task, payload) "
    f"select {OLD_ID}, now() + interval '1 day' + g * interval '1 ms', now(), now(), 'noop', '{{\"t0\": 0.0}}' "
    "from generate_series(1,{scheduled}) g",
]
CHURN = None  # by really running them: nothing leaves the same dead rows behind as the engine itself

url = os.environ["BENCH_URL"]
app = Rota("memory://" if url == "none" else url)


@app.task
async def noop(t0: float) -> None:
    hit(t0)


async def setup(url):
    await app.migrate()


async def open(url):
    pass


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
