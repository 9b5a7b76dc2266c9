"""Schedules: published, read, changed, and ticks that become jobs once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from rota._core.actions import Audit, kept
from rota._core.failure import storable
from rota._core.job import State
from rota._core.schedule import (
    ABSENT_AFTER,
    Edits,
    Fate,
    Fired,
    Firing,
    Misfire,
    Origin,
    Overlap,
    Roster,
    ScheduleChange,
    ScheduleRecord,
    ScheduleSpec,
    TickDay,
    TickRecord,
)
from rota.errors import ScheduleError
from rota.stores.postgres import encoding
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from datetime import datetime

    from rota.stores.postgres.connections import Connection, Connections

BULK_SECONDS = 60.0


class Schedules:
    """The schedules' verbs on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def publish(self, specs: Sequence[ScheduleSpec]) -> None:
        if not specs:
            return
        rows = [
            {**spec._asdict(), "template": json.loads(spec.template_json), "windows": list(spec.windows)}
            for spec in specs
        ]
        await self._rows("schedule_publish", {"schedules": json.dumps(rows)}, answers=False)

    async def roster(self, declared: Sequence[str] | None) -> Roster:
        names = None if declared is None else list(declared)

        async def call(connection: Connection, _: bool) -> Roster:
            asked = {"names": names, "now": self._connections.now()}
            if names:
                await connection.execute(statement("schedule_seen"), asked)
            rows = await (await connection.execute(statement("schedule_roster"), asked)).fetchall()
            if rows:
                return Roster(rows[0][0], tuple(_record(row) for row in rows))
            return Roster(self._connections.now() or await _server_time(connection), ())

        return await self._connections.run(call)

    async def fire(self, firing: Firing, audit: Audit | None) -> list[Fired]:
        ticks = ",".join(
            f'{{"tick":"{given.tick.isoformat()}","due":"{given.due.isoformat()}","job":{encoding.as_json([given.job])[1:-1]}}}'
            for given in firing.ticks
        )
        about = {
            "schedule": firing.schedule,
            "origin": firing.origin.value,
            "version": firing.version,
            "cursor": None if firing.cursor is None else firing.cursor.isoformat(),
        }
        parameters = {
            "firing": f'{json.dumps(about)[:-1]},"ticks":[{ticks}]}}',
            "audit": None if audit is None else json.dumps(_audit(audit)),
        }
        try:
            rows = await self._rows("schedule_fire", parameters, seconds=BULK_SECONDS)
        except psycopg.DataError as error:
            reason = " ".join(str(error).split())
            raise ScheduleError(
                f"schedule {firing.schedule!r} cannot tick: PostgreSQL cannot store its job ({reason}). "
                "Correct its arguments in the code, or with `rota schedules edit`."
            ) from error
        return [Fired(tick, Fate(fate), job_id) for tick, fate, job_id in rows]

    async def change(self, change: ScheduleChange, audit: Audit) -> ScheduleRecord | None:
        edits = change.edits
        windows = None if edits.windows is None else list(edits.windows)
        parameters = {
            **edits._asdict(), "windows": windows, "overlap": edits.overlap and edits.overlap.value,
            "misfire": edits.misfire and edits.misfire.value, "name": change.name, "version": change.version,
            "paused": change.paused, "reason": _storable(change.reason), "restart": change.restart,
            "actor": storable(audit.actor), "now": self._connections.now(),
        }  # fmt: skip

        async def call(connection: Connection, repeated: bool) -> ScheduleRecord | None:
            async with connection.transaction():
                row = await (await connection.execute(statement("schedule_change"), parameters)).fetchone()
                if row is None:
                    return await self._changed_before(connection, change, audit) if repeated else None
                told = {**_audit(audit), "now": self._connections.now()}
                await connection.execute(statement("schedule_audit"), told)
                return _record(row)

        return await self._connections.run(call)

    async def _changed_before(
        self, connection: Connection, change: ScheduleChange, audit: Audit
    ) -> ScheduleRecord | None:
        """The schedule, if the last thing that happened to it is this very change: its first answer was lost."""
        asked = {"id": None, "about": audit.about, "limit": 1}
        last = await (await connection.execute(statement("audit_trail"), asked)).fetchone()
        told = _audit(audit)
        if last is None or (last[0], last[1], *last[3:6]) != tuple(
            told[name] for name in ("actor", "action", "reason", "before", "after")
        ):
            return None
        wanted = {"names": [change.name], "now": self._connections.now()}
        row = await (await connection.execute(statement("schedule_roster"), wanted)).fetchone()
        found = None if row is None else _record(row)
        return found if found is not None and found.version == change.version + 1 else None

    async def delete(self, name: str, version: int, audit: Audit) -> bool:
        now = self._connections.now()
        wanted = {"name": name, "version": version, "absent_after": ABSENT_AFTER, "now": now, "names": [name]}

        async def call(connection: Connection, repeated: bool) -> bool:
            async with connection.transaction():
                if await (await connection.execute(statement("schedule_delete"), wanted)).fetchone() is None:
                    left = await (await connection.execute(statement("schedule_roster"), wanted)).fetchone()
                    return repeated and left is None  # the answer to the try before was lost: it is done
                await connection.execute(statement("schedule_forget"), wanted)
                await connection.execute(statement("schedule_audit"), {**_audit(audit), "now": now})
                return True

        return await self._connections.run(call)

    async def ticks(self, schedule: str, limit: int) -> list[TickRecord]:
        rows = await self._rows("schedule_ticks", {"schedule": schedule, "limit": limit})
        return [
            TickRecord(tick, Origin(origin), Fate(fate), job_id, at, None if state is None else State(state))
            for tick, origin, fate, job_id, at, state in rows
        ]

    async def tick_days(self, schedule: str, since: datetime, late: float, limit: int) -> list[TickDay]:
        asked = {"schedule": schedule, "since": since, "late": late, "limit": limit}
        return [
            TickDay(
                day,
                Origin(origin),
                Fate(fate),
                was_late,
                None if state is None else State(state),
                ticks,
                newest,
            )
            for day, origin, fate, was_late, state, ticks, newest in await self._rows("schedule_days", asked)
        ]

    async def _rows(
        self, verb: str, parameters: dict[str, Any], *, answers: bool = True, seconds: float = 10.0
    ) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            asked = parameters | {"now": self._connections.now()}
            cursor = await connection.execute(statement(verb), asked)
            return await cursor.fetchall() if answers else []

        return await self._connections.run(call, seconds=seconds)


