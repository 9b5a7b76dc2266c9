"""Turns the figures of a run into a Markdown table with the goals beside it, and into JSON.

python benchmarks/report.py results/latest.json      writes the table of an earlier run again
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from against import against
from goals import goals

REDIS_NOTE = "Redis keeps nothing on disk here: a Redis peer's job would not survive a power cut, a PostgreSQL peer's would."


def good(runs: list[dict] | None, key: str) -> list[float]:
    return [r[key] for r in runs or [] if key in r and "failed" not in r]


def middle(runs: list[dict] | None, key: str) -> float | None:
    values = good(runs, key)
    return statistics.median(values) if values else None


def number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}"


def cell(runs: list[dict] | None, key: str, digits: int = 0) -> str:
    """Median (lowest-highest); a run that was cut short or failed says so."""
    if runs is None:
        return ""
    values = good(runs, key)
    if not values:
        return "failed"
    text = number(statistics.median(values), digits)
    if len(values) > 1 and number(min(values), digits) != number(max(values), digits):
        text += f" ({number(min(values), digits)}-{number(max(values), digits)})"
    return text + (" cut" if any("stopped_at" in r for r in runs) else "")


def times(a: float | None, b: float | None) -> str:
    if a is None or not b:
        return ""
    return f"{a / b:.2f}" if a / b >= 0.1 else f"{a / b:.3f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown whose columns also line up on a terminal."""
    grid = [head, *rows]
    widths = [max(len(str(r[i])) for r in grid) for i in range(len(head))]
    lines = ["| " + " | ".join(str(c).ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in grid]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def all_peers(runs: dict, broken: list[str]) -> str:
    columns = [
        ("one by one /s", "one", "rate", 0),
        ("100 callers /s", "concurrent", "rate", 0),
        ("bulk /s", "bulk", "rate", 0),
        ("drain, 100 slots /s", "drain100", "rate", 0),
        ("drain, 8 slots /s", "drain8", "rate", 0),
        ("2 processes /s", "procs2", "rate", 0),
        ("pick-up p50 ms", "latency", "p50", 1),
        ("p99 ms", "latency", "p99", 1),
        ("RSS draining MB", "drain100", "rss", 0),
        ("idle CPU %", "idle", "worker_cpu", 1),
        ("idle queries/s", "idle", "queries", 1),
    ]
    rows = [
        [p, *(cell(m.get(name), key, digits) for _, name, key, digits in columns)] for p, m in runs.items()
    ]
    rows += [[p, "failed, see below", *[""] * (len(columns) - 1)] for p in broken]
    return table(["peer", *(c[0] for c in columns)], rows)


def ratios(runs: dict) -> str:
    columns = [
        ("one by one", "one", "rate"),
        ("bulk", "bulk", "rate"),
        ("drain 100", "drain100", "rate"),
        ("drain 8", "drain8", "rate"),
        ("p50", "latency", "p50"),
        ("p99", "latency", "p99"),
    ]
    head = ["peer", *(f"{title} / {to}" for title, _, _ in columns for to in ("raw", "pgqueuer"))]
    rows = []
    for peer, measured in runs.items():
        row = [peer]
        for _, name, key in columns:
            mine = middle(measured.get(name), key)
            row += [times(mine, middle(runs.get(to, {}).get(name), key)) for to in ("raw", "pgqueuer")]
        rows.append(row)
    return table(head, rows)


def crowded(runs: dict, sizes: dict) -> str:
    rows = []
    for peer, m in runs.items():
        if "f0" not in m and "f2" not in m and "f3" not in m:
            continue
        base = middle(m.get("f0"), "rate")
        rows.append(
            [
                peer,
                next((number(r["jobs"]) for r in m.get("f0", []) if "jobs" in r), ""),
                cell(m.get("f0"), "rate"),
                cell(m.get("f3"), "rate"),
                times(middle(m.get("f3"), "rate"), base),
                cell(m.get("f2"), "rate"),
                times(middle(m.get("f2"), "rate"), base),
            ]
        )
    if not rows:
        return ""
    return table(
        [
            "peer",
            "jobs",
            "f0 clean /s",
            f"f3 snapshot held, {sizes['churn']:,} jobs before /s",
            "f3/f0",
            f"f2 beside {sizes['finished']:,} finished + {sizes['scheduled']:,} scheduled /s",
            "f2/f0",
        ],
        rows,
    )


def urgent(runs: dict) -> str:
    rows = [
        [
            p,
            cell(m["urgent"], "p50", 1),
            cell(m["urgent"], "p99", 1),
            cell(m["urgent"], "max", 1),
            cell(m["urgent"], "sent"),
            cell(m["urgent"], "rate"),
        ]
        for p, m in runs.items()
        if "urgent" in m
    ]
    head = ["peer", "urgent job starts after ms, p50", "p99", "max", "urgent jobs", "drain beside it /s"]
    return table(head, rows) if rows else ""


def memory(runs: dict) -> str:
    rows = []
    for peer, m in runs.items():
        for r in m.get("memory", []):
            if "after" in r:
                rounds = " ".join(number(x, 1) for x in r["after"])
                rows.append([peer, number(r["before"], 1), rounds, f"{r['growth']:.2f}", number(r["jobs"])])
    return (
        table(["peer", "RSS MB before", "after each drain", "last / first", "jobs in all"], rows)
        if rows
        else ""
    )


def configured(results: dict) -> str:
    rows = [
        [p, " ".join(f"{k} {v}" for k, v in x.get("versions", {}).items()), x.get("config", "")]
        for p, x in results["peers"].items()
        if "failed" not in x
    ]
    return table(["peer", "version", "configured"], rows)


def failures(results: dict) -> list[str]:
    out = [f"- {p}: not measured: {x['failed']}" for p, x in results["peers"].items() if "failed" in x]
    for peer, measured in results["runs"].items():
        for name, runs in measured.items():
            out += dict.fromkeys(f"- {peer} {name}: failed: {r['failed']}" for r in runs if "failed" in r)
            out += [
                f"- {peer} {name}: stopped after its time limit with {r['stopped_at']:,} of {r['jobs']:,} jobs done"
                for r in runs
                if "stopped_at" in r
            ]
            out += [
                f"- {peer} {name}: {r['started_twice']} jobs were started twice"
                for r in runs
                if "started_twice" in r
            ]
    out += [f"- {note}" for note in dict.fromkeys(results.get("later", []))]
    if results["not_run"]:
        out.append(f"- not run, the time was up: {', '.join(dict.fromkeys(results['not_run']))}")
    return out


def goal_table(rows: list[dict]) -> str:
    return table(
        ["measure", "goal", "aim", "Rota", "met"],
        [[g["measure"], g["goal"], g["aim"] or "", g["shown"], g["met"]] for g in rows],
    )


def markdown(results: dict) -> str:
    runs = {
        p: results["runs"][p] for p in results["peers"] if p in results["runs"]
    }  # in the order they were asked for
    machine = results.get("machine", {})
    about = (
        f"{machine.get('cores')} cores ({machine.get('cpu')}), {machine.get('memory_gb')} GiB, "
        f"Python {machine.get('python')}, PostgreSQL {machine.get('postgresql')} with its defaults (fsync on; "
        f"fdatasync {machine.get('fdatasync_us')} us here), Redis {machine.get('redis')}."
    )
    busy = [r["busy_before"] for m in runs.values() for rs in m.values() for r in rs]
    noise = (
        f"Other programs used {statistics.median(busy):.0f} % of the CPU before a measure (median), at most {max(busy):.0f} %."
        if busy
        else ""
    )
    earlier = against(runs)
    runs.pop("before", None)  # it has a table of its own
    parts = [
        f"Measured {results['started']}, all in one run of {results.get('took_s', 0) / 60:.0f} minutes. {about} {noise}",
        "Cells are the median (lowest-highest) of the runs; no range means one run. Use the ratios: the absolute numbers "
        "belong to this machine."
        + (" **Quick run with fewer jobs: the figures are rough.**" if results["quick"] else "")
        + (
            " Some rows have readings of a later run as well; the file of figures names them."
            if results.get("later")
            else ""
        ),
        "**Goals**",
        goal_table(goals(results)),
        "**All peers** (slots = handlers running at once; `raw` is no peer but the limit: the least SQL and Python that is "
        "still a durable queue)",
        all_peers(runs, [p for p, x in results["peers"].items() if "failed" in x]),
        "**The same as ratios** (latency: lower is better)",
        ratios(runs),
    ]
    if earlier:
        head = ["measure", "now", "before", "now as a share (above 1 is better)", "within 5 %"]
        parts += [f"**Against {results.get('before', 'an earlier landing')}**", table(head, earlier)]
    for title, text in (
        ("**Crowded tables**", crowded(runs, results["sizes"])),
        ("**Urgent jobs while 5 queues x 3 priorities drain**", urgent(runs)),
        ("**Memory of one worker process over several drains**", memory(runs)),
        ("**Versions and settings**", configured(results)),
    ):
        parts += [title, text] if text else []
    parts.append(REDIS_NOTE)
    if bad := failures(results):
        parts += ["**Failed, cut, measured again or not run**", "\n".join(bad)]
    return "\n\n".join(parts) + "\n"


def write(results: dict, out: Path) -> str:
    """Write OUT.json and OUT.md; the text of the latter."""
    out.parent.mkdir(parents=True, exist_ok=True)
    results["goals"] = goals(results)
    text = markdown(results)
    Path(f"{out}.json").write_text(json.dumps(results, indent=1) + "\n")
    Path(f"{out}.md").write_text(text)
    return text


if __name__ == "__main__":
    path = Path(sys.argv[1])
    print(write(json.loads(path.read_text()), path.with_suffix("")))
