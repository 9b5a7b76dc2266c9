"""G5: a worker is frozen past its lease; its jobs start elsewhere; it wakes and writes what it believes."""

from __future__ import annotations

import time

from reliability.figure import Figure

WATCH = 4.5  # seconds that the true attempt goes on, in which the row must say "running"


def measure(system, sizes):
    begin, zombies, changed, woken, refused_runs = time.monotonic(), 0, 0, 0, 0
    slots, first = sizes["slots"], 1
    while zombies < sizes["zombies"] and time.monotonic() - begin < sizes["budget_s"]:
        jobs = system.jobs(slots, s=2.0, how=f"later={WATCH:g}", first=first)
        numbers = {job["n"] for job in jobs}
        first += slots
        frozen = system.fleet(1, slots)
        system.enqueue(jobs)
        system.must(lambda: system.started(numbers), 60, "its jobs did not start")
        pids = frozen.freeze(frozen.living()[0])
        asleep = {run.n for run in system.effects.runs() if run.n in numbers and run.end is None}
        other = system.fleet(1, slots)

        def second():
            return {run.n: run for run in system.effects.runs() if run.n in asleep and run.pid not in pids}

        system.wait_for(lambda: asleep <= set(second()), sizes["lease_s"])
        zombies += len(second())
        if asleep and not second():
            break  # nobody takes over here
        # The others have only just begun, and their rows must stay theirs until they end.
        system.must(
            lambda: all(_running(system, n) for n in second()), 5, "the second attempt was not recorded"
        )
        frozen.wake(pids)
        bad: set[int] = set()
        latest = max((run.start for run in second().values()), default=0) + WATCH - 0.5
        while time.monotonic() < latest:
            now = second()
            bad |= {n for n in now if now[n].end is None and not _running(system, n)}
            time.sleep(0.1)
        runs = system.effects.runs()
        woken += sum(run.n in asleep and run.pid in pids and run.how == "end" for run in runs)
        refused_runs += sum(run.n in asleep and run.pid in pids and run.how == "cancelled" for run in runs)
        changed += len(bad)
        frozen.end()
        other.end()
        system.renew()  # or the next worker would take over what this one left
    return {
        "zombies": zombies,
        "changed": changed,
        "ran_to_the_end": woken,
        "stopped_at_waking": refused_runs,
    }


def _running(system, n) -> bool:
    return any(row.n == n and row.state == "running" for row in system.rows())


def shown(f):
    return f"{f['changed']} of {f['zombies']}" if f["zombies"] else "no job started elsewhere"


FIGURES = [
    Figure(
        "G5",
        "frozen past the lease, then woken: late writes that changed a row",
        "0",
        {"zombies": 40, "slots": 10, "lease_s": 40, "budget_s": 75},
        {"zombies": 1000, "budget_s": 3600},
        {"zombies": 10, "budget_s": 30},
        measure,
        lambda _, f: f["zombies"] > 0 and f["changed"] == 0,
        shown,
        profiles=("tuned",),
    )
]
