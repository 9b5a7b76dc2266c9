"""What Rota has promised to reach, each as a ratio within one run, and whether it did."""

from __future__ import annotations

import statistics

FLAT = 1.10  # a process that is this much larger after its last drain than after its first is called growing


def goals(results: dict) -> list[dict]:
    """One row per goal: measure, goal, aim, value, shown, met ("yes", "no" or why it is not known)."""
    runs = results["runs"]

    def value(peer: str, measure: str, key: str = "rate") -> float | None:
        found = [r[key] for r in runs.get(peer, {}).get(measure, []) if key in r and "failed" not in r]
        return statistics.median(found) if found else None

    def ratio(a: float | None, b: float | None) -> float | None:
        return a / b if a is not None and b else None

    peers = results["peers"]
    on_redis = [p for p in runs if peers.get(p, {}).get("backend") == "redis"]
    on_postgres = [
        p
        for p in runs
        if peers.get(p, {}).get("backend") == "postgres" and p not in ("rota", "before", "raw", "raw400")
    ]
    rows: list[dict] = []

    def add(
        measure: str,
        found: float | None,
        *,
        least: float | None = None,
        most: float | None = None,
        aim: float | None = None,
        unit: str = "",
        note: str = "",
    ) -> None:
        sign, bound = (">=", least) if least is not None else ("<=", most)
        met = "not measured"
        if found is not None:
            met = "yes" if (found >= bound if sign == ">=" else found <= bound) else "NO"
        digits = 1 if found is not None and found >= 10 else 2
        rows.append(
            {
                "measure": measure,
                "goal": f"{sign} {bound:g}{unit}",
                "aim": f"{sign} {aim:g}{unit}" if aim else None,
                "value": found,
                "shown": (f"{found:,.{digits}f}{unit}" if found is not None else "-")
                + (note if found is not None else ""),
                "met": met,
            }
        )

    for name, slots in (("drain100", "100 slots"), ("drain8", "8 slots")):
        mine = value("rota", name)
        add(f"drain, {slots}, / pgqueuer", ratio(mine, value("pgqueuer", name)), least=2.5, aim=4, unit="x")
        add(
            f"drain, {slots}, / raw with the same slots",
            ratio(mine, value("raw", name)),
            least=0.4,
            aim=0.6,
            unit="x",
        )
        if name == "drain100":
            add(
                "drain, 100 slots, 20,000 jobs only, / pgqueuer",
                ratio(value("rota", "small"), value("pgqueuer", "small")),
                least=2.5,
                aim=4,
                unit="x",
            )
            add(
                "drain, 100 slots, / raw with 400 in flight",
                ratio(mine, value("raw400", name)),
                least=0.4,
                aim=0.6,
                unit="x",
            )
        best, who = fastest({p: value(p, name) for p in on_redis})
        add(f"drain, {slots}, / fastest Redis-backed peer", ratio(mine, best), least=10, unit="x", note=who)
    add(
        "bulk enqueue / pgqueuer",
        ratio(value("rota", "bulk"), value("pgqueuer", "bulk")),
        least=2,
        aim=3,
        unit="x",
    )
    add(
        "single enqueue, one by one, / raw",
        ratio(value("rota", "one"), value("raw", "one")),
        least=0.8,
        unit="x",
    )
    add(
        "100 concurrent callers / one by one",
        ratio(value("rota", "concurrent"), value("rota", "one")),
        least=10,
        unit="x",
    )
    for key, bound in (("p50", 1.5), ("p99", 2)):
        mine = value("rota", "latency", key)
        add(f"pick-up {key} / raw", ratio(mine, value("raw", "latency", key)), most=bound, unit="x")
        best, who = fastest({p: value(p, "latency", key) for p in on_postgres}, lowest=True)
        add(f"pick-up {key} / best PostgreSQL-backed peer", ratio(mine, best), most=1, unit="x", note=who)
    f0 = value("rota", "f0")
    add("drain under a held snapshot, f3/f0", ratio(value("rota", "f3"), f0), least=0.8)
    add(
        "drain beside finished and scheduled rows, f2/f0", ratio(value("rota", "f2"), f0), least=0.75, aim=0.9
    )
    own = ratio(value("raw", "procs2"), value("raw", "drain100"))
    add(
        "2 processes / 1, as a share of raw's own ratio",
        ratio(ratio(value("rota", "procs2"), value("rota", "drain100")), own),
        least=0.75,
    )
    add("idle worker, CPU", value("rota", "idle", "worker_cpu"), most=0.5, unit=" %")
    add("idle worker, queries", value("rota", "idle", "queries"), most=1, unit="/s")
    add(
        "RSS of a draining process / pgqueuer",
        ratio(value("rota", "drain100", "rss"), value("pgqueuer", "drain100", "rss")),
        most=1.25,
        unit="x",
    )
    add(
        "memory flat: RSS after the last drain / after the first",
        value("rota", "memory", "growth"),
        most=FLAT,
    )
    return rows


def fastest(found: dict[str, float | None], *, lowest: bool = False) -> tuple[float | None, str]:
    known = {p: v for p, v in found.items() if v}
    if not known:
        return None, ""
    best = (min if lowest else max)(known, key=known.get)
    return known[best], f" ({best})"
