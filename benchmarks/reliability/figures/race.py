"""G15: a hundred callers enqueue with one unique key at the same moment."""

from __future__ import annotations

import time
from collections import Counter

from reliability.figure import Figure

PROCESSES = 4


def measure(system, sizes):
    jobs = system.jobs(sizes["rounds"])
    begin = time.monotonic() + 8
    each = sizes["callers"] // PROCESSES
    racers = [
        system.beside("race", each, jobs=jobs, BENCH_BEGIN=str(begin), BENCH_GAP=str(sizes["gap_s"]))
        for _ in range(PROCESSES)
    ]
    told = [system.answer(racer, 120 + sizes["rounds"] * sizes["gap_s"]) for racer in racers]
    held = Counter(row.n for row in system.rows()) if not system.on_redis else _redis(system)
    return {
        "duplicates": sum(count - 1 for count in held.values()),
        "missing": sizes["rounds"] - len(held),
        "callers_failed": sum(answer["failed"] for answer in told),
        "rounds": sizes["rounds"],
    }


def _redis(system) -> Counter:
    return Counter(system.server.client.zrange("arq:queue", 0, -1))


def shown(f):
    more = f", {f['missing']} keys without a job" if f["missing"] else ""
    errors = f", {f['callers_failed']} callers got an error" if f["callers_failed"] else ""
    return f"{f['duplicates']}{more}{errors}"


FIGURES = [
    Figure(
        "G15",
        "100 callers at once with one unique key: duplicates",
        "0",
        {"rounds": 60, "callers": 100, "gap_s": 0.5},
        {"rounds": 1000},
        {"rounds": 5},
        measure,
        lambda _, f: not (f["duplicates"] or f["missing"] or f["callers_failed"]),
        shown,
        profiles=("defaults",),
    )
]
