"""What a store is, and what takes room in it. Pure values."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

SAMPLED = 300.0
"""Seconds from one sample of the room to the next."""
SAMPLES_KEPT = 30 * 86_400.0
"""Seconds that samples are kept."""


class TableRoom(NamedTuple):
    """One table, with its partitions."""

    name: str
    parts: int
    """How many partitions it has; 0: it has none."""
    rows: int | None
    """About how many rows live in it; None: unknown."""
    dead: int | None
    """About how many rows wait for vacuum."""
    data: int
    """Bytes of its rows, with what is kept beside them."""
    indexes: int
    """Bytes of its indexes."""
    vacuumed_at: datetime | None = None
    """When vacuum last went through it, or through one of its partitions."""

    @property
    def bytes(self) -> int:
        return self.data + self.indexes


class RoomSample(NamedTuple):
    """How a store stood in one slice of time: of several looks, the most of each. None: nobody looked."""

    start: datetime
    bytes: int | None = None
    """Of all tables, with their indexes."""
    dead: int | None = None
    """About how many rows waited for vacuum."""
    oldest_transaction: float | None = None
    """Seconds; 0: nobody was in one."""


class Room(NamedTuple):
    """The whole store. What a store has no such thing for is None."""

    kind: str
    """`PostgreSQL`, `memory`."""
    version: str | None = None
    """Of the server."""
    schema: int | None = None
    """The migrations that it has."""
    needed: int | None = None
    """The migrations that this code knows."""
    size: int | None = None
    """Bytes of the whole database."""
    connections: int | None = None
    """Of everybody to this database, now."""
    most_connections: int | None = None
    """So many the server allows, to all of its databases."""
    oldest_transaction: float | None = None
    """Seconds; what ended since it began cannot be vacuumed. None: nobody is in one, or unknown."""
    oldest_by: str | None = None
    """Who is in it."""
    rolled_until: datetime | None = None
    """Minutes before this are merged; None: none is left to merge."""
    read_only: bool = False
    """Whether it takes no changes: a replica, or set so."""
    tables: tuple[TableRoom, ...] = ()
    """The largest first."""
