"""What a purge of a million finished jobs costs the workers beside it: their rate with it and without it, in one run.

python benchmarks/purge.py                       a million jobs, and a worker with 100 slots at full rate
python benchmarks/purge.py --rows 100000 --window 5

The worker drains no-op jobs all the time, in a process of its own; the purge is the janitor's, pauses included. The
rate without it is the mean of a window before and of one after, because the worker's own tables grow meanwhile. The
last line is the ratio; the goal is 0.8 or more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OLD = "10 days"
FINISHED = """
INSERT INTO rota.finished_jobs (id, run_at, created_at, claimed_at, finished_at, version, state, task, queue, payload,
                                priority, attempt, max_attempts, snoozes, losses, tenant, correlation_id)
SELECT (lpad(to_hex((extract(epoch FROM now() - interval '10 days') * 1000)::bigint + g / 100), 12, '0')
        || '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid,
       now() - interval '10 days', now() - interval '10 days', now() - interval '10 days',
       now() - interval '10 days', 3, 'completed', 'email', 'default',
       jsonb_build_object('to', 'somebody@example.org', 'template', 'welcome', 'order', g),
       100, 1, 5, 0, 0, 'tenant-' || mod(g, 50), NULL
FROM generate_series(%(first)s::int, %(last)s::int) AS g
"""


def work(url: str) -> None:
    """The worker: drains no-op jobs, and says on stdout how many are done."""
    from rota import Rota
    from rota.worker import run
    from rota.worker.chores.janitor import Janitor

    async def rest(_: Janitor) -> None:
        await asyncio.sleep(3600)

    Janitor.step = rest  # the purge is begun when the rate without it is known
    app = Rota(url)
    done = [0]

    @app.task
    async def noop() -> None:
        done[0] += 1

    def told() -> None:
        while True:
            print(json.dumps([time.time(), done[0]]), flush=True)
            time.sleep(0.1)

    import threading

    threading.Thread(target=told, daemon=True).start()
    run(app, lanes={"general": 100})


class Rates:
    """How many jobs were done at which moment."""

    def __init__(self, url: str) -> None:
        self.readings: list[tuple[float, int]] = []
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", url], stdout=subprocess.PIPE, text=True
        )
        asyncio.get_running_loop().run_in_executor(None, self._read)

    def _read(self) -> None:
        for line in self.process.stdout or ():
            at, done = json.loads(line)
            self.readings.append((at, done))

    def between(self, first: float, last: float) -> float:
        """Jobs a second."""
        inside = [(at, done) for at, done in self.readings if first <= at <= last]
        (began, before), (ended, after) = inside[0], inside[-1]
        return (after - before) / (ended - began)

    @property
    def done(self) -> int:
        return self.readings[-1][1] if self.readings else 0

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


async def fill(url: str, rows: int) -> None:
    import psycopg

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(f"SELECT rota.open_days(now() - interval '{OLD}')")
        for first in range(1, rows + 1, 100_000):
            last = min(first + 99_999, rows)
            await connection.execute(FINISHED, {"first": first, "last": last})
        await connection.execute("VACUUM ANALYZE rota.finished_jobs")
        await connection.execute("CHECKPOINT")


async def measure(url: str, rows: int, backlog: int, window: float) -> dict[str, float]:
    from rota import Rota
    from rota._core.retention import EVERYTHING
    from rota.stores.postgres import PostgresStore
    from rota.stores.retention_contract import Retention

    app = Rota(url)

    @app.task
    async def noop() -> None: ...

    await app.migrate()
    await fill(url, rows)
    for _ in range(backlog // 50_000):
        await noop.enqueue_many([()] * 50_000)
    await app.store.close()
    rates = Rates(url)
    try:
        while rates.done < 5_000:
            await asyncio.sleep(0.2)
        await asyncio.sleep(3)
        before_began = time.time()
        await asyncio.sleep(window)
        store = PostgresStore(url)
        began = time.time()
        pruned = await store.prune(EVERYTHING, Retention())
        ended = time.time()
        await store.close()
        await asyncio.sleep(window)
        before, after = rates.between(before_began, began), rates.between(ended, time.time())
        if rates.done >= backlog - 1_000:
            raise SystemExit("the backlog was drained before the end: give --backlog more")
        return {
            "rows": pruned.finished,
            "seconds": ended - began,
            "before": before,
            "with": rates.between(began, ended),
            "after": after,
        }
    finally:
        rates.stop()


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=1_000_000, help="finished jobs to purge")
    p.add_argument("--backlog", type=int, default=4_500_000, help="jobs for the worker")
    p.add_argument("--window", type=float, default=15.0, help="seconds measured before and after the purge")
    p.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.worker:
        work(options.worker)
        return
    from servers import Postgres

    directory = Path(tempfile.mkdtemp(prefix="rota-purge-", dir=os.environ.get("TMPDIR", "/tmp")))
    directory.chmod(0o755)
    server = Postgres(None, directory)
    try:
        found = asyncio.run(measure(server.fresh(), options.rows, options.backlog, options.window))
    finally:
        server.stop()
        import shutil

        shutil.rmtree(directory, ignore_errors=True)
    ratio = found["with"] / ((found["before"] + found["after"]) / 2)
    print(
        f"purged {found['rows']:,} jobs in {found['seconds']:.0f} s ({found['rows'] / found['seconds']:,.0f}/s)"
    )
    print(
        f"worker: {found['before']:,.0f}/s before, {found['with']:,.0f}/s with it, {found['after']:,.0f}/s after"
    )
    print(f"ratio {ratio:.2f} (goal: 0.8 or more): {'reached' if ratio >= 0.8 else 'MISSED'}")


if __name__ == "__main__":
    main()
