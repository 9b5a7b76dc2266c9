"""G13: somebody holds a transaction open while jobs come and go, so that no dead row can be cleaned away."""

from __future__ import annotations

import psycopg

from reliability.figure import Figure
from reliability.records import percentile
from reliability.system import Failed


def measure(system, sizes):
    system.fleet(1, sizes["slots"])
    warm = system.jobs(1, first=99_000)
    system.enqueue(warm)
    system.must(lambda: system.started([99_000]), 60, "no job started")
    clean = _p95(system, sizes, first=1)
    with psycopg.connect(system.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select txid_current()")
        churn = system.jobs(sizes["churn"], first=100_000)
        system.enqueue(churn)
        numbers = {job["n"] for job in churn}
        system.wait_for(lambda: numbers <= system.effects.ended(), sizes["limit_s"], every=0.5)
        done = len(numbers & system.effects.ended())
        if done < sizes["churn"]:
            raise Failed(f"only {done:,} of {sizes['churn']:,} jobs were done within {sizes['limit_s']} s")
        held = _p95(system, sizes, first=10_001)
    return {"clean_p95_ms": round(clean * 1000, 1), "held_p95_ms": round(held * 1000, 1), "churned": done}


def _p95(system, sizes, first):
    jobs = system.jobs(sizes["probes"], first=first)
    system.drive("pace", sizes["every_ms"], jobs=jobs)
    numbers = [job["n"] for job in jobs]
    system.must(lambda: system.started(numbers), 60, "the probes did not start")
    late = system.effects.latencies()
    return percentile(
        [late[n] for n in numbers[sizes["probes"] // 5 :]], 0.95
    )  # the first wait for the worker


FIGURES = [
    Figure(
        "G13",
        "a transaction held open while jobs come and go: p95 from call to start, before -> after",
        "<= 3x",
        {"churn": 10_000, "probes": 100, "every_ms": 50, "slots": 20, "limit_s": 120},
        {"churn": 90_000, "probes": 1000, "limit_s": 3600},
        {"churn": 1000, "probes": 30},
        measure,
        lambda _, f: f["held_p95_ms"] <= 3 * f["clean_p95_ms"],
        lambda f: f"{f['clean_p95_ms']:g} -> {f['held_p95_ms']:g} ms",
        profiles=("defaults",),
        cannot={"arq": "no PostgreSQL in it"},
    )
]
