"""What a store with a schema tells of it. A store without one (memory) has none of these verbs."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol


class Migrated(NamedTuple):
    """One migration, as this code and the database know it."""

    version: int
    name: str
    applied_at: datetime | None
    """None: the database lacks it."""


class SchemaState(NamedTuple):
    """How far the schema of a database is, seen from this code."""

    version: int
    """What the database has; 0: no schema at all."""
    latest: int
    """What this code needs."""
    migrations: tuple[Migrated, ...]
    """All that either of them knows, in order."""

    def pending(self, to: int | None = None) -> list[str]:
        """The names of what the database lacks, up to a version."""
        wanted = self.latest if to is None else to
        return [one.name for one in self.migrations if self.version < one.version <= wanted]


class Migrating(Protocol):
    """The ability to have a schema that grows."""

    async def pending_migrations(self) -> list[str]:
        """The names of the migrations that the database lacks."""
        ...

    async def schema_state(self) -> SchemaState:
        """How far the schema is; answers also where there is none yet."""
        ...
