"""G8: one job kills its process whenever it runs. Whom it takes along, and whether it ever ends."""

from __future__ import annotations

import time

from reliability.figure import Figure
from reliability.records import outcome


def measure(system, sizes):
    innocents = system.jobs(sizes["innocents"])
    for job in innocents:  # of unequal length, so that slots are not all free at the same instant
        job["s"] = sizes["job_s"] * system.chance.uniform(0.5, 1.5)
    (guilty,) = system.jobs(1, s=0.3, how="poison", first=sizes["innocents"] + 1)
    poison = guilty["n"]
    system.enqueue([*innocents[:20], guilty, *innocents[20:]])
    fleet = system.fleet(sizes["workers"], sizes["slots"])
    begin, ended = time.monotonic(), None
    while time.monotonic() - begin < sizes["watch_s"]:
        rows = {row.n: row.state for row in system.rows()}
        if ended is None and rows.get(poison) == "failed":
            ended = time.monotonic()
        if ended and not any(state in ("waiting", "running") for state in rows.values()):
            break
        time.sleep(0.5)
    runs = system.effects.runs()
    deaths = [run for run in runs if run.n == poison]
    first = min((run.start for run in deaths), default=begin)
    shared = sum(any(o.n != poison and o.pid == d.pid and o.end is None for o in runs) for d in deaths)
    other = [run for run in runs if run.n != poison]
    numbers = system.numbers - {poison}
    state = {row.n: row.state for row in system.rows()}
    return outcome(numbers, system.effects, system.rows()) | {
        "deaths": len(deaths),
        "deaths_with_neighbours": shared,
        "innocent_reruns": len(other) - len({run.n for run in other}),
        "quarantined": state.get(poison) == "failed",
        "quarantined_after_s": round(ended - first, 1) if ended else None,
        "innocents_done": len(system.effects.ended() & numbers),
        "innocents": len(numbers),
        "worker_exits": len(fleet.exits),
        "watched_s": round(time.monotonic() - begin),
    }


def shown(f):
    end = (
        f"dead after {f['quarantined_after_s']:g} s" if f["quarantined"] else f"no end in {f['watched_s']} s"
    )
    done = (
        ""
        if f["innocents_done"] == f["innocents"]
        else f"; {f['innocents_done']} of {f['innocents']} others done"
    )
    return f"{f['deaths_with_neighbours']} of {f['deaths']} / {f['innocent_reruns']}; {end}{done}"


FIGURES = [
    Figure(
        "G8",
        "a job that kills its process, among many: deaths that took others along of all deaths / innocent jobs run again; its end",
        "<= 1 / <= slots; dead after 3 losses",
        {"innocents": 300, "job_s": 1.0, "workers": 2, "slots": 5, "watch_s": 90},
        {"innocents": 1000, "watch_s": 600},
        {"innocents": 40, "watch_s": 40},
        measure,
        lambda _, f: (
            f["deaths_with_neighbours"] <= 1
            and f["innocent_reruns"] <= 5
            and f["quarantined"]
            and f["innocents_done"] == f["innocents"]
        ),
        shown,
    )
]
