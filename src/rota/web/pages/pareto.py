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
    share: float
    """Of all jobs that are counted."""
    together: float
    """The share of this one and of all before it."""


def pareto(groups: Sequence[FailureGroup]) -> list[Cause]:
    """The exceptions of these groups, the one that killed most jobs first."""
    jobs: dict[str, int] = {}
    seen: dict[str, int] = {}
    for group in groups:
        name = group.error_type or group.error_class or UNKNOWN
        jobs[name] = jobs.get(name, 0) + group.letters
        seen[name] = seen.get(name, 0) + 1
    whole, so_far, found = sum(jobs.values()), 0, []
    for name in sorted(jobs, key=lambda name: (-jobs[name], name)):
        so_far += jobs[name]
        found.append(Cause(name, jobs[name], seen[name], jobs[name] / (whole or 1), so_far / (whole or 1)))
    return found[:SHOWN]
