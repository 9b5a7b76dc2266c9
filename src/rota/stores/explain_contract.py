"""What a store promises so that people learn what waits, and why. Conformance tests quote the docstrings."""

from __future__ import annotations

from typing import Protocol

from rota._core.deploy import Waiting
from rota._core.explanation import Standing
from rota._core.job import Job


class Standings(Protocol):
    """What every store promises of a waiting job's place in its line."""

    async def standing(self, job: Job, *, cap: int) -> Standing:
        """How many due jobs of its queue a claim takes before this one, counted up to `cap`, and who holds its gate.

        Parked jobs and jobs that are due later are not before it. However long
        the backlog is, at most `cap` of its rows are read.
        """
        ...

    async def waiting(self, *, sample: int) -> list[Waiting]:
        """Every unfinished job counted by task and payload version, each group with up to `sample` of its payloads.

        Exact, and so it looks at the whole backlog once: for a deploy, not for a page.
        """
        ...
