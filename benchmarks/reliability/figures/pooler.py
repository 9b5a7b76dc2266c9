"""G11: PgBouncer in transaction mode between everything and the server."""

from __future__ import annotations

from reliability.figure import Figure
from reliability.records import percentile
from reliability.stores import Pooler


def measure(system, sizes):
    pooler = Pooler(system.server)
    try:
        system.direct_url = system.url
        through = pooler.before(system.url)
        system.worker_url = through
        fleet = system.fleet(1, sizes["slots"])
        warm = system.jobs(1, first=10_000)
        system.enqueue(warm)
        system.wait_for(lambda: system.started([10_000]), 20)
        jobs = system.jobs(sizes["jobs"])
        told = system.beside("pace", sizes["every_ms"], jobs=jobs, url=through)
        error = None
        try:
            system.answer(told, sizes["jobs"] * sizes["every_ms"] / 1000 + 30)
        except Exception as found:
            error = f"{found}"
        numbers = {job["n"] for job in jobs}
        system.wait_for(lambda: numbers <= system.effects.ended(), sizes["limit_s"])
        late = list(system.effects.latencies().values())
    finally:
        pooler.stop()
    return {
        "done": len(system.effects.ended() & numbers),
        "jobs": len(jobs),
        "p95_s": round(percentile(late, 0.95), 2) if late else None,
        "worker_exits": len(fleet.exits),
        "caller_error": error,
        "pooler": pooler.version,
    }


def shown(f):
    late = f"; p95 {f['p95_s']:g} s" if f["p95_s"] is not None else ""
    exits = f"; {f['worker_exits']} worker exits" if f["worker_exits"] else ""
    error = "; callers got errors" if f["caller_error"] else ""
    return f"{f['done']} of {f['jobs']} done{late}{exits}{error}"


FIGURES = [
    Figure(
        "G11",
        "PgBouncer in transaction mode: jobs done; p95 from call to start",
        "all; <= 1.2 s",
        {"jobs": 40, "every_ms": 500, "slots": 4, "limit_s": 20},
        {"jobs": 1000},
        {"jobs": 10},
        measure,
        lambda _, f: (
            f["done"] == f["jobs"] and not f["worker_exits"] and f["p95_s"] is not None and f["p95_s"] <= 1.2
        ),
        shown,
        cannot={"arq": "no PostgreSQL in it"},
    )
]
