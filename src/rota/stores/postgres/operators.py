"""Operators' changes: each with its audit row, in one transaction, behind the fence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota._core.actions import Audit, CancelRequest, Change, Removal, kept
from rota._core.failure import storable
from rota._core.job import TERMINAL, State
from rota._core.outcome import Transition
from rota.errors import NotUnique
from rota.stores.contract import Answer, Settled
from rota.stores.postgres.rows import integers, uuids
from rota.stores.postgres.settle import Settler
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections


class Operators:
    """The operators' verbs on one event loop's connections."""

    def __init__(self, connections: Connections, settler: Settler) -> None:
        self._connections = connections
        self._settler = settler

    async def change(self, change: Change, audit: Audit) -> Settled:
        async def call(connection: Connection, _: bool) -> Settled:
            async with connection.transaction():
                settled = await self._apply(connection, change)
                if settled.answer is Answer.APPLIED:
                    told = audit
                    if isinstance(change, Transition) and settled.state not in (change.to, None):
                        told = audit._replace(
                            after=settled.state
                        )  # superseded: the trail tells what really happened
                    await self._record(connection, told)
            if settled.answer is Answer.APPLIED and change.job.gate is not None:
                # Again after the commit: a claim that still saw the job inside has parked the next one meanwhile.
                gates = {"gates": [change.job.gate], "now": self._connections.now()}
                await connection.execute(statement("ungate"), gates)
            return settled

        return await self._connections.run(call)

    async def _apply(self, connection: Connection, change: Change) -> Settled:
        match change:
            case Transition(job) if job.state in TERMINAL:
                return await self._revive(connection, change)
            case Transition():
                return await self._settler.change(connection, change)
            case CancelRequest(job, reason):
                parameters = {
                    "id": job.id,
                    "version": job.version,
                    "reason": None if reason is None else storable(reason),
                    "now": self._connections.now(),
                }
                return await self._landed(connection, "request_cancel", parameters, change, State.RUNNING)
            case Removal(job):
                return await self._landed(
                    connection, "remove", {"id": job.id, "version": job.version}, change, None
                )

    async def _revive(self, connection: Connection, transition: Transition) -> Settled:
        job = transition.job
        if job.unique_key is not None:
            holder = await self._settler.keys.rival(connection, job)
            if holder is not None:
                raise NotUnique(job.unique_key, holder)
            await self._settler.keys.take_key(connection, job)
        parameters = {
            "id": job.id,
            "version": job.version,
            "run_at": transition.run_at,
            "reason": None if transition.reason is None else storable(transition.reason),
            "now": self._connections.now(),
        }
        return await self._landed(connection, "revive", parameters, transition, State.PENDING)

    async def _landed(
        self,
        connection: Connection,
        verb: str,
        parameters: dict[str, object],
        change: Change,
        state: State | None,
    ) -> Settled:
        job = change.job
        if await (await connection.execute(statement(verb), parameters)).fetchone():
            return Settled(job.id, Answer.APPLIED, state)
        row = await (
            await connection.execute(
                statement("readback"), {"ids": uuids([job.id]), "versions": integers([job.version])}
            )
        ).fetchone()
        return Settled(job.id, Answer.FENCED, State(row[2]) if row and row[2] else None)

    async def _record(self, connection: Connection, audit: Audit) -> None:
        await connection.execute(statement("audit"), audited(audit) | {"now": self._connections.now()})


def audited(audit: Audit) -> dict[str, object]:
    """An audit row as the values of audit.sql."""
    values = kept(audit)._asdict()
    return {"id": values.pop("job_id"), **values}
