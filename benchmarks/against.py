"""Rota beside an earlier landing of itself: every row as a ratio, and which have lost too much."""

from __future__ import annotations

import statistics

LOST = 0.95  # below this share of what it was, a row has lost
ROWS = [  # title, measure, key, whether more is better
    ("single enqueue, one by one", "one", "rate", True),
    ("single enqueue, 100 callers", "concurrent", "rate", True),
    ("bulk enqueue", "bulk", "rate", True),
    ("drain, 100 slots", "drain100", "rate", True),
    ("drain, 100 slots, 20,000 jobs", "small", "rate", True),
    ("drain, 8 slots", "drain8", "rate", True),
    ("drain, 2 processes", "procs2", "rate", True),
    ("pick-up p50", "latency", "p50", False),
    ("urgent job's start p50", "urgent", "p50", False),
    ("RSS while draining", "drain100", "rss", False),
    ("f0 clean", "f0", "rate", True),
    ("f3 snapshot held", "f3", "rate", True),
    ("f2 beside millions", "f2", "rate", True),
]


def against(runs: dict) -> list[list[str]]:
    """Rows of: measure, now, before, how good now is as a share of before, kept or LOST. Above 1 is better."""
    rows = []
    for title, name, key, more in ROWS:
        now, before = (
            [r[key] for r in runs.get(peer, {}).get(name, []) if key in r and "failed" not in r]
            for peer in ("rota", "before")
        )
        if not now or not before:
            continue
        a, b = statistics.median(now), statistics.median(before)
        share = a / b if more else b / a
        digits = 0 if min(a, b) >= 100 else 1
        rows.append(
            [
                title,
                f"{a:,.{digits}f}",
                f"{b:,.{digits}f}",
                f"{share:.2f}",
                "kept" if share >= LOST else "LOST",
            ]
        )
    return rows
