"""G4: workers are asked to stop (SIGTERM) in the middle of short jobs, as at every deploy."""

from __future__ import annotations

import time

from reliability.figure import Figure
from reliability.records import besides, outcome, unclean


def measure(system, sizes):
    slots = sizes["slots"]
    system.enqueue(system.jobs(sizes["rounds"] * slots * 4, s=sizes["job_s"]))
    fleet = system.fleet(1, slots)
    stops, killed = [], 0
    for _ in range(sizes["rounds"]):
        worker = fleet.living()[0]
        before = len(system.effects.runs())

        def busy():
            runs = system.effects.runs()
            return len(runs) >= before + slots and sum(run.end is None for run in runs) >= 1

        if not system.wait_for(busy, 30):
            break
        time.sleep(system.chance.uniform(0, sizes["job_s"]))
        took, code = fleet.terminate(worker, sizes["patience_s"])
        stops.append(took)
        killed += code is None
        system.wait_for(lambda: fleet.living() and fleet.living()[0].pid != worker.pid, 10)
    system.drain(sizes["drain_s"])
    runs, rows = system.effects.runs(), system.rows()
    known = [row.attempts for row in rows if row.attempts is not None and row.state == "done"]
    return outcome(system.numbers, system.effects, rows) | {
        "rerun": len(runs) - len({run.n for run in runs}),
        "interrupted": sum(run.how in (None, "cancelled") for run in runs),
        "burned": sum(attempts > 1 for attempts in known) if known else None,
        "stops": len(stops),
        "longest_stop_s": round(max(stops, default=0), 1),
        "had_to_be_killed": killed,
    }


def shown(f):
    burned = "not counted" if f["burned"] is None else f["burned"]
    hard = f", {f['had_to_be_killed']} of {f['stops']} ignored it" if f["had_to_be_killed"] else ""
    return f"{f['rerun']} / {burned}{besides(f, 'lost', 'stuck', 'waiting', 'failed')}{hard}"


FIGURES = [
    Figure(
        "G4",
        "SIGTERM in the middle of 1 s jobs: jobs run again / attempts burned",
        "0 / 0",
        {"rounds": 5, "slots": 5, "job_s": 1.0, "patience_s": 30, "drain_s": 60},
        {"rounds": 30, "drain_s": 400},
        {"rounds": 2, "drain_s": 40},
        measure,
        lambda _, f: not (f["rerun"] or f["burned"] or unclean(f)),
        shown,
    )
]
