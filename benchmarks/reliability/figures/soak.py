"""G19: a worker runs for long, one job in five fails. Does it grow, and does it leave anybody behind?"""

from __future__ import annotations

import statistics
import time

import psutil

from reliability.figure import Figure


def measure(system, sizes):
    fleet = system.fleet(1, sizes["slots"])
    jobs = system.jobs(int(sizes["run_s"] * 1000 / sizes["every_ms"]), s=0.01)
    for job in jobs[::5]:
        job["how"] = "fail"
    producer = system.beside("pace", sizes["every_ms"], jobs=jobs)
    system.must(lambda: system.effects.started(), 60, "no job started")
    samples, seen, begin = [], set(), time.monotonic()
    while (now := time.monotonic() - begin) < sizes["run_s"]:
        samples.append((now, fleet.rss()))
        seen |= fleet.families()
        time.sleep(1)
    quarter = sizes["run_s"] / 4
    early = statistics.median([rss for at, rss in samples if quarter <= at < 2 * quarter])
    late = statistics.median([rss for at, rss in samples if at >= 3 * quarter])
    exits = len(fleet.exits)
    producer.kill()
    producer.wait()
    for process in fleet.living():  # only the worker itself: what it has begun must notice
        process.kill()
    time.sleep(3)
    fresh = fleet.families()
    orphans = [pid for pid in seen - fresh if psutil.pid_exists(pid) and _alive(pid)]
    return {
        "growth_percent": round(100 * (late / early - 1), 1),
        "early_mb": round(early, 1),
        "late_mb": round(late, 1),
        "orphans": len(orphans),
        "jobs_run": len(system.effects.runs()),
        "worker_exits": exits,
    }


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def shown(f):
    exits = f", {f['worker_exits']} worker exits" if f["worker_exits"] else ""
    return f"{f['growth_percent']:+g} % of {f['early_mb']:g} MB; {f['orphans']} orphans{exits} ({f['jobs_run']:,} runs)"


FIGURES = [
    Figure(
        "G19",
        "soak in which one job in five fails: growth of memory from the second quarter to the last; orphans after a kill",
        "< 5 %; 0",
        {"run_s": 90, "slots": 20, "every_ms": 10},
        {"run_s": 3600},
        {"run_s": 20},
        measure,
        lambda _, f: f["growth_percent"] < 5 and f["orphans"] == 0,
        shown,
        profiles=("defaults",),
    )
]
