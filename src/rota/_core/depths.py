"""How deep queues were: samples of their backlog, one a minute, for charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

WHOLE = ""
"""Stands for all queues together in a sample; no queue is called so."""
COUNTED = ("pending", "running", "dead")
"""The states that are told apart."""


class Depth(NamedTuple):
    """What there was of one queue, or of all of them; of several samples, the most of each."""

    pending: int = 0
    """Jobs that waited, due or not. Counted as far as `counts` does."""
    running: int = 0
    dead: int = 0
    oldest_wait: float = 0.0
    """Seconds that its oldest due job had waited; 0: nothing was due."""
    retrying: int = 0
    """Of the jobs that waited, those that waited for another attempt."""

    def deepest(self, other: Depth) -> Depth:
        """The most of each."""
        return Depth(
            max(self.pending, other.pending),
            max(self.running, other.running),
            max(self.dead, other.dead),
            max(self.oldest_wait, other.oldest_wait),
            max(self.retrying, other.retrying),
        )


class DepthSlice(NamedTuple):
    """The samples of one slice of time."""

    start: datetime
    whole: Depth | None = None
    """All queues together; None: nobody looked."""
    queues: Mapping[str, Depth] = {}
    """Those that were not empty."""

    def of(self, queue: str) -> Depth | None:
        """One queue; None: nobody looked."""
        return None if self.whole is None else self.queues.get(queue, Depth())


class Depths(NamedTuple):
    """Slices of equal length, oldest first and without gaps; the last one is still going on."""

    since: datetime
    until: datetime
    step: float
    slices: tuple[DepthSlice, ...]


def sampled(
    counts: Iterable[tuple[str, str, int, int]], heads: Iterable[tuple[str, datetime]], now: datetime
) -> dict[str, Depth]:
    """A sample as it is kept: every queue that is not empty, and the whole.

    From how many jobs are in which queue and state, how many of them wait for another attempt, and from when the
    oldest waiting one of each queue is due.
    """
    queues: dict[str, Depth] = {}
    for queue, state, jobs, retrying in counts:
        if state in COUNTED:
            depth = queues.get(queue, Depth())
            more = {state: getattr(depth, state) + jobs, "retrying": depth.retrying + retrying}
            queues[queue] = depth._replace(**more)
    for queue, oldest in heads:
        waited = max(0.0, (now - oldest).total_seconds())
        queues[queue] = queues.get(queue, Depth())._replace(oldest_wait=waited)
    whole = Depth(
        sum(depth.pending for depth in queues.values()),
        sum(depth.running for depth in queues.values()),
        sum(depth.dead for depth in queues.values()),
        max((depth.oldest_wait for depth in queues.values()), default=0.0),
        sum(depth.retrying for depth in queues.values()),
    )
    return {WHOLE: whole} | queues


def sliced(start: datetime, samples: Iterable[Mapping[str, Depth]]) -> DepthSlice:
    """Several samples as one slice."""
    deepest: dict[str, Depth] = {}
    for sample in samples:
        for name, depth in sample.items():
            deepest[name] = depth.deepest(deepest.get(name, Depth()))
    return DepthSlice(start, deepest.pop(WHOLE, None), dict(sorted(deepest.items())))
