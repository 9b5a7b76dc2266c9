"""What runs, what happened and what takes room, for those who watch; at a cost that does not grow with the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.happening import (
    OVERLAP,
    CodeVersion,
    Happened,
    Happening,
    HappeningFilter,
    Kind,
    Mark,
    PayloadSize,
    Share,
    Stint,
    Stints,
    Work,
    stints_of,
)
from rota._core.room import Room, RoomSample, TableRoom
from rota._core.series import checked, starts
from rota.stores.postgres.migrate import LATEST
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

SOURCES = ("enqueued", "started", "failed", "died", "acted")
SKEW = timedelta(seconds=55)
"""How far the clock of whoever makes ids may be behind, for new jobs to be found by them."""
BACK = 128
"""Blocks that are read again: servers that add rows at once do so at several places, some of them a little earlier."""
REPLICA = "this database is a read-only replica; ask the primary"
ONLY_READS = "this database is set to read only (default_transaction_read_only); ask whoever set it"
AT_MOST = 2048
"""Blocks that one look reads of the days (16 MB); of more, the newest."""


class Watching:
    """The verbs of those who watch, on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def running(self, limit: int) -> list[Work]:
        return [Work._make(row) for row in await self._rows("running", {"limit": limit})]

    async def running_by_tenant(self) -> list[Share]:
        return [Share._make(row) for row in await self._rows("running_by_tenant", {})]

    async def code_versions(self, limit: int) -> list[CodeVersion]:
        return [CodeVersion._make(row) for row in await self._rows("code_versions", {"limit": limit})]

    async def payload_sizes(self, cap: int) -> list[PayloadSize]:
        return [PayloadSize._make(row) for row in await self._rows("payload_sizes", {"cap": cap})]

    async def happened(self, mark: Mark, wanted: HappeningFilter, limit: int) -> Happened:
        since = mark.since - OVERLAP
        asked: dict[str, Any] = wanted._asdict() | {
            "since": since,
            "limit": limit,
            "first": first_id(since - SKEW),
            "now": self._connections.now(),
        }

        async def looked(connection: Connection) -> Happened:
            sizes = await self._look(connection, "day_blocks", asked)
            now, _, today = sizes[0]
            rows: list[tuple[Any, ...]] = []
            more = False
            for source in SOURCES:
                found = await self._look(connection, f"happened_{source}", asked)
                more = more or len(found) >= limit
                rows += found
            days = _days(sizes)
            ended, cut = await self._ended(connection, mark, days, asked)
            more = more or cut or (await self._look(connection, "happened_beyond", asked))[0][0]
            news = [Happening(row[0], Kind(row[1]), *row[2:]) for row in reversed(rows + ended)]
            return Happened(news, Mark(now, today), more)

        async def call(connection: Connection, _: bool) -> Happened:
            async with connection.transaction():
                # Planned for what is asked: connections plan once for all, which fits no filter and no moment.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                return await looked(connection)

        return await self._connections.run(call)

    async def stints(self, session_id: UUID, since: datetime, limit: int) -> Stints:
        asked = {"session": session_id, "since": since, "limit": limit, "now": self._connections.now()}

        async def call(connection: Connection, _: bool) -> Stints:
            async with connection.transaction():
                # Planned for what is asked: see `happened`.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                sizes = await self._look(connection, "day_blocks", asked)
                days = _days(sizes)
                rows = await self._look(connection, "stints_failed", asked)
                ended, cut = await self._ended(connection, Mark(since), days, asked, verb="stints_ended")
                rows += ended + await self._look(connection, "stints_running", asked)
                cut = cut or (await self._look(connection, "stints_beyond", asked))[0][0]
            return stints_of([Stint._make(row) for row in rows], limit, more=cut)

        return await self._connections.run(call)

    async def room(self) -> Room:
        [server] = await self._rows("room", {})
        tables = tuple(TableRoom._make(row) for row in await self._rows("room_tables", {}))
        version, schema, *rest = server
        only_reads = await self.refuses_changes() is not None
        return Room._make(
            ("PostgreSQL", version.partition(" ")[0], schema, LATEST, *rest, only_reads, tables)
        )

    async def note_room(self) -> bool:
        return bool(await self._rows("room_note", {"now": self._connections.now()}))

    async def room_series(self, since: float, step: float) -> list[RoomSample]:
        size = checked(since, step)
        [(now,)] = await self._rows("moment", {"now": self._connections.now()})
        begin = starts(now, since, step)
        rows = await self._rows("room_series", {"start": begin[0], "step": size})
        found = {number: fields for number, *fields in rows}
        return [RoomSample(start, *found.get(number, ())) for number, start in enumerate(begin)]

    async def refuses_changes(self) -> str | None:
        [(replica, only_reads)] = await self._rows("refuses_changes", {})
        return REPLICA if replica else ONLY_READS if only_reads else None

    async def _ended(
        self,
        connection: Connection,
        mark: Mark,
        days: list[tuple[datetime, int]],
        asked: dict[str, Any],
        verb: str = "happened_ended",
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """Jobs that ended, day by day, newest first; and whether some are left out."""
        rows: list[tuple[Any, ...]] = []
        room = AT_MOST
        for day, blocks in days:
            begin = _begin(mark, day, blocks)
            place = max(begin, blocks - room)
            room -= blocks - place
            where = {"day": day, "until": day + timedelta(days=1), "place": f"({place},0)"}
            if place < blocks:
                rows += await self._look(
                    connection, verb, asked | where | {"since": max(asked["since"], day)}
                )
            if len(rows) >= asked["limit"]:
                return rows, True
            if place > begin and await self._left_out(connection, asked["since"], where):
                return rows, True
        return rows, False

    async def _left_out(self, connection: Connection, since: datetime, where: dict[str, Any]) -> bool:
        """Whether the blocks before a place have what is asked for, too."""
        first = await self._look(connection, "ended_at_block", where)
        return not first or first[0][0] >= since

    async def _look(self, connection: Connection, verb: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
        return await (await connection.execute(statement(verb), asked)).fetchall()

    async def _rows(self, verb: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            return await (await connection.execute(statement(verb), parameters)).fetchall()

        return await self._connections.run(call)


def _days(sizes: list[tuple[Any, ...]]) -> list[tuple[datetime, int]]:
    """The days of the tables of finished jobs, newest first, with their blocks."""
    return [(day.astimezone(UTC), blocks) for _, day, blocks in sizes]


def first_id(moment: datetime) -> UUID:
    """The smallest id that is made at this moment or later."""
    return UUID(int=max(0, int(moment.timestamp() * 1000)) << 80)


def _begin(mark: Mark, day: datetime, blocks: int) -> int:
    """The block at which to begin: in the day of the mark, a little before the end as it was at the last look."""
    same_day = day <= mark.since < day + timedelta(days=1)
    return max(0, min(mark.place, blocks) - BACK) if mark.place is not None and same_day else 0
