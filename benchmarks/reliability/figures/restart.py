"""G3: a worker is killed; how long until its jobs start elsewhere."""

from __future__ import annotations

import time

from reliability.figure import Figure, seconds


def measure(system, sizes):
    took, left, slots = [], 0, sizes["slots"]
    begin = time.monotonic()
    for round_ in range(sizes["rounds"]):
        if took and time.monotonic() - begin > sizes["budget_s"]:
            break
        if round_:
            system.renew()  # or the next worker would take over what the last one left
        first = 1 + round_ * (slots + 1)
        victim = system.fleet(1, slots)
        jobs = system.jobs(slots, s=3600, first=first)
        system.enqueue(jobs)
        numbers = [job["n"] for job in jobs]
        system.must(lambda: system.started(numbers), 60, "its jobs did not start")
        other = system.fleet(1, slots + 1)
        probe = system.jobs(1, first=first + slots)
        system.enqueue(probe)
        system.must(lambda: system.started([probe[0]["n"]]), 60, "the other worker did not start")
        killed = time.monotonic()
        victim.end()

        def again():
            return {n: run.start for run in system.effects.runs() if run.start > killed for n in [run.n]}

        system.wait_for(lambda: set(numbers) <= set(again()), sizes["limit_s"])
        starts = again()
        took += [starts[n] - killed for n in numbers if n in starts]
        left += sum(n not in starts for n in numbers)
        other.end()
        if left:
            break
    return {
        "max_s": round(max(took), 1) if took else None,
        "median_s": round(sorted(took)[len(took) // 2], 1) if took else None,
        "restarted": len(took),
        "never": left,
        "limit_s": sizes["limit_s"],
    }


def shown(f):
    if f["never"]:
        return f"{f['never']} of {f['never'] + f['restarted']} not within {f['limit_s']:g} s"
    return f"{seconds(f['max_s'], f['limit_s'])} ({f['restarted']} jobs)"


FIGURES = [
    Figure(
        "G3",
        "kill -9: longest time until a job of the killed worker starts elsewhere",
        "<= 20 s; tuned <= 4 s",
        {"rounds": 3, "slots": 5, "limit_s": 120, "budget_s": 40},
        {"rounds": 20, "limit_s": 400, "budget_s": 1800},
        {"rounds": 1, "limit_s": 40},
        measure,
        lambda profile, f: not f["never"] and f["max_s"] <= (4 if profile == "tuned" else 20),
        shown,
    )
]