def _record(row: tuple[Any, ...]) -> ScheduleRecord:
    """A schedule from the columns of sql/schedule_roster.sql, the moment first."""
    (
        _, name, task, template, timing, tz, jitter, overlap, misfire, cap, grace, windows,
        version, cursor, published_at, seen_at,
        own_timing, own_tz, own_jitter, own_overlap, own_misfire, own_cap, own_grace, own_windows, queue, priority,
        payload, paused_at, paused_by, paused_because, forgotten_until,
    ) = row  # fmt: skip
    spec = ScheduleSpec(
        name,
        task,
        template,
        timing,
        tz,
        jitter,
        Overlap(overlap),
        Misfire(misfire),
        cap,
        grace,
        tuple(windows),
    )
    edits = Edits(
        own_timing,
        own_tz,
        own_jitter,
        None if own_overlap is None else Overlap(own_overlap),
        None if own_misfire is None else Misfire(own_misfire),
        own_cap,
        own_grace,
        None if own_windows is None else tuple(own_windows),
        queue,
        priority,
        payload,
    )
    return ScheduleRecord(
        spec,
        version,
        cursor,
        published_at,
        seen_at,
        edits,
        paused_at,
        paused_by,
        paused_because,
        forgotten_until,
    )


def _audit(audit: Audit) -> dict[str, str | None]:
    told = kept(audit)
    return {
        "actor": told.actor,
        "action": told.action,
        "about": told.about,
        "reason": told.reason,
        "before": told.before,
        "after": told.after,
        "origin": told.origin,
    }


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)


async def _server_time(connection: Connection) -> datetime:
    row = await (await connection.execute("SELECT now()")).fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment
