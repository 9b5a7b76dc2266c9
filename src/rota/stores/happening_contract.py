"""The promises of a store to those who watch: what runs, what happened, what takes room."""

from __future__ import annotations

from typing import Protocol

from rota._core.happening import Happened, HappeningFilter, Mark, PayloadSize, Work


class Happenings(Protocol):
    """What every store promises to those who watch."""

    async def running(self, *, limit: int) -> list[Work]:
        """The jobs that run now, the one that runs longest first, at most `limit`. Never reads the backlog."""
        ...

    async def happened(self, mark: Mark, wanted: HappeningFilter, *, limit: int) -> Happened:
        """What happened to jobs since a mark, at most about `limit` of each kind, and the mark to go on from.

        A look costs about the same however much is stored, and may repeat what
        the one before it told. A run that begins and ends between two looks has
        its end told, and not its start.
        """
        ...

    async def payload_sizes(self, *, cap: int) -> list[PayloadSize]:
        """How large the payloads of unfinished jobs are, by task, the largest first; looks at `cap` jobs at most."""
        ...
