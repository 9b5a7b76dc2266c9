"""The promises of a store about numbers. Conformance tests quote the docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from rota._core.numbers import Figures, Minute
from rota._core.queue import Queue


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
        """
        ...

    async def figures(self, since: float) -> Figures:
        """What all sessions did in the last so many seconds, by whole minutes, added up. Never reads jobs."""
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
