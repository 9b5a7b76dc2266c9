"""G6: the database (for arq: Redis, with everything on disk) is stopped at once and comes back, again and again."""

from __future__ import annotations

import time
from collections import Counter

from reliability.figure import Figure
from reliability.records import besides, outcome, unclean


def measure(system, sizes):
    system.enqueue(system.jobs(sizes["jobs"], s=sizes["job_s"]))
    fleet = system.fleet(sizes["workers"], sizes["slots"])
    system.must(lambda: system.effects.started(), 30, "no job started")
    for _ in range(sizes["restarts"]):
        time.sleep(system.chance.uniform(0.8, 1.2) * sizes["every_s"])
        system.server.restart(sizes["down_s"])
    took = system.drain(sizes["drain_s"])
    rows, runs = system.rows(), system.effects.runs()
    done = Counter(row.n for row in rows if row.state == "done")
    return outcome(system.numbers, system.effects, rows) | {
        "worker_exits": len(fleet.exits),
        "double": sum(count > 1 for count in done.values()),
        "extra_starts": len(runs) - len({run.n for run in runs}),
        "restarts": sizes["restarts"],
        "drain_s": round(took, 1),
    }


def shown(f):
    return f"{f['worker_exits']} / {f['lost']} / {f['double']}{besides(f, 'stuck', 'waiting', 'failed')}"


FIGURES = [
    Figure(
        "G6",
        "immediate restarts of PostgreSQL (arq: Redis): worker exits / lost / done twice",
        "0 / 0 / 0",
        {
            "jobs": 1200,
            "job_s": 0.2,
            "workers": 2,
            "slots": 4,
            "restarts": 3,
            "every_s": 8,
            "down_s": 2,
            "drain_s": 60,
        },
        {"jobs": 24_000, "restarts": 30, "every_s": 20, "drain_s": 400},
        {"jobs": 300, "restarts": 1, "every_s": 4, "drain_s": 40},
        measure,
        lambda _, f: not (f["worker_exits"] or f["double"] or unclean(f)),
        shown,
    )
]
