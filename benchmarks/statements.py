"""Measures the claim and settle statements themselves, on the real schema, without the worker around them.

    python benchmarks/statements.py [--postgres /usr/lib/postgresql/15/bin] [--repeat 2] [--only backlog]

Two connections of one process exchange batches: each round completes the last
batch and claims the next. Beside the rate stand figures that other programs on
the machine disturb less: the server's CPU time and the bytes of WAL per job.
docs/decisions/0002-claim-and-settle.md keeps what was found.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import psycopg
import uuid_utils.compat as uuids
from backlog import finished_rows, scheduled_rows
from servers import Servers

from rota._core.job import NewJob
from rota._core.outcome import Returned, decide
from rota._core.retry import Retry
from rota.stores.contract import Answer, SessionStart, Wanted
from rota.stores.postgres import PostgresStore

JOBS = 40_000
POLICY = Retry()


class Bench:
    """One database with the real schema, and the figures of one drain."""

    def __init__(self, servers, batch):
        self.server, self.batch = servers.of("postgres"), batch

    async def open(self):
        self.url = self.server.fresh()
        self.store = PostgresStore(self.url)
        await self.store.migrate()
        self.session = uuids.uuid7()
        await self.store.open_session(
            SessionStart(self.session, "bench", 1, {"general": 100}, ("noop",)), lease=3600
        )

    async def close(self):
        await self.store.close()

    def sql(self, *statements):
        with psycopg.connect(self.url, autocommit=True) as connection:
            for text in statements:
                connection.execute(text)

    def wal(self):
        with psycopg.connect(self.url, autocommit=True) as connection:
            return float(connection.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone()[0])

    async def fill(self, count=JOBS, **options):
        for start in range(0, count, 10_000):
            await self.store.enqueue([a_job(**options) for _ in range(min(10_000, count - start))])

    async def drain(self, count=JOBS, *, stale=0.0, meanwhile=None):
        """Drain `count` jobs; a share `stale` of the settles carries an older version and must be fenced."""
        got, fenced, expected = 0, 0, 0
        now = await self.store.now()

        async def lane():
            nonlocal got, fenced, expected
            settles = []
            while got < count or settles:
                settled, jobs = await self.store.exchange(
                    settles, Wanted(self.batch if got < count else 0), session=self.session
                )
                fenced += sum(answer.answer is Answer.FENCED for answer in settled)
                got += len(jobs)
                settles = [decide(job, Returned(), retry=POLICY, now=now) for job in jobs]
                if stale:
                    wrong = [
                        t._replace(job=t.job._replace(version=t.job.version - 1))
                        for t in settles[: int(len(jobs) * stale)]
                    ]
                    expected += len(wrong)
                    settles = wrong + settles if jobs else settles
                if not jobs and not settles:
                    await asyncio.sleep(0.001)

        wal, cpu, began = self.wal(), self.server.cpu(), time.perf_counter()
        other = asyncio.create_task(meanwhile()) if meanwhile else None
        await asyncio.gather(lane(), lane())
        seconds = time.perf_counter() - began
        figures = {
            "rate": count / seconds,
            "server_us": (self.server.cpu() - cpu) / count * 1e6,
            "wal": (self.wal() - wal) / count,
        }
        if other:
            figures |= await other
        if stale:
            assert fenced == expected, (fenced, expected)
            figures["fenced"] = fenced
        return figures


def a_job(**options):
    return NewJob(uuids.uuid7(), "noop", '{"t0": 0.0}', **options)


async def plain(bench):
    await bench.fill()
    return await bench.drain()


async def held_snapshot(bench):
    """200,000 jobs came and went under one old snapshot; then the drain."""
    with psycopg.connect(bench.url) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select count(*) from pg_class")
        await bench.fill(200_000)
        await bench.drain(200_000)
        bench.sql("vacuum analyze rota.jobs")
        await bench.fill()
        return await bench.drain()


def beside(finished, scheduled, *prepare):
    async def case(bench):
        if finished:
            bench.sql(finished_rows(finished))
        if scheduled:
            bench.sql(scheduled_rows(scheduled))
        bench.sql("vacuum analyze", "checkpoint", *prepare)
        await bench.fill()
        return await bench.drain()

    return case


async def many_pairs(bench):
    """20 busy (queue, priority) pairs; urgent jobs arrive while they drain: how long until each is claimed."""
    for queue in range(5):
        for priority in (50, 100, 150, 200):
            await bench.fill(JOBS // 20, queue=f"q{queue}", priority=priority)
    waits = []

    async def urgent():
        producer = PostgresStore(bench.url)
        for _ in range(20):
            job = a_job(queue="q3", priority=0)
            await producer.enqueue([job])
            await asyncio.sleep(0.05)
            found = await producer.get([job.id])
            if found and found[0].claimed_at:
                waits.append((found[0].claimed_at - found[0].created_at) / timedelta(milliseconds=1))
        await producer.close()
        return {"urgent_ms": statistics.median(waits) if waits else float("nan"), "urgent_seen": len(waits)}

    listening = asyncio.create_task(bench.store.listen(lambda hint: None))
    try:
        return await bench.drain(meanwhile=urgent)
    finally:
        listening.cancel()


async def fenced_rows(bench):
    """Every tenth settle comes from a claim that is no longer valid."""
    await bench.fill()
    return await bench.drain(stale=0.1)


CASES = {
    "plain": plain,
    "held snapshot after 200k": held_snapshot,
    "1 M finished": beside(1_000_000, 0),
    "1 M scheduled": beside(0, 1_000_000),
    "1 M scheduled, no autovacuum": beside(
        0, 1_000_000, "alter table rota.jobs set (autovacuum_enabled = off)"
    ),
    "1 M finished + 1 M scheduled": beside(1_000_000, 1_000_000),
    "20 pairs, urgent jobs": many_pairs,
    "a tenth fenced": fenced_rows,
}


async def measure(servers, options):
    results = {}
    for batch in options.batch:
        for turn in range(options.repeat):
            for name, case in CASES.items():
                if options.only and options.only not in name:
                    continue
                bench = Bench(servers, batch)
                await bench.open()
                try:
                    figures = await case(bench)
                finally:
                    await bench.close()
                results.setdefault(f"{name}, b={batch}", []).append(figures)
                print(
                    f"{name:32s} b={batch:<4d}",
                    {key: round(value, 1) for key, value in figures.items()},
                    flush=True,
                )
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--postgres", help="directory of another server's programs")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--batch", type=int, nargs="+", default=[50])
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    options = parser.parse_args()
    servers = Servers(options.postgres)
    try:
        results = asyncio.run(measure(servers, options))
    finally:
        servers.stop()
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
