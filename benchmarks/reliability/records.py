"""What is known of jobs afterwards: the effects file that handlers wrote, and the system's own tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple


class Run(NamedTuple):
    """One execution of one job."""

    n: int
    pid: int
    start: float
    end: float | None = None
    how: str | None = None
    """end, failed or cancelled; None: its process died in between, or it runs still."""


class Row(NamedTuple):
    """A job as the system itself sees it."""

    n: int | None
    state: str
    """waiting, running, done or failed"""
    attempts: int | None
    id: str


class Effects:
    """The effects file, read anew at each question."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[tuple[str, int, int, float]]:
        whole, _, _ = self.path.read_text().rpartition("\n")
        parts = (line.split() for line in whole.splitlines())
        return [(what, int(n), int(pid), float(at)) for what, n, pid, at in parts]

    def runs(self) -> list[Run]:
        """Every execution, in the order of their beginning."""
        found: list[Run] = []
        open_: dict[tuple[int, int], list[int]] = defaultdict(list)
        for what, n, pid, at in self.lines():
            if what == "start":
                open_[n, pid].append(len(found))
                found.append(Run(n, pid, at))
            elif what != "call" and open_[n, pid]:
                place = open_[n, pid].pop(0)
                found[place] = found[place]._replace(end=at, how=what)
        return found

    def started(self) -> Counter[int]:
        return Counter(n for what, n, _, _ in self.lines() if what == "start")

    def ended(self) -> set[int]:
        return {n for what, n, _, _ in self.lines() if what == "end"}

    def latencies(self) -> dict[int, float]:
        """Seconds from the call to the first start, by job; of those that were called and have started."""
        calls, found = {}, {}
        for what, n, _, at in self.lines():
            if what == "call":
                calls[n] = at
            elif what == "start" and n in calls and n not in found:
                found[n] = at - calls[n]
        return found


class Kill(NamedTuple):
    """A process that we ended."""

    pid: int
    at: float


ACK = 2.0  # seconds after its end in which a job may still be unacknowledged: chancy writes once a second


def unexplained(runs: list[Run], kills: list[Kill]) -> int:
    """Starts beyond the first whose predecessor was not in flight (or just unacknowledged) when we killed its process."""
    killed = defaultdict(list)
    for kill in kills:
        killed[kill.pid].append(kill.at)
    last: dict[int, Run] = {}
    found = 0
    for run in runs:
        before = last.get(run.n)
        if before is not None:
            found += not any(
                before.start <= at and (before.end is None or at - before.end <= ACK)
                for at in killed[before.pid]
            )
        last[run.n] = run
    return found


def outcome(numbers: set[int], effects: Effects, rows: list[Row]) -> dict[str, int]:
    """Lost: neither ended nor anywhere in the tables. Stuck: begun there, and not ended. Waiting: not begun (again)."""
    ended = effects.ended()
    stuck = {row.n for row in rows if row.state == "running"} & numbers
    waiting = ({row.n for row in rows if row.state == "waiting"} & numbers) - stuck
    failed = ({row.n for row in rows if row.state == "failed"} & numbers) - stuck - waiting
    return {
        "lost": len(numbers - ended - stuck - waiting - failed),
        "stuck": len(stuck),
        "waiting": len(waiting),
        "failed": len(failed),
    }


def unclean(found: dict[str, int]) -> bool:
    """Whether any job did not end well."""
    return any(found[what] for what in ("lost", "stuck", "waiting", "failed"))


def besides(found: dict[str, int], *names: str) -> str:
    """What else is to be said of jobs that did not end well."""
    words = {"stuck": "stuck", "waiting": "not begun yet", "failed": "failed", "lost": "lost"}
    return "".join(f", {found[name]} {words[name]}" for name in names if found[name])


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
