"""What runs of mixed chaos came to, one JSON line each: docs/reliability.md shows those of the last twenty seeds."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chaos.disasters import Disasters
    from chaos.stage import Stage


class Entry(NamedTuple):
    """One run."""

    seed: int
    supervised: bool
    seconds: float
    """How long harm was done."""
    jobs: int
    starts: int
    violations: int | None
    """None: the run ended before anything could be judged."""
    harms: dict[str, int]
    """What was done, and how often."""
    day: str


def entry(run: Stage, disasters: Disasters, seconds: float) -> Entry:
    """What this run came to."""
    from chaos.failpoints import FELL  # here: who only reads needs nothing of the engine

    harms: Counter[str] = Counter(disasters.done)
    harms["cut_around_a_commit"] = sum(what.startswith("cut ") for _, what in run.nemesis.timeline)
    harms["die_before_a_settle"] = sum(death.code == FELL for death in run.fleet.deaths)
    seen = run.evidence
    return Entry(
        run.nemesis.seed,
        bool(run.supervised),
        seconds,
        0 if seen is None else len(seen.tables.rows),
        0 if seen is None else len(seen.effects),
        None if run.violations is None else len(run.violations),
        {name: count for name, count in sorted(harms.items()) if count},
        f"{datetime.now(UTC):%Y-%m-%d}",
    )


def record(path: Path, one: Entry) -> None:
    """Add a run to those that are written down."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(one._asdict()) + "\n")


def recorded(path: Path) -> list[Entry]:
    """All runs that are written down, by seed; of one seed done twice, the last."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = [Entry(**json.loads(line)) for line in lines]
    return sorted({(one.seed, one.supervised): one for one in entries}.values())
