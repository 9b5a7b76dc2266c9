"""G9 and G10: the network swallows everything for a while; one connection, the one that listens, goes silent."""

from __future__ import annotations

import time

from reliability.figure import Figure, seconds
from reliability.records import percentile
from reliability.system import Failed
from reliability.wire import relay_before


def blackhole(system, sizes):
    relay = relay_before(system)
    try:
        system.worker_url = relay.url
        system.enqueue(system.jobs(sizes["jobs"], s=sizes["job_s"]))
        fleet = system.fleet(1, sizes["slots"])
        system.must(lambda: len(system.effects.started()) > sizes["slots"] * 2, 60, "no job started")
        time.sleep(sizes["before_s"])
        usual = _rate(system, time.monotonic() - 2, 2.0)
        relay.blackhole()
        time.sleep(sizes["hole_s"])
        relay.heal()
        healed = time.monotonic()
        back = None
        while time.monotonic() - healed < sizes["limit_s"]:
            now = time.monotonic()
            if now - healed >= 1 and _rate(system, now - 1, 1.0) >= usual / 2:
                back = max(0.0, now - 1 - healed)
                break
            time.sleep(0.2)
    finally:
        relay.stop()
    return {
        "recovered_s": None if back is None else round(back, 1),
        "usual_rate": round(usual, 1),
        "worker_exits": len(fleet.exits),
        "limit_s": sizes["limit_s"],
    }


def _rate(system, since: float, span: float) -> float:
    return (
        sum(what == "start" and since <= at < since + span for what, _, _, at in system.effects.lines())
        / span
    )


def half_open(system, sizes):
    relay = relay_before(system)
    try:
        system.worker_url = relay.url
        fleet = system.fleet(1, sizes["slots"])
        system.drive("pace", 200, jobs=system.jobs(5, first=1))
        system.must(lambda: system.started(range(1, 6)), 60, "no job started")
        time.sleep(sizes["idle_s"])  # the last job before has ended, the next ones come soon
        silenced = relay.silence(system.facts["LISTENS"])
        if not silenced:
            raise Failed("its listening connection was not found")
        jobs = system.jobs(sizes["jobs"], first=101)
        system.drive("pace", sizes["every_ms"], jobs=jobs)
        system.wait_for(lambda: system.started(job["n"] for job in jobs), sizes["limit_s"])
        late = system.effects.latencies()
    finally:
        relay.stop()
    found = [late[job["n"]] for job in jobs if job["n"] in late]
    return {
        "worst_s": round(max(found), 2) if len(found) == len(jobs) else None,
        "median_s": round(percentile(found, 0.5), 3) if found else None,
        "not_started": len(jobs) - len(found),
        "connections_silenced": silenced,
        "worker_exits": len(fleet.exits),
        "limit_s": sizes["limit_s"],
    }


def _exits(f):
    return f" ({f['worker_exits']} worker exits)" if f["worker_exits"] else ""


FIGURES = [
    Figure(
        "G9",
        "the network swallows everything for a while: time after it heals until half of the usual rate is back",
        "<= 10 s",
        {"jobs": 20_000, "job_s": 0.1, "slots": 8, "before_s": 5, "hole_s": 20, "limit_s": 60},
        {"jobs": 100_000, "hole_s": 60, "limit_s": 400},
        {"jobs": 3000, "hole_s": 8, "limit_s": 30},
        blackhole,
        lambda _, f: f["recovered_s"] is not None and f["recovered_s"] <= 10,
        lambda f: seconds(f["recovered_s"], f["limit_s"]) + _exits(f),
    ),
    Figure(
        "G10",
        "the connection that listens goes half-open while a job comes every second: worst time until one starts",
        "<= 1 s",
        {"jobs": 30, "every_ms": 1000, "idle_s": 2, "slots": 4, "limit_s": 45},
        {"jobs": 300, "limit_s": 400},
        {"jobs": 8, "limit_s": 20},
        half_open,
        lambda _, f: f["worst_s"] is not None and f["worst_s"] <= 1.0,
        lambda f: (
            seconds(f["worst_s"], f["limit_s"])
            + (f", {f['not_started']} never started" if f["not_started"] else "")
            + _exits(f)
        ),
        cannot={"arq": "it only polls, there is no listener to lose"},
    ),
]
