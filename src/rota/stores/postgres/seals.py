"""The seals of the audit, read; the database makes them itself when a row of the audit is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota._core.actions import Audit
from rota._core.seal import Seal, Sealed
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

SEAL = len(Seal._fields)
WALK_SECONDS = 60.0
"""To look through an audit of many years takes a while."""


class Seals:
    """The verbs about seals on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def found(self, after: int, limit: int) -> list[Sealed]:
        rows = await self._rows("seals", {"after": after, "limit": limit})
        return [
            Sealed(Seal._make(row[:SEAL]), None if row[SEAL] is None else Audit._make(row[SEAL:]))
            for row in rows
        ]

    async def missing(self) -> int | None:
        rows = await self._rows("unsealed", {})
        return rows[0][0] if rows else None

    async def _rows(self, verb: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            return await (await connection.execute(statement(verb), asked)).fetchall()

        return await self._connections.run(call, seconds=WALK_SECONDS)
