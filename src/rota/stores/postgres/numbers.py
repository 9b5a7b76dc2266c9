"""Numbers: the minutes that sessions report, and what they make together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.numbers import (
    HOURS_KEPT,
    KEPT,
    MERGED_AFTER,
    OPEN,
    Figures,
    LaneTotal,
    Minute,
    TenantTotal,
    Total,
)
from rota._core.queue import Queue
from rota._core.series import HOUR, Series, Slice, TenantSeries, by_tenant, checked, starts
from rota.stores.numbers_contract import Head
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

SECONDS = 60.0
"""How long each step of a roll may take: it may have much to merge after a long rest."""


class Numbers:
    """The verbs about numbers on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def note(self, session: UUID, minutes: Sequence[Minute]) -> None:
        parameters = {
            "session": session,
            "totals": _json(_totals(minutes)),
            "tenants": _json(
                total._asdict() | {"minute": minute.start.isoformat()}
                for minute in minutes
                for total in minute.tenants
            ),
            "lanes": _json(
                total._asdict() | {"minute": minute.start.isoformat()}
                for minute in minutes
                for total in minute.lanes
            ),
            "open": OPEN,
            "now": self._connections.now(),
        }

        async def call(connection: Connection, _: bool) -> None:
            await connection.execute(statement("note_minutes"), parameters)

        await self._connections.run(call)

    async def roll(self) -> int:
        parameters = {
            "merged_after": MERGED_AFTER,
            "kept": KEPT,
            "hours_kept": HOURS_KEPT,
            "now": self._connections.now(),
        }

        async def call(connection: Connection, _: bool) -> int:
            async with connection.transaction():
                row = await (await connection.execute(statement("roll"), parameters)).fetchone()
                await connection.execute(statement("roll_tenants"), parameters)
                await connection.execute(statement("roll_lanes"), parameters)
                return int(row[0]) if row else 0

        async def drop(connection: Connection, _: bool) -> None:
            await connection.execute(statement("roll_drop"), parameters)

        merged = await self._connections.run(call, seconds=SECONDS)
        # Committed step by step: when one of them fails, what was merged and added up before it stays.
        while await self._sum_hours(parameters):
            pass
        await self._connections.run(drop, seconds=SECONDS)
        return merged

    async def _sum_hours(self, parameters: Mapping[str, Any]) -> bool:
        """Add up some more hours; whether others are left."""

        async def call(connection: Connection, _: bool) -> bool:
            row = await (await connection.execute(statement("sum_hours"), parameters)).fetchone()
            return bool(row and row[0])

        return await self._connections.run(call, seconds=SECONDS)

    async def figures(self, since: float) -> Figures:
        parameters = {"since": timedelta(seconds=since), "kept": KEPT, "now": self._connections.now()}

        async def call(connection: Connection, _: bool) -> Figures:
            async with connection.transaction():
                # Planned for the stretch that is asked for: connections plan once for all otherwise.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                span = await (await connection.execute(statement("figures_span"), parameters)).fetchone()
                assert span is not None
                start, now, whole, summed = span
                asked = {"start": start, "whole": whole, "summed": summed}
                row = await (await connection.execute(statement("figures"), asked)).fetchone()
            assert row is not None
            totals, tenants, lanes = row
            return Figures(
                start,
                now,
                tuple(_total(fields) for fields in totals or ()),
                tuple(TenantTotal(*fields) for fields in tenants or ()),
                tuple(LaneTotal(*fields) for fields in lanes or ()),
            )

        return await self._connections.run(call)

    async def series(
        self, since: float, step: float, *, queue: str | None, task: str | None, apart: bool
    ) -> Series:
        asked = {"queue": queue, "task": task, "apart": apart}

        async def call(connection: Connection, _: bool) -> Series:
            begin, now, [row] = await self._sliced(connection, "series", since, step, asked)
            totals: list[list[Total]] = [[] for _ in begin]
            for number, *fields in row[0] or ():
                if number < len(totals):  # a worker whose clock is ahead may be in the next slice already
                    totals[number].append(_total(fields))
            slices = tuple(Slice(start, tuple(there)) for start, there in zip(begin, totals, strict=True))
            return Series(begin[0], now, step, slices)

        return await self._connections.run(call)

    async def tenant_series(self, since: float, step: float, top: int) -> TenantSeries:
        async def call(connection: Connection, _: bool) -> TenantSeries:
            begin, now, rows = await self._sliced(connection, "tenant_series", since, step, {"top": top})
            return by_tenant(begin, now, step, rows, top)

        return await self._connections.run(call)

    async def _sliced(
        self, connection: Connection, verb: str, since: float, step: float, asked: Mapping[str, Any]
    ) -> tuple[list[datetime], datetime, list[tuple[Any, ...]]]:
        """Where the slices begin, what time it is, and what a statement answers about them."""
        size = checked(since, step)
        async with connection.transaction():
            # Planned for the stretch that is asked for: connections plan once for all otherwise.
            await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            kept = {"hours_kept": HOURS_KEPT, "now": self._connections.now()}
            span = await (await connection.execute(statement("series_span"), kept)).fetchone()
            assert span is not None
            now, summed = span
            begin = starts(now, since, step)
            summed = begin[0] if size % HOUR else max(begin[0], summed)
            where = {"start": begin[0], "summed": summed, "step": size}
            rows = await (await connection.execute(statement(verb), {**asked, **where})).fetchall()
        return begin, now, rows

    async def publish_queues(self, queues: Sequence[Queue]) -> None:
        rows = _json({"name": queue.name, "target": queue.target_seconds} for queue in queues)

        async def call(connection: Connection, _: bool) -> None:
            await connection.execute(statement("publish_queues"), {"queues": rows})

        await self._connections.run(call)

    async def queues(self) -> list[Queue]:
        async def call(connection: Connection, _: bool) -> list[Queue]:
            rows = await (await connection.execute(statement("queues"))).fetchall()
            return [Queue(name, target) for name, target in rows]

        return await self._connections.run(call)

    async def heads(self) -> list[Head]:
        async def call(connection: Connection, _: bool) -> list[Head]:
            rows: Iterable[tuple[str, datetime]] = await (
                await connection.execute(statement("heads"))
            ).fetchall()
            return [Head(queue, oldest) for queue, oldest in rows]

        return await self._connections.run(call)


def _totals(minutes: Sequence[Minute]) -> Iterable[dict[str, Any]]:
    for minute in minutes:
        for total in minute.totals:
            yield {
                **total._asdict(),
                "minute": minute.start.isoformat(),
                "waits": list(total.waits),
                "wait_counts": list(total.waits.values()),
                "runs": list(total.runs),
                "run_counts": list(total.runs.values()),
            }


def _total(fields: Sequence[Any]) -> Total:
    queue, task, ending, jobs, wait_sum, run_sum, waits, runs = fields
    return Total(queue, task, ending, jobs, wait_sum, run_sum, _histogram(waits), _histogram(runs))


def _histogram(stored: Mapping[str, int] | None) -> dict[int, int]:
    return {int(place): count for place, count in (stored or {}).items()}


def _json(rows: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows))
