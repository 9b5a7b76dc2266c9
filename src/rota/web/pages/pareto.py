"""What breaks most? Exceptions by how many jobs they killed, and how much of it all the first few are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota._core.dead_letter import FailureGroup

SHOWN = 10
UNKNOWN = "unknown error"


class Cause(NamedTuple):
    """One exception, whatever task and place it came from."""

    name: str
    jobs: int
    groups: int
    share: float | None
    """Of all jobs; None: some were not counted to their end."""
    together: float | None
    """The share of this one and of all before it."""
    capped: bool = False
    """There may be more of it: counting stopped."""


def pareto(groups: Sequence[FailureGroup], most: int) -> list[Cause]:
    """The exceptions of these groups, the one that killed most jobs first; a group is counted up to `most`."""
    jobs: dict[str, int] = {}
    seen: dict[str, int] = {}
    capped: set[str] = set()
    for group in groups:
        name = group.error_type or group.error_class or UNKNOWN
        jobs[name] = jobs.get(name, 0) + group.letters
        seen[name] = seen.get(name, 0) + 1
        if group.letters >= most:
            capped.add(name)
    whole, so_far, found = sum(jobs.values()) or 1, 0, []
    for name in sorted(jobs, key=lambda name: (-jobs[name], name)):
        so_far += jobs[name]
        share, together = (None, None) if capped else (jobs[name] / whole, so_far / whole)
        found.append(Cause(name, jobs[name], seen[name], share, together, name in capped))
    return found[:SHOWN]
