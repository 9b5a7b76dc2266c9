"""What a store promises of counts for one tenant, or for all: by state, category and error."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from rota._core.job import State
from rota._core.job_filter import JobFilter


class Tally(NamedTuple):
    """How many jobs share a state, a category and the class of their last error."""

    state: State
    category: str | None
    error_class: str | None
    jobs: int


class Tallies(Protocol):
    """What every store can be asked about how many jobs there are of which kind."""

    async def count_found(self, wanted: JobFilter, *, cap: int) -> int:
        """How many jobs `find` would list, page after page; counting stops at `cap`."""
        ...

    async def tally(self, tenant: str | None = None, *, cap: int) -> list[Tally]:
        """How many jobs there are, history included, of one tenant or of all.

        Of the unfinished, of the dead and of those that ended otherwise up to `cap` each.
        """
        ...
