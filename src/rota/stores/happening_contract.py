"""The promises of a store to those who watch: what runs, what happened, what takes room."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from uuid import UUID

from rota._core.happening import (
    CodeVersion,
    Happened,
    HappeningFilter,
    Mark,
    PayloadSize,
    Share,
    Stints,
    Work,
)
from rota._core.room import Room, RoomSample


class Happenings(Protocol):
    """What every store promises to those who watch."""

    async def running(self, *, limit: int) -> list[Work]:
        """The jobs that run now, the one that runs longest first, at most `limit`. Never reads the backlog."""
        ...

    async def running_by_tenant(self) -> list[Share]:
        """For whom jobs run now, by queue and tenant, the most first. Exact, and never reads the backlog."""
        ...

    async def happened(self, mark: Mark, wanted: HappeningFilter, *, limit: int) -> Happened:
        """What happened to jobs since a mark, at most about `limit` of each kind, and the mark to go on from.

        A look costs about the same however much is stored, and may repeat what
        the one before it told. A run that begins and ends between two looks has
        its end told, and not its start.
        """
        ...

    async def stints(self, session_id: UUID, since: datetime, *, limit: int) -> Stints:
        """What the slots of one session did: attempts that ended since a moment, and those that go on, about `limit`.

        Costs about the same however much is stored. Attempts that ended
        without an end of their job or an error (snoozed, handed back) are not kept.
        """
        ...

    async def room(self) -> Room:
        """What the store is, and what takes room in it. Reads no jobs; what it has no such thing for is None."""
        ...

    async def note_room(self) -> bool:
        """Keep what takes room now; False: somebody did in these five minutes, or there is nothing to measure.

        One sample in five minutes, however many ask. Kept for thirty days.
        """
        ...

    async def room_series(self, since: float, step: float) -> list[RoomSample]:
        """What took room in the last so many seconds, in slices of `step` seconds as in `series`; of each, the most.

        A slice in which nobody looked says so. Empty: a store without tables.
        """
        ...

    async def code_versions(self, *, limit: int) -> list[CodeVersion]:
        """The code versions that tasks were published with, those that were first seen last, newest first."""
        ...

    async def refuses_changes(self) -> str | None:
        """Why the store takes no changes now, in words: a replica, or set to read only. None: it takes them."""
        ...

    async def payload_sizes(self, *, cap: int) -> list[PayloadSize]:
        """How large the payloads of unfinished jobs are, by task, the largest first; looks at `cap` jobs at most."""
        ...
