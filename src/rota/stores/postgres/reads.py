"""Reads: jobs by id and by filter, their attempts, the audit trail, counts, tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.actions import Audit
from rota._core.deploy import Waiting, WaitingJob
from rota._core.explanation import Standing
from rota._core.job import Job, State
from rota._core.retry import Retry
from rota._core.rules import TaskRules
from rota._core.task_spec import TaskSpec
from rota.stores.contract import Attempt, Count, JobFilter
from rota.stores.postgres.finding import found, looked
from rota.stores.postgres.rows import brief, stored, uuids
from rota.stores.postgres.sqlfiles import statement
from rota.stores.tally_contract import Tally

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

COUNT_CAP = 100_000
WHOLE_BACKLOG = 120.0
"""Seconds that a look at every unfinished job may take."""
FILTERED = frozenset({"audit_trail"})


class Reads:
    """The reading verbs on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def get(self, job_ids: Sequence[UUID]) -> list[Job]:
        rows = await self._rows("get", {"ids": uuids(job_ids)})
        # A job that moves between two tables while we read may show twice: the later version is the truth.
        newest: dict[UUID, Job] = {}
        for job in map(stored, rows):
            if job.id not in newest or newest[job.id].version < job.version:
                newest[job.id] = job
        return [newest[job_id] for job_id in dict.fromkeys(job_ids) if job_id in newest]

    async def find(self, wanted: JobFilter) -> list[Job]:
        made = brief if wanted.brief else stored
        return [made(row) for row in await found(self._connections, wanted)]

    async def attempts(self, job_id: UUID, limit: int | None) -> list[Attempt]:
        return [Attempt._make(row) for row in await self._rows("attempts", {"id": job_id, "limit": limit})]

    async def audit(self, job_id: UUID | None, about: str | None, limit: int) -> list[Audit]:
        asked = {"id": job_id, "about": about, "limit": limit}
        return [Audit(*row) for row in await self._rows("audit_trail", asked)]

    async def counts(self) -> list[Count]:
        rows = await self._rows("counts", {"cap": COUNT_CAP})
        return [Count(row[0], row[1], State(row[2]), row[3], row[4], row[5]) for row in rows]

    async def count_found(self, wanted: JobFilter, cap: int) -> int:
        rows = await found(self._connections, wanted._replace(limit=cap), counted=True)
        return int(rows[0][0]) if rows else 0

    async def tally(self, tenant: str | None, cap: int) -> list[Tally]:
        asked = {"tenant": tenant, "cap": cap}

        async def ask(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(statement("tally"), asked, prepare=False)).fetchall()

        rows = await looked(self._connections, ask)
        return [Tally(State(row[0]), *row[1:]) for row in rows]

    async def standing(self, job: Job, cap: int) -> Standing:
        place = {name: getattr(job, name) for name in ("id", "queue", "priority", "run_at", "gate")}
        # One row more than the cap tells that there are more.
        [(ahead, inside)] = await self._rows(
            "standing", place | {"cap": cap + 1, "now": self._connections.now()}
        )
        return Standing(min(ahead, cap), ahead > cap, inside)

    async def waiting(self, sample: int) -> list[Waiting]:
        payloads: dict[tuple[str, str | None], list[WaitingJob]] = {}
        counted: list[tuple[Any, ...]] = []

        async def call(connection: Connection, _: bool) -> None:
            counted[:] = await (await connection.execute(statement("waiting"))).fetchall()
            asked = {
                "tasks": [row[0] for row in counted],
                "versions": [row[1] for row in counted],
                "sample": sample,
            }
            payloads.clear()
            for row in await (await connection.execute(statement("waiting_payloads"), asked)).fetchall():
                payloads.setdefault((row[0], row[1]), []).append(WaitingJob(row[2], row[3]))

        await self._connections.run(call, seconds=WHOLE_BACKLOG)
        return [
            Waiting(task, version, jobs, tuple(payloads.get((task, version), ())))
            for task, version, jobs in counted
        ]

    async def backlog(self, queue: str, cap: int, *, by_tenant: bool) -> dict[str | None, int]:
        rows = await self._rows("backlog_by_tenant" if by_tenant else "backlog", {"queue": queue, "cap": cap})
        return dict(rows) if by_tenant else {None: rows[0][0]}

    async def tasks(self) -> list[TaskSpec]:
        return [
            TaskSpec._make(
                (
                    *row[:3],
                    Retry.from_json(json.loads(row[3])),
                    *row[4:10],
                    TaskRules.from_json(json.loads(row[10])),
                )
            )
            for row in await self._rows("tasks", {})
        ]

    async def now(self) -> datetime:
        moved = self._connections.now()
        if moved is not None:
            return moved

        async def call(connection: Connection, _: bool) -> datetime:
            row = await (await connection.execute("SELECT now()")).fetchone()
            assert row is not None
            moment: datetime = row[0]
            return moment

        return await self._connections.run(call)

    async def _rows(self, verb: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            if verb not in FILTERED:
                return await (await connection.execute(statement(verb), parameters)).fetchall()
            async with connection.transaction():
                # A plan that fits every filter fits none: it is planned for what was asked.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                return await (await connection.execute(statement(verb), parameters, prepare=False)).fetchall()

        return await self._connections.run(call)
