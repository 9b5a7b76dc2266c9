"""G1 and G2: workers killed at random instants. What is lost, what stays, what runs again without need."""

from __future__ import annotations

import time

from reliability.figure import Figure
from reliability.records import besides, outcome, unclean, unexplained


def measure(system, sizes):
    system.enqueue(system.jobs(sizes["jobs"], s=sizes["job_s"]))
    fleet = system.fleet(sizes["workers"], sizes["slots"])
    system.must(lambda: system.effects.started(), 30, "no job started")
    end = time.monotonic() + sizes["hurt_s"]
    while time.monotonic() < end and not system.started(system.numbers):
        time.sleep(1 / sizes["kills_a_second"])
        if living := fleet.living():
            fleet.kill(system.chance.choice(living))
    hurt = sizes["hurt_s"] - max(0.0, end - time.monotonic())
    took = system.drain(sizes["drain_s"])
    runs = system.effects.runs()
    return outcome(system.numbers, system.effects, system.rows()) | {
        "unexplained_starts": unexplained(runs, fleet.kills),
        "extra_starts": len(runs) - len({run.n for run in runs}),
        "kills": len({kill.at for kill in fleet.kills}),
        "worker_exits": len(fleet.exits),
        "hurt_s": round(hurt, 1),
        "drain_s": round(took, 1),
    }


SIZES = {
    "jobs": 2000,
    "job_s": 0.05,
    "workers": 4,
    "slots": 2,
    "kills_a_second": 1,
    "hurt_s": 30,
    "drain_s": 60,
}
FULL = {"jobs": 10_000, "hurt_s": 300, "drain_s": 400}
QUICK = {"jobs": 300, "hurt_s": 5, "drain_s": 40}


def lost(f):
    return f"{f['lost']} / {f['stuck']}{besides(f, 'waiting', 'failed')} ({f['kills']} kills)"


FIGURES = [
    Figure(
        "G1",
        "kill -9 of one of 4 workers each second: jobs lost / begun and stuck at the end",
        "0 / 0",
        SIZES,
        FULL,
        QUICK,
        measure,
        lambda _, f: not unclean(f),
        lost,
    ),
    Figure(
        "G2",
        "in the same run: second starts that no kill explains (all second starts)",
        "0",
        SIZES,
        FULL,
        QUICK,
        measure,
        lambda _, f: f["unexplained_starts"] == 0,
        lambda f: f"{f['unexplained_starts']} ({f['extra_starts']})",
    ),
]
