"""What runs, what happened and what takes room, for those who watch; at a cost that does not grow with the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.happening import (
    OVERLAP,
    Happened,
    Happening,
    HappeningFilter,
    Kind,
    Mark,
    PayloadSize,
    Work,
)
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

SOURCES = ("enqueued", "started", "failed", "died", "acted")
SKEW = timedelta(seconds=55)
"""How far the clock of whoever makes ids may be behind, for new jobs to be found by them."""
BACK = 128
"""Blocks that are read again: servers that add rows at once do so at several places, some of them a little earlier."""
AT_MOST = 2048
"""Blocks that one look reads (16 MB); of more, the newest."""


class Watching:
    """The verbs of those who watch, on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def running(self, limit: int) -> list[Work]:
        return [Work._make(row) for row in await self._rows("running", {"limit": limit})]

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
            sized = await (await connection.execute(statement("day_blocks"), asked)).fetchone()
            assert sized is not None
            now, today, before = sized
            rows: list[tuple[Any, ...]] = []
            more = False
            for source in SOURCES:
                found = await self._look(connection, f"happened_{source}", asked)
                more = more or len(found) >= limit
                rows += found
            for day, blocks in _days(since, now, today, before):
                place = _begin(mark, blocks, same_day=_day(mark.since) == _day(now))
                more = more or (mark.place is not None and place > max(0, mark.place - BACK))
                range_ = {"since": max(since, day), "until": day + timedelta(days=1), "place": f"({place},0)"}
                found = await self._look(connection, "happened_ended", asked | range_)
                more = more or len(found) >= limit
                rows += found
            news = [Happening(row[0], Kind(row[1]), *row[2:]) for row in rows]
            return Happened(news, Mark(now, today or 0), more)

        async def call(connection: Connection, _: bool) -> Happened:
            async with connection.transaction():
                # Planned for what is asked: connections plan once for all, which fits no filter and no moment.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                return await looked(connection)

        return await self._connections.run(call)

    async def _look(self, connection: Connection, verb: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
        return await (await connection.execute(statement(verb), asked)).fetchall()

    async def _rows(self, verb: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            return await (await connection.execute(statement(verb), parameters)).fetchall()

        return await self._connections.run(call)


def first_id(moment: datetime) -> UUID:
    """The smallest id that is made at this moment or later."""
    return UUID(int=max(0, int(moment.timestamp() * 1000)) << 80)


def _day(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _days(
    since: datetime, now: datetime, today: int | None, before: int | None
) -> list[tuple[datetime, int]]:
    """The days that a look reaches into, each with the size of its table: today, and past midnight the one before."""
    days = [] if _day(since) == _day(now) or before is None else [(_day(since), before)]
    return days if today is None else [*days, (_day(now), today)]


def _begin(mark: Mark, blocks: int, *, same_day: bool) -> int:
    """The block at which to begin: a little before the end as it was at the last look."""
    newest = max(0, blocks - AT_MOST)
    if mark.place is None or not same_day:
        return newest
    return max(newest, min(mark.place, blocks) - BACK, 0)
