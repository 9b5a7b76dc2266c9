"""The unique keys of jobs that want to wait again: who holds one now, and how it changes hands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from rota._core.job import Job, Scope, State
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

WAITING = frozenset({State.PENDING, State.HELD, State.BLOCKED})


class Asker(NamedTuple):
    """What a job that is not stored yet is known by to its unique key."""

    id: UUID
    task: str
    tenant: str | None
    unique_key: str | None
    unique_scope: str | None


class Keyring:
    """The unique keys, as one event loop's connections see them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def rival(self, connection: Connection, job: Job | Asker) -> UUID | None:
        """Lock the job's unique key; the other job that holds it, if one does. Inside a transaction."""
        parameters = {
            "tenant": job.tenant or "",
            "task": job.task,
            "key": job.unique_key,
            "now": self._connections.now(),
        }
        row = await (await connection.execute(statement("lock_key"), parameters)).fetchone()
        assert row is not None
        holder, scope, in_window = row
        if holder is None or holder == job.id:
            return None
        found = await (await connection.execute(statement("key_holder"), {"holder": holder})).fetchone()
        holds = {
            Scope.STARTED: found is not None and found[0] in WAITING,
            Scope.FINISHED: found is not None,
            Scope.WINDOW: bool(in_window),
        }[Scope(scope or Scope.STARTED)]
        return holder if holds else None

    async def take_key(self, connection: Connection, job: Job | Asker) -> None:
        """Give the job the unique key that `rival` locked."""
        parameters = {"id": job.id, "scope": job.unique_scope, "tenant": job.tenant or "", "task": job.task}
        await connection.execute(statement("take_key"), parameters | {"key": job.unique_key})

    @staticmethod
    async def hurry(connection: Connection, seconds: float) -> None:
        """Wait for no lock longer than this, to the end of the transaction."""
        await connection.execute(
            "SELECT set_config('lock_timeout', %s, true)", [f"{max(1, round(seconds * 1000))}ms"]
        )
