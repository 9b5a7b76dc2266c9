"""Rota by its own command: `rota worker` with its supervisor, one lane with the given slots."""

import os
import sys

from reliability.body import perform
from rota import Rota

PACKAGE = "rota"
NOTES = {
    "defaults": "`rota worker`, everything at its defaults (lease 15 s, beat 5 s)",
    "tuned": "lease 3 s, beat 1 s, polls every 0.5 s (0.8 s where it listens); behind a pooler with ROTA_LISTEN_URL",
}
JOBS = """
select (payload->>'n')::int, case state when 'running' then 'running' else 'waiting' end, attempt, id::text from rota.jobs
union all select (payload->>'n')::int, case state when 'cancelled' then 'failed' else 'done' end, attempt, id::text
from rota.finished_jobs
union all select (payload->>'n')::int, 'failed', attempt, id::text from rota.dead_jobs
"""
INSERTS = "rota"
LISTENS = "LISTEN"
PENDING = """
insert into rota.jobs(id, run_at, created_at, updated_at, task, payload)
select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 3000000 + g), 12, '0')
        || '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid,
       now() - interval '1 hour' + g * interval '1 ms', now(), now(), 'work', {payload}
from generate_series({first}, {last}) g
"""
SETTINGS = {"tuned": {"ROTA_LEASE": "3", "ROTA_BEAT": "1", "ROTA_POLL": "0.5", "ROTA_IDLE_POLL": "0.8"}}

# A child process in which a suspect runs has no BENCH_URL: its address comes through the worker's pipe.
app = Rota(os.environ.get("BENCH_URL"))


@app.task
async def work(n: int, s: float, file: str, how: str = "") -> None:
    await perform(n, s, file, how)


async def setup(url):
    await app.migrate()


async def open(url):
    await app.open()


async def enqueue(jobs):
    for i in range(0, len(jobs), 5000):
        await work.enqueue_many(jobs[i : i + 5000])


async def plain(job):
    await work.enqueue(**job)


async def keyed(job, key):
    return (await work.using(key=key).enqueue(**job)).created


async def unique(job, key):
    return (await work.using(unique=key).enqueue(**job)).created


async def close():
    await app.close()


def worker(url, slots):
    profile = os.environ["BENCH_PROFILE"]
    os.environ.update(SETTINGS.get(profile, {}), ROTA_URL=url)
    if profile == "tuned" and os.environ.get("BENCH_DIRECT_URL"):
        os.environ["ROTA_LISTEN_URL"] = os.environ["BENCH_DIRECT_URL"]
    words = ["worker", "reliability.adapters.r_rota:app", "--lane", f"general={slots}"]
    os.execv(sys.executable, [sys.executable, "-m", "rota.cli", *words])
