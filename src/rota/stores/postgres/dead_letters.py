"""Dead letters: read, reviewed and reprocessed; each change with its audit, in one transaction, behind the fence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core import review as reviewing
from rota._core.actions import Audit, AuditFilter
from rota._core.dead_letter import (
    DeadFilter,
    DeadLetter,
    Death,
    FailureGroup,
    back_in_review,
    how_it_went,
)
from rota._core.failure import storable
from rota._core.fingerprint import fingerprint
from rota._core.job import Job, NewJob, State
from rota._core.review import ENGINE, Landed, Review, ReviewChange, Reviewed, ReviewVerb
from rota.errors import NotUnique
from rota.stores.postgres.encoding import as_values
from rota.stores.postgres.keyring import Asker, Keyring
from rota.stores.postgres.operators import audited
from rota.stores.postgres.rows import stored
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

COUNT_CAP = 10_000
BATCH = 200
JOB_FIELDS = len(Job._fields)


class DeadLetters:
    """The verbs about dead letters and the audit on one event loop's connections."""

    def __init__(self, connections: Connections, keys: Keyring) -> None:
        self._connections = connections
        self._keys = keys

    async def one(self, job_id: UUID) -> DeadLetter | None:
        rows = await self._filtered("dead_letters", _asked(DeadFilter(limit=1)) | {"id": job_id})
        return _letter(rows[0]) if rows else None

    async def find(self, wanted: DeadFilter) -> list[DeadLetter]:
        return [_letter(row) for row in await self._filtered("dead_letters", _asked(wanted))]

    async def deaths(self, wanted: DeadFilter) -> list[Death]:
        return [Death._make(row) for row in await self._filtered("deaths", _asked(wanted))]

    async def count(self, wanted: DeadFilter, cap: int) -> int:
        [row] = await self._filtered("dead_letters_count", _asked(wanted) | {"cap": cap})
        return int(row[0])

    async def groups(self, wanted: DeadFilter) -> list[FailureGroup]:
        asked = _asked(wanted) | {"cap": COUNT_CAP, "now": self._connections.now()}
        asked["reviews"] = asked["reviews"] or [Review.PENDING.value]
        return [FailureGroup._make(row) for row in await self._filtered("failure_groups", asked)]

    async def hours(self, fingerprints: Sequence[str], hours: int) -> dict[str, list[int]]:
        found = {name: [0] * hours for name in fingerprints}
        asked = {
            "groups": list(found),
            "reviews": [one.value for one in Review],
            "hours": hours,
            "cap": COUNT_CAP,
            "now": self._connections.now(),
        }
        for name, ago, jobs in await self._filtered("failure_hours", asked):
            found[name][hours - 1 - ago] = jobs
        return found

    async def trail(self, wanted: AuditFilter) -> list[Audit]:
        return [Audit._make(row) for row in await self._filtered("audit_list", wanted._asdict())]

    async def change(self, change: ReviewChange, audit: Audit) -> Reviewed:
        async def call(connection: Connection, _: bool) -> Reviewed:
            async with connection.transaction():
                row = await self._write(connection, change)
                if row is not None:
                    await self._record(connection, audit)
                    return Reviewed(Landed.APPLIED, change.target, row[0])
            return await self._stands(connection, change)

        return await self._connections.run(call)

    async def reprocess(self, change: ReviewChange, new: NewJob, audits: Sequence[Audit]) -> Reviewed:
        async def call(connection: Connection, _: bool) -> Reviewed:
            async with connection.transaction():
                # Keys first, the dead job second: the order of every enqueue.
                await self._lock_unique(connection, change.job_id, new)
                row = await self._write(connection, change, new.id)
                if row is not None:
                    await self._follow(connection, change.job_id, new)
                    for audit in audits:
                        await self._record(connection, audit)
                    return Reviewed(Landed.APPLIED, change.target, new.id)
            return await self._stands(connection, change)

        return await self._connections.run(call)

    async def _lock_unique(self, connection: Connection, dead: UUID, new: NewJob) -> None:
        if new.unique_key is None:
            return
        # As the dead job would ask for it: what that one holds is no obstacle.
        rival = await self._keys.rival(connection, _asker(new, dead))
        if rival is not None and not await self._is_follower(connection, dead, rival):
            raise NotUnique(new.unique_key, rival)

    async def _is_follower(self, connection: Connection, dead: UUID, rival: UUID) -> bool:
        """Whether the rival is the very job that a click before made of this dead one."""
        row = await (await connection.execute(statement("review_stands"), {"id": dead})).fetchone()
        return row is not None and row[4] == rival

    async def _follow(self, connection: Connection, dead: UUID, new: NewJob) -> None:
        now = self._connections.now()
        names = {"key": new.key, "unique_key": new.unique_key, "dead": dead}
        scope = None if new.unique_key is None else new.unique_scope.value
        values = as_values(new) | names | {"unique_scope": scope, "now": now}
        await connection.execute(statement("inherit_keys"), values)
        if new.unique_key is not None:
            await self._keys.take_key(connection, _asker(new, new.id))
        if new.key is not None:
            await connection.execute(statement("name_follower"), values | {"window": new.key_window})
        await connection.execute(statement("follow_dead"), values)

    async def _write(
        self, connection: Connection, change: ReviewChange, new_job: UUID | None = None
    ) -> tuple[Any, ...] | None:
        parameters = {
            "id": change.job_id,
            "version": change.version,
            "origin": change.origin.value,
            "target": change.target.value,
            "by": storable(change.by),
            "notes": None if change.notes is None else storable(change.notes),
            "new_job": new_job,
            "now": self._connections.now(),
        }
        return await (await connection.execute(statement("review"), parameters)).fetchone()

    async def _stands(self, connection: Connection, change: ReviewChange) -> Reviewed:
        """What became of a dead job whose review did not land."""
        row = await (await connection.execute(statement("review_stands"), {"id": change.job_id})).fetchone()
        if row is None:
            return Reviewed(Landed.FENCED, None)
        version, stands, by, notes, new_job = row
        said = (storable(change.by), None if change.notes is None else storable(change.notes))
        again = (
            version == change.version + 1 and stands == change.target and (by, notes) == said
        ) or stands == change.target == Review.REPROCESSING
        return Reviewed(Landed.ALREADY if again else Landed.FENCED, Review(stands), new_job)

    async def settle(self) -> tuple[int, int]:
        async def look(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            await self._name(connection)
            cursor = await connection.execute(statement("reviews_open"), {"limit": BATCH})
            return await cursor.fetchall()

        rows = await self._connections.run(look)
        moved = 0
        for row in rows:
            moved += await self._settle_one(row)
        return moved, len(rows) - moved

    async def _settle_one(self, row: tuple[Any, ...]) -> int:
        dead, version, correlation, new_job, state, its_version, its_correlation, its_review = row
        verb = reviewing.ended(None if state is None else State(state))
        if verb is None:
            return 0
        why = how_it_went(new_job, None if state is None else State(state))
        target = Review.RESOLVED if verb is ReviewVerb.RESOLVE else Review.PENDING
        changes = [(verb, correlation, ReviewChange(dead, version, Review.REPROCESSING, target, ENGINE, why))]
        if its_review == Review.PENDING:
            told = back_in_review(dead)
            known = ReviewChange(new_job, its_version, Review.PENDING, Review.ACKNOWLEDGED, ENGINE, told)
            changes.append((ReviewVerb.ACKNOWLEDGE, its_correlation, known))

        async def call(connection: Connection, _: bool) -> int:
            async with connection.transaction():
                for place, (its_verb, its_root, change) in enumerate(changes):
                    if await self._write(connection, change) is None:
                        return place  # somebody else was faster; he has told the audit
                    audit = _engine_audit(change, its_verb, its_root)
                    await self._record(connection, audit)
            return 1

        return min(1, await self._connections.run(call))

    async def _name(self, connection: Connection) -> None:
        """Give fingerprints to what died under code that knew of none."""
        rows = await (await connection.execute(statement("unnamed"), {"limit": BATCH})).fetchall()
        if not rows:
            return
        kinds = [(row[0], fingerprint(*row[1:])) for row in rows]
        given = [
            {"id": str(job_id), "fingerprint": kind.value, "error_type": kind.error_type, "frame": kind.frame}
            for job_id, kind in kinds
        ]
        await connection.execute(statement("name_dead"), {"rows": json.dumps(given)})

    async def _record(self, connection: Connection, audit: Audit) -> None:
        await connection.execute(statement("audit"), audited(audit) | {"now": self._connections.now()})

    async def _filtered(self, verb: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            async with connection.transaction():
                # A plan that fits every filter fits none: these are planned for what was asked.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                return await (await connection.execute(statement(verb), parameters, prepare=False)).fetchall()

        return await self._connections.run(call)


def _engine_audit(change: ReviewChange, verb: ReviewVerb, correlation: str) -> Audit:
    return Audit(
        ENGINE,
        reviewing.ACTIONS[verb],
        change.job_id,
        change.notes,
        change.origin.value,
        change.target.value,
        correlation_id=correlation,
    )


def _asked(wanted: DeadFilter) -> dict[str, Any]:
    asked: dict[str, Any] = wanted._asdict()
    asked["reviews"] = [one.value for one in wanted.reviews] or None
    asked["id"] = None
    asked["correlation_uuid"] = _uuid_or_none(wanted.correlation_id)
    return asked


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    return DeadLetter(stored(row[:JOB_FIELDS]), *row[JOB_FIELDS:])


def _asker(new: NewJob, job_id: UUID) -> Asker:
    return Asker(job_id, new.task, new.tenant, new.unique_key, new.unique_scope.value)


def _uuid_or_none(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
