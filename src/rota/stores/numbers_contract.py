"""The promises of a store about numbers. Conformance tests quote the docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from rota._core.depths import Depths
from rota._core.numbers import Figures, Minute
from rota._core.queue import Queue
from rota._core.series import Series, TenantSeries


class Head(NamedTuple):
    """The front of one queue's line."""

    queue: str
    oldest: datetime
    """When its first waiting job was or will be due."""


class Numbers(Protocol):
    """What every store promises of the numbers that workers report."""

    async def note_minutes(self, session: UUID, minutes: Sequence[Minute]) -> None:
        """Keep what a session did in these minutes. Totals are absolute: the last word on a minute counts.

        A minute that is over for half an hour is no longer changed.
        """
        ...

    async def roll(self) -> int:
        """Merge minutes that no session may change any more, and drop those that are too old; how many were merged.

        Nothing is counted twice or lost by it, whoever rolls at the same time.
        Of minutes that are dropped, the sums of whole hours stay for a quarter of a year.
        """
        ...

    async def figures(self, since: float) -> Figures:
        """What all sessions did in the last so many seconds, by whole minutes, added up. Never reads jobs.

        Of a stretch that is longer than minutes are kept, by whole hours.
        """
        ...

    async def series(
        self,
        since: float,
        step: float,
        *,
        queue: str | None = None,
        task: str | None = None,
        apart: bool = True,
    ) -> Series:
        """What all sessions did in the last so many seconds, in slices of `step` seconds. Never reads jobs.

        Slices begin at multiples of the step, in UTC, and the first one is whole; those in which nothing ended are
        there too. Of all queues and tasks, or of one; each `apart`, or all together under empty names, which is
        quicker. `ValueError` for a step in which no numbers are kept.
        """
        ...

    async def tenant_series(self, since: float, step: float, *, top: int) -> TenantSeries:
        """For whom attempts ran in the last so many seconds, in the slices of `series`; the `top` tenants apart.

        Never reads jobs.
        """
        ...

    async def note_depths(self) -> bool:
        """Keep how deep the queues are now, from `counts` and `heads`; False: somebody did, or is about to.

        One sample a minute, however many ask.
        """
        ...

    async def depths(self, since: float, step: float) -> Depths:
        """How deep the queues were in the last so many seconds, in the slices of `series`; of each, the most.

        A slice in which nobody looked says so. Samples are kept as long as minutes.
        """
        ...

    async def publish_queues(self, queues: Sequence[Queue]) -> None:
        """Make known what is expected of these queues; the newest word on each counts, and others stay."""
        ...

    async def queues(self) -> list[Queue]:
        """The queues of which something is expected, by name."""
        ...

    async def heads(self) -> list[Head]:
        """The queues that have waiting jobs, each with its oldest one; exact, and never reads the backlog."""
        ...
