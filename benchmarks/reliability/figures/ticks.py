"""G12: two schedulers, one of them killed again and again, while a year and both changes of the clocks go by.

Time is moved, which only Rota's store allows; the story is that of tests/chaos/test_ticks.py.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter

from environments import HERE
from reliability.figure import Figure
from reliability.system import Failed

OWN_CLOCK = (
    "not measured: its scheduler goes by the clock of the machine, which cannot be moved through a year"
)


def measure(system, sizes):
    sums: Counter[str] = Counter()
    seed = system.chance.randrange(1_000_000)
    for half in ("spring", "autumn"):
        system.renew()
        home = system.home / half
        home.mkdir()
        words = [system.url, home, seed, half, sizes["stretch"]]
        done = subprocess.run(
            [str(system.python), "-m", "chaos.ticks", *map(str, words)],
            env=system.environment(system.url, PYTHONPATH=str(HERE.parent / "tests")),
            cwd=home,
            capture_output=True,
            text=True,
            timeout=sizes["limit_s"],
        )
        if done.returncode:
            raise Failed((done.stderr.strip().splitlines() or ["it said nothing"])[-1][:300])
        sums.update(json.loads(done.stdout.splitlines()[-1]))
    return {name: sums[name] for name in ("ticks", "kills", "double", "missed", "violations")}


FIGURES = [
    Figure(
        "G12",
        "two schedulers, killed and frozen, through both changes of the clocks: ticks that became two jobs / none",
        "0 / 0",
        {"stretch": "short", "limit_s": 900},
        {"stretch": "long", "limit_s": 3600},
        {},
        measure,
        lambda _, f: f["double"] == f["missed"] == f["violations"] == 0 and f["ticks"] >= 1000,
        lambda f: f"{f['double']} / {f['missed']} ({f['ticks']:,} ticks, {f['kills']} kills)",
        profiles=("defaults",),
        cannot=dict.fromkeys(("pgqueuer", "procrastinate", "chancy", "arq"), OWN_CLOCK),
    )
]
