"""Suspects: crashes, the tasks that are parked for them, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota._core.actions import Audit, kept
from rota._core.failure import MESSAGE_LIMIT, clip, storable
from rota._core.suspects import Crash, ParkedTask
from rota.stores.postgres.rows import texts
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.stores.postgres.connections import Connection, Connections

BATCH = 10_000
SECONDS = 60.0
"""How long one batch may take: it reads every waiting job."""


class Suspects:
    """The verbs about crashes on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def note_crash(self, crash: Crash, limit: int, within: float) -> ParkedTask | None:
        parameters = {
            **crash._asdict(),
            "what": clip(storable(crash.what), MESSAGE_LIMIT),
            "limit": limit,
            "within": within,
            "now": crash.at or self._connections.now(),
        }

        async def call(connection: Connection, _: bool) -> ParkedTask | None:
            await connection.execute(statement("note_crash"), parameters)
            if limit <= 0:
                return None
            row = await (await connection.execute(statement("park_task"), parameters)).fetchone()
            return None if row is None else ParkedTask._make(row)

        return await self._connections.run(call)

    async def parked(self) -> list[ParkedTask]:
        async def call(connection: Connection, _: bool) -> list[ParkedTask]:
            rows = await (await connection.execute(statement("parked_tasks"))).fetchall()
            return [ParkedTask._make(row) for row in rows]

        return await self._connections.run(call)

    async def release(self, task: str, audit: Audit, code_version: str | None) -> int | None:
        asked = {"task": task, "code_version": code_version, "actor": storable(audit.actor)}
        told = kept(audit)._asdict()

        async def call(connection: Connection, _: bool) -> bool:
            now = {"now": self._connections.now()}
            async with connection.transaction():
                found = await (await connection.execute(statement("release_task"), asked | now)).fetchall()
                if found:
                    await connection.execute(statement("schedule_audit"), told | now)
            return bool(found)

        return await self._free([task]) if await self._connections.run(call) else None

    async def unpark(self) -> int:
        """Free what was parked by workers that had not yet heard of a release."""

        async def call(connection: Connection, _: bool) -> list[str]:
            asked = {"now": self._connections.now()}
            rows = await (await connection.execute(statement("released_tasks"), asked)).fetchall()
            return [row[0] for row in rows]

        tasks = await self._connections.run(call)
        return await self._free(tasks) if tasks else 0

    async def _free(self, tasks: Iterable[str]) -> int:
        asked = {"tasks": texts(tasks), "limit": BATCH}

        async def call(connection: Connection, _: bool) -> int:
            now = {"now": self._connections.now()}
            row = await (await connection.execute(statement("free_tasks"), asked | now)).fetchone()
            return int(row[0]) if row else 0

        total = 0
        while True:
            freed = await self._connections.run(call, seconds=SECONDS)
            total += freed
            if freed < BATCH:
                return total
