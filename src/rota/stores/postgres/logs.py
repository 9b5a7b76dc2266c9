"""The logs of jobs: one row an attempt, with its newest lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from rota._core.job_log import LogLine, LogTail
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

BATCH = 500


class JobLogs:
    """The verbs about logs on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def keep(self, tails: Sequence[LogTail]) -> None:
        for start in range(0, len(tails), BATCH):
            # One row an attempt: a statement cannot replace the same row twice.
            batch = {(tail.job_id, tail.version): tail for tail in tails[start : start + BATCH]}
            text = json.dumps([_plain(tail) for tail in batch.values()])

            async def call(connection: Connection, _: bool, text: str = text) -> None:
                await connection.execute(
                    statement("keep_logs"), {"tails": text, "now": self._connections.now()}
                )

            await self._connections.run(call)

    async def read(self, job_id: UUID) -> list[LogTail]:
        async def call(connection: Connection, _: bool) -> list[LogTail]:
            rows = await (await connection.execute(statement("logs"), {"id": job_id})).fetchall()
            return [
                LogTail(job_id, version, attempt, tuple(map(_line, lines)), written, location)
                for version, attempt, lines, written, location in rows
            ]

        return await self._connections.run(call)


def _plain(tail: LogTail) -> dict[str, object]:
    return tail._asdict() | {
        "job_id": str(tail.job_id),
        "lines": [(line.at.isoformat(), line.level, line.message) for line in tail.lines],
    }


def _line(stored: Sequence[str]) -> LogLine:
    at, level, message = stored
    return LogLine(datetime.fromisoformat(at), level, message)
