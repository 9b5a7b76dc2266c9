"""Upkeep: make the coming days, drop the old ones, remove what retention lets go, unpark, publish."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors as pg
from psycopg.sql import SQL, Composed, Identifier

from rota._core.task_spec import TaskSpec
from rota.stores.contract import Retention, Tidied
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

BATCH = 5_000
PATIENCE = 3.0
"""Seconds that one step waits for readers of an old day. Nobody waits behind it."""
DAY = 86_400.0


class Upkeep:
    """The upkeep verbs on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def tidy(self, retention: Retention) -> Tidied:
        await self._count("make_days", {})
        days = await self._connections.run(
            lambda connection, _: self._drop_alone(connection, retention.finished)
        )
        if retention.finished % DAY:
            await self._connections.run(
                lambda connection, _: self._delete_finished(connection, retention.finished)
            )
        dead = await self._batches("tidy_dead", retention.dead_after_review)
        await self._count("tidy_operations", {"keep": retention.dead_after_review})
        await self._batches("tidy_attempts", min(retention.finished, retention.dead_after_review))
        await self._batches("tidy_logs", min(retention.finished, retention.dead_after_review))
        keys = await self._batches("tidy_keys", 0.0)
        sessions = await self._count("tidy_sessions", {"keep": retention.sessions})
        await self._count("tidy_suspects", {"keep": retention.finished})
        ticks = await self._count("schedule_tidy", {"keep": retention.ticks, "kept": retention.ticks_kept})
        return Tidied(days, dead, keys, sessions, ticks)

    async def _drop_alone(self, guard: Connection, keep: float) -> int:
        """Drop days unless another janitor does. Detaching cannot run inside the transaction that keeps others away."""
        async with guard.transaction():
            # As plain text: the other protocol keeps a snapshot until the next statement, and detaching waits for that.
            plain = psycopg.AsyncCursor(guard)
            row = await (await plain.execute(statement("lock_days"), prepare=False)).fetchone()
            if row is None or not row[0]:
                return 0
            async with self._connections.connection() as connection:
                return await self._drop_days(connection, keep)

    async def _drop_days(self, connection: Connection, keep: float) -> int:
        """Detach without blocking anybody, then drop. A stopped janitor's half is finished by the next."""
        asked = {"keep": keep, "now": self._connections.now()}
        for name, half_done in await (await connection.execute(statement("old_days"), asked)).fetchall():
            detach = SQL("ALTER TABLE rota.finished_jobs DETACH PARTITION rota.{} {}")
            how = SQL("FINALIZE") if half_done else SQL("CONCURRENTLY")
            if not await _patiently(connection, detach.format(Identifier(name), how)):
                break
        dropped = 0
        for (name,) in await (await connection.execute(statement("orphan_days"), asked)).fetchall():
            drop = SQL("DROP TABLE IF EXISTS rota.{}").format(Identifier(name))
            if not await _patiently(connection, drop):
                break
            dropped += 1
        return dropped

    async def _delete_finished(self, connection: Connection, keep: float) -> None:
        asked = {"keep": keep, "limit": BATCH, "now": self._connections.now()}
        while (await connection.execute(statement("tidy_finished"), asked)).rowcount == BATCH:
            pass

    async def _batches(self, verb: str, keep: float) -> int:
        total = 0
        while True:
            removed = await self._count(verb, {"keep": keep, "limit": BATCH})
            total += removed
            if removed < BATCH:
                return total

    async def unpark(self) -> int:
        return await self._count("unpark", {})

    async def publish(self, tasks: Sequence[TaskSpec]) -> None:
        if not tasks:
            return
        rows = [
            {
                "name": task.name,
                "queue": task.queue,
                "priority": task.priority,
                "retry": task.retry.as_json(),
                "timeout": task.timeout,
                "payload_version": task.payload_version,
                "schema": json.loads(task.schema_json),
                "gate_path": task.gate_path,
                "category": task.category,
                "code_version": task.code_version,
                "rules": task.rules.as_json(),
            }
            for task in tasks
        ]

        async def call(connection: Connection, _: bool) -> None:
            await connection.execute(
                statement("publish"), {"tasks": json.dumps(rows), "now": self._connections.now()}
            )

        await self._connections.run(call)

    async def _count(self, verb: str, parameters: dict[str, float]) -> int:
        async def call(connection: Connection, _: bool) -> int:
            row = await (
                await connection.execute(statement(verb), parameters | {"now": self._connections.now()})
            ).fetchone()
            return int(row[0]) if row else 0

        return await self._connections.run(call, within=30.0)


async def _patiently(connection: Connection, step: Composed) -> bool:
    """Do one step of dropping a day; False when a long reader or somebody's hand is in the way: next round, then."""
    try:
        async with asyncio.timeout(PATIENCE):
            await connection.execute(step)
    except (TimeoutError, pg.UndefinedTable, pg.ObjectNotInPrerequisiteState, pg.LockNotAvailable):
        return False
    return True
