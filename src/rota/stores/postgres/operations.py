"""Bulk operations as rows: begun, advanced by their driver, stopped and resumed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.actions import Audit
from rota._core.failure import storable
from rota._core.operation import Operation, OperationState, Progress, verb_and_wanted
from rota.stores.postgres.operators import audited
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections


class Operations:
    """The verbs about bulk operations on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def begin(self, operation: Operation, audit: Audit) -> None:
        parameters = {
            "id": operation.id,
            "verb": operation.verb.value,
            "wanted": json.dumps(operation.wanted.as_json()),
            "actor": storable(operation.actor),
            "reason": None if operation.reason is None else storable(operation.reason),
            "rate": operation.rate,
            "total": operation.total,
            "capped": operation.capped,
            "driver": operation.driver,
        }
        await self._told("operation_begin", parameters, audit)

    async def listed(self, operation_id: UUID | None, tenant: str | None, limit: int) -> list[Operation]:
        async def call(connection: Connection, _: bool) -> list[Operation]:
            asked = {"id": operation_id, "tenant": tenant, "limit": limit}
            rows = await (await connection.execute(statement("operations"), asked)).fetchall()
            return [_operation(row) for row in rows]

        return await self._connections.run(call)

    async def note(self, audit: Audit) -> None:
        async def call(connection: Connection, _: bool) -> None:
            await connection.execute(statement("audit"), audited(audit) | {"now": self._connections.now()})

        await self._connections.run(call)

    async def advance(self, operation_id: UUID, driver: UUID, progress: Progress, *, finished: bool) -> bool:
        asked = {"id": operation_id, "driver": driver, "finished": finished, **progress._asdict()}

        async def call(connection: Connection, repeated: bool) -> bool:
            now = {"now": self._connections.now()}
            cursor = await connection.execute(statement("operation_advance"), asked | now)
            # The end of an operation, told again after a lost answer, finds it ended: that was us.
            return await cursor.fetchone() is not None or (repeated and finished)

        return await self._connections.run(call)

    async def steer(
        self, operation_id: UUID, to: OperationState, audit: Audit, driver: UUID | None
    ) -> Operation | None:
        row = await self._told(
            "operation_steer", {"id": operation_id, "state": to.value, "driver": driver}, audit
        )
        return None if row is None else _operation(row)

    async def _told(self, verb: str, parameters: dict[str, Any], audit: Audit) -> tuple[Any, ...] | None:
        """One statement and, if it wrote something, its audit row with it."""

        async def call(connection: Connection, _: bool) -> tuple[Any, ...] | None:
            now = {"now": self._connections.now()}
            async with connection.transaction():
                row = await (await connection.execute(statement(verb), parameters | now)).fetchone()
                if row is not None:
                    await connection.execute(statement("audit"), audited(audit) | now)
                return row

        return await self._connections.run(call)


def _operation(row: tuple[Any, ...]) -> Operation:
    (
        id_,
        verb,
        wanted,
        actor,
        reason,
        rate,
        total,
        done,
        refused,
        changed,
        cursor,
        state,
        driver,
        began,
        updated,
        capped,
    ) = row
    return Operation(
        id_,
        *verb_and_wanted(verb, json.loads(wanted)),
        actor,
        reason,
        rate,
        total,
        Progress(done, refused, changed, cursor),
        OperationState(state),
        driver,
        began,
        updated,
        bool(capped),
    )
