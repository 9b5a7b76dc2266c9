"""Upkeep: make the coming days, drop the empty ones, remove what retention lets go, unpark, publish."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors as pg
from psycopg.sql import SQL, Composed, Identifier

from rota._core.actions import Audit
from rota._core.retention import DAY, EVERYTHING, Pruned, archive_keep
from rota._core.room import SAMPLES_KEPT
from rota._core.task_spec import TaskSpec
from rota.stores.postgres.operators import audited
from rota.stores.postgres.retention import Pruner, least
from rota.stores.postgres.sqlfiles import statement
from rota.stores.retention_contract import Retention, Tidied

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

BATCH = 5_000
INDEXING = 600.0
"""Seconds that the indexes of one day, or those of dead letters, may take."""
PATIENCE = 3.0
"""Seconds that one step waits for readers of an old day. Nobody waits behind it."""
ROUND = 60.0
"""Seconds that a round of dropping days may take."""


class Upkeep:
    """The upkeep verbs on one event loop's connections."""

    def __init__(self, connections: Connections, pruner: Pruner) -> None:
        self._connections, self._pruner = connections, pruner

    async def tidy(self, retention: Retention) -> Tidied:
        await self._count("make_days", {})
        old = max(least(await self._pruner.policies(), retention), DAY)
        pruned = await self._pruner.prune(EVERYTHING, retention)
        days, put_back = await self._drop_days(old)
        if put_back:  # their jobs are to be archived first
            more = await self._pruner.prune(EVERYTHING, retention)
            pruned = Pruned(pruned.finished + more.finished, pruned.dead + more.dead)
            days += (await self._drop_days(old))[0]
        policies = await self._pruner.policies()  # again: the purge may have taken hours
        months = await self._pruner.drop_months(archive_keep(policies, retention.archive))
        await self._count("tidy_operations", {"keep": retention.dead_after_review})
        await self._batches("tidy_attempts", min(retention.finished, retention.dead_after_review))
        await self._batches("tidy_logs", min(retention.finished, retention.dead_after_review))
        keys = await self._batches("tidy_keys", 0.0)
        sessions = await self._count("tidy_sessions", {"keep": retention.sessions})
        await self._count("tidy_room", {"keep": SAMPLES_KEPT})
        await self._count("tidy_suspects", {"keep": retention.finished})
        ticks = await self._count("schedule_tidy", {"keep": retention.ticks, "kept": retention.ticks_kept})
        await self._index_days()
        await self._connections.run(self._index_dead, seconds=INDEXING)
        return Tidied(pruned.finished, pruned.dead, keys, sessions, ticks, days, months)

    async def _drop_days(self, keep: float) -> tuple[int, int]:
        """How many old days were empty and are gone, and how many detached ones had jobs and are back."""
        return await self._connections.run(
            lambda connection, _: self._drop_alone(connection, keep), seconds=ROUND
        )

    async def _drop_alone(self, guard: Connection, keep: float) -> tuple[int, int]:
        """Drop days unless another janitor does. Detaching cannot run inside the transaction that keeps others away."""
        async with guard.transaction():
            # As plain text: the other protocol keeps a snapshot until the next statement, and detaching waits for that.
            plain = psycopg.AsyncCursor(guard)
            row = await (await plain.execute(statement("lock_days"), prepare=False)).fetchone()
            if row is None or not row[0]:
                return 0, 0
            async with self._connections.connection() as connection:
                return await self._drop(connection, keep)

    async def _drop(self, connection: Connection, keep: float) -> tuple[int, int]:
        """Detach what is empty without blocking anybody, and drop it. A stopped janitor's half is finished too."""
        asked = {"keep": keep, "now": self._connections.now()}
        for name, half_done in await (await connection.execute(statement("old_days"), asked)).fetchall():
            if not half_done and not await _empty(connection, name):
                continue
            detach = SQL("ALTER TABLE rota.finished_jobs DETACH PARTITION rota.{} {}")
            how = SQL("FINALIZE") if half_done else SQL("CONCURRENTLY")
            if await _patiently(connection, detach.format(Identifier(name), how)) is None:
                break
        answers = []
        for (name,) in await (await connection.execute(statement("orphan_days"), asked)).fetchall():
            answer = await _patiently(connection, SQL(statement("drop_day")), {"name": name})
            if answer is None:
                break
            answers.append(bool(answer[0]))
        return answers.count(True), answers.count(False)

    async def _batches(self, verb: str, keep: float) -> int:
        total = 0
        while True:
            removed = await self._count(verb, {"keep": keep, "limit": BATCH})
            total += removed
            if removed < BATCH:
                return total

    async def unpark(self) -> int:
        return await self._count("unpark", {})

    async def publish(self, tasks: Sequence[TaskSpec], audit: Audit | None = None) -> None:
        if not tasks and audit is None:
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

        async def call(connection: Connection, repeated: bool) -> None:
            now = {"now": self._connections.now()}
            async with connection.transaction():
                await connection.execute(statement("publish"), {"tasks": json.dumps(rows)} | now)
                # After a lost answer it may be told already; what it is about is its own.
                if audit is not None and not (repeated and await _told(connection, audit)):
                    await connection.execute(statement("audit"), audited(audit) | now)

        await self._connections.run(call)

    async def _index_days(self) -> None:
        """Give days that are over the indexes that a day being filled does without, one day after the other."""

        async def call(connection: Connection, _: bool) -> int:
            asked = {"now": self._connections.now()}
            row = await (await connection.execute(statement("index_days"), asked)).fetchone()
            return int(row[0]) if row else 0

        while await self._connections.run(call, seconds=INDEXING) > 1:
            pass

    async def _index_dead(self, guard: Connection, _: bool) -> None:
        """Make the indexes that a migration left out because there were many dead letters; nobody waits for it."""
        if not await (await guard.execute(statement("dead_indexes"))).fetchall():
            return
        async with guard.transaction():
            # As plain text, and in no transaction that has a snapshot: making an index waits for those.
            plain = psycopg.AsyncCursor(guard)
            row = await (await plain.execute(statement("lock_days"), prepare=False)).fetchone()
            if row is None or not row[0]:
                return
            async with self._connections.connection() as connection:
                missing = await (await connection.execute(statement("dead_indexes"))).fetchall()
                for name, definition, broken in missing:
                    parts = {"name": Identifier(name), "definition": SQL(definition)}
                    for verb in ("drop_dead_index", "make_dead_index") if broken else ("make_dead_index",):
                        await connection.execute(SQL(statement(verb)).format(**parts))

    async def _count(self, verb: str, parameters: dict[str, float]) -> int:
        async def call(connection: Connection, _: bool) -> int:
            row = await (
                await connection.execute(statement(verb), parameters | {"now": self._connections.now()})
            ).fetchone()
            return int(row[0]) if row else 0

        return await self._connections.run(call, within=30.0)


async def _told(connection: Connection, audit: Audit) -> bool:
    asked = {"id": None, "about": audit.about, "limit": 1}
    return await (await connection.execute(statement("audit_trail"), asked)).fetchone() is not None


async def _empty(connection: Connection, name: str) -> bool:
    row = await (
        await connection.execute(SQL(statement("day_empty")).format(day=Identifier(name)))
    ).fetchone()
    return bool(row and row[0])


async def _patiently(
    connection: Connection, step: Composed | SQL, parameters: dict[str, object] | None = None
) -> tuple[Any, ...] | None:
    """Do one step of dropping a day; None when a long reader or somebody's hand is in the way: next round, then."""
    try:
        async with asyncio.timeout(PATIENCE):
            cursor = await connection.execute(step, parameters)
            return (await cursor.fetchone() or ()) if cursor.description else ()
    except (TimeoutError, pg.UndefinedTable, pg.ObjectNotInPrerequisiteState, pg.LockNotAvailable):
        return None
