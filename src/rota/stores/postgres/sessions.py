"""Sessions: open, beat, order, end, and whose jobs are lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.actions import Audit, kept
from rota._core.job import Job
from rota._core.worker_order import OrderVerb, WorkerOrder
from rota.stores.contract import Beat, SessionRecord, SessionStart
from rota.stores.postgres.rows import claimed, integers, lost, uuids
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections


class Sessions:
    """The session verbs on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def open(self, session: SessionStart, lease: float) -> None:
        parameters = {
            "id": session.id,
            "host": session.host,
            "pid": session.pid,
            "user": session.user,
            "lanes": json.dumps(dict(session.lanes)),
            "tasks": list(session.tasks),
            "code_version": session.code_version,
            "queues": None if session.queues is None else json.dumps(dict(session.queues)),
            "tenant": session.tenant,
            "memory": session.memory,
            "hears": session.hears,
            "lease": lease,
            "now": self._connections.now(),
        }

        async def call(connection: Connection, _: bool) -> None:
            await connection.execute(statement("open_session"), parameters)

        await self._connections.run(call)

    async def beat(
        self, session: UUID, lease: float, holding: Mapping[UUID, int], strays: bool, memory: int | None
    ) -> Beat:
        ids = uuids(holding)
        parameters = {
            "session": session,
            "lease": lease,
            "ids": ids,
            "versions": integers(list(holding.values())),
            "memory": memory,
            "now": self._connections.now(),
        }

        async def call(connection: Connection, _: bool) -> Beat:
            row = await (await connection.execute(statement("beat"), parameters)).fetchone()
            if row is None:
                return Beat(alive=False)
            found: list[Job] = []
            if strays:
                asked = {"session": session, "ids": ids, "now": self._connections.now()}
                rows = await (await connection.execute(statement("strays"), asked)).fetchall()
                found = [claimed(stray, session) for stray in rows]
            order = None if row[2] is None else OrderVerb(row[2])
            return Beat(True, tuple(row[0]), tuple(row[1]), tuple(found), order)

        # A beat that cannot be sent soon is better reported: the session fences itself by it.
        return await self._connections.run(call, within=1.0)

    async def order(self, session: UUID, verb: OrderVerb, audit: Audit) -> bool:
        told = kept(audit)._asdict()
        asked = told | {"session": session, "verb": verb.value}

        async def call(connection: Connection, _: bool) -> bool:
            now = {"now": self._connections.now()}
            async with connection.transaction():
                left = await (await connection.execute(statement("order_worker"), asked | now)).fetchone()
                if left is not None:
                    await connection.execute(statement("schedule_audit"), told | now)
            return left is not None

        return await self._connections.run(call)

    async def end(self, session: UUID) -> None:
        async def call(connection: Connection, _: bool) -> None:
            await connection.execute(
                statement("end_session"), {"session": session, "now": self._connections.now()}
            )

        await self._connections.run(call)

    async def end_expired(self) -> float | None:
        async def call(connection: Connection, _: bool) -> float | None:
            row = await (
                await connection.execute(statement("end_expired"), {"now": self._connections.now()})
            ).fetchone()
            return None if row is None or row[0] is None else max(0.0, float(row[0]))

        return await self._connections.run(call)

    async def lost(self, limit: int) -> list[Job]:
        async def call(connection: Connection, _: bool) -> list[Job]:
            rows = await (await connection.execute(statement("lost"), {"limit": limit})).fetchall()
            return [lost(row) for row in rows]

        return await self._connections.run(call)

    async def records(self) -> list[SessionRecord]:
        async def call(connection: Connection, _: bool) -> list[SessionRecord]:
            rows = await (
                await connection.execute(statement("sessions"), {"now": self._connections.now()})
            ).fetchall()
            return [_record(row) for row in rows]

        return await self._connections.run(call)


def _record(row: tuple[Any, ...]) -> SessionRecord:
    """A session from the columns of sql/sessions.sql."""
    order = None if row[13] is None else WorkerOrder(OrderVerb(row[13]), *row[14:])
    return SessionRecord._make((*row[:7], tuple(row[7]), row[8], _lane_queues(row[9]), *row[10:13], order))


def _lane_queues(
    stored: Mapping[str, list[str] | None] | None,
) -> dict[str, tuple[str, ...] | None] | None:
    if stored is None:
        return None
    return {lane: None if queues is None else tuple(queues) for lane, queues in stored.items()}
