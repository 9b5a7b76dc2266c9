"""G7: the caller's connection is cut around the commit of its enqueue; the caller repeats the call until it returns.

A worker runs meanwhile, so a job whose answer was lost may have ended when its caller repeats the call. At defaults
the call is the plain one; tuned, it carries the key that the API offers against duplicates.
"""

from __future__ import annotations

from reliability.figure import Figure
from reliability.wire import relay_before

EDGES = ["before", "after"]


def measure(system, sizes):
    system.fleet(1, sizes["slots"])
    probe = system.jobs(1, first=10_000_000)
    system.enqueue(probe)
    system.must(lambda: system.started([probe[0]["n"]]), 60, "no job started")
    jobs = system.jobs(sizes["enqueues"])
    relay = relay_before(system)
    try:
        relay.rule = _rule(system, sizes)
        limit = sizes["limit_s"]
        told = system.drive("hammer", int(system.profile == "tuned"), jobs=jobs, url=relay.url, limit=limit)
    finally:
        relay.stop()
    system.drain(sizes["drain_s"])
    acked, starts = set(told["acked"]), system.effects.started()
    del starts[probe[0]["n"]]
    return {
        "duplicates": sum(count - 1 for count in starts.values() if count > 1),
        "lost_acked": len(acked - set(starts)),
        "given_up": len(jobs) - len(acked),
        "cuts": len(relay.cuts),
        "errors_seen": told["errors"],
        "enqueues": len(jobs),
    }


def _rule(system, sizes):
    if system.on_redis:

        def rule():
            return system.chance.choice(EDGES) if system.chance.random() < sizes["share"] else None

        return rule
    from chaos.proxy import Cut

    def judge(commit):
        asked = commit.sql.lower()
        if not any(word in asked for word in ("insert into", "enqueue", "defer_job", "copy ")):
            return None
        if system.facts["INSERTS"] not in asked or system.chance.random() >= sizes["share"]:
            return None
        return Cut(system.chance.choice(["before", "during", "after"]))

    return judge


def shown(f):
    more = f", {f['given_up']} given up" if f["given_up"] else ""
    return f"{f['duplicates']} / {f['lost_acked']}{more} ({f['cuts']} cuts)"


FIGURES = [
    Figure(
        "G7",
        "connection cut around the COMMIT of an enqueue, call repeated (tuned: with the API's key): duplicates / lost acknowledged",
        "0 / 0",
        {"enqueues": 400, "share": 0.25, "slots": 4, "limit_s": 150, "drain_s": 40},
        {"enqueues": 10_000, "limit_s": 3600, "drain_s": 400},
        {"enqueues": 60, "limit_s": 60},
        measure,
        lambda _, f: not (f["duplicates"] or f["lost_acked"] or f["given_up"]) and f["cuts"] > 0,
        shown,
    )
]
