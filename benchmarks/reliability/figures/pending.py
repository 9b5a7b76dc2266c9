"""G14: very many jobs wait. Does the worker go as fast as with few?"""

from __future__ import annotations

import json
import time

import psycopg

from reliability.figure import Figure
from reliability.system import Cannot, Failed

FEW = 20_000


def measure(system, sizes):
    if system.facts["PENDING"] is None:
        raise Cannot("not measured: its queue is filled by one call a job only")
    few = _rate(system, sizes, FEW, first=1)
    many = _rate(system, sizes, sizes["pending"], first=FEW + 1)
    return {"few_rate": round(few), "many_rate": round(many), "ratio": round(many / few, 2)}


def _rate(system, sizes, count, first):
    """Jobs a second while `count` wait (or until they are done), from the first start on."""
    _fill(system, first, first + count - 1)
    before = len(system.effects.lines())
    fleet = system.fleet(1, sizes["slots"])

    def starts():
        return [at for what, _, _, at in system.effects.lines()[before:] if what == "end"]

    try:
        system.must(lambda: starts(), 90, "no job ended")
        end = time.monotonic() + sizes["run_s"]
        while time.monotonic() < end and len(starts()) < count:
            time.sleep(0.25)
        found = starts()
        if len(found) < 2:
            raise Failed("too few jobs ran")
        return (len(found) - 1) / (found[-1] - found[0])
    finally:
        fleet.end()


def _fill(system, first, last):
    job = json.dumps({"s": 0, "file": str(system.effects.path), "how": ""})
    payload = f"jsonb_build_object('n', g) || '{job}'::jsonb"
    with psycopg.connect(system.url, autocommit=True) as c:
        c.execute(system.facts["PENDING"].format(first=first, last=last, payload=payload))
        c.execute("vacuum analyze")


FIGURES = [
    Figure(
        "G14",
        "very many jobs wait: jobs/s with them, and its share of the rate with few",
        ">= 80 %",
        {"pending": 200_000, "slots": 50, "run_s": 15},
        {"pending": 1_000_000, "run_s": 60},
        {"pending": 20_000, "run_s": 5},
        measure,
        lambda _, f: f["ratio"] >= 0.8,
        lambda f: f"{f['many_rate']:,}/s, {f['ratio']:.0%}",
        profiles=("defaults",),
        cannot={"arq": "not measured: its queue can only be filled by one call a job"},
    )
]
