"""How deep the queues are, minute by minute: looked at once, whoever works, and kept for charts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rota._core.depths import WHOLE, Depth, Depths, DepthSlice, sampled
from rota._core.numbers import HOURS_KEPT
from rota._core.series import checked, starts
from rota.stores.postgres.reads import COUNT_CAP
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections


class Sampler:
    """The verbs about depths on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def note(self) -> bool:
        async def call(connection: Connection, _: bool) -> bool:
            now = {"now": self._connections.now()}
            async with connection.transaction():
                turn = await (await connection.execute(statement("depth_turn"), now)).fetchone()
                assert turn is not None
                minute, moment, mine = turn
                if not mine:
                    return False
                counted = await connection.execute(statement("counts"), {"cap": COUNT_CAP})
                counts = [
                    (queue, state, jobs, retrying)
                    for queue, _, state, jobs, _, retrying in await counted.fetchall()
                ]
                heads = await (await connection.execute(statement("heads"))).fetchall()
                depths = sampled(counts, heads, moment)
                rows = [{"queue": queue, **depth._asdict()} for queue, depth in depths.items()]
                asked = {"minute": minute, "depths": json.dumps(rows)}
                noted = await connection.execute(statement("depth_note"), asked)
                return await noted.fetchone() is not None

        return await self._connections.run(call)

    async def read(self, since: float, step: float) -> Depths:
        size = checked(since, step)

        async def call(connection: Connection, _: bool) -> Depths:
            async with connection.transaction():
                # Planned for the stretch that is asked for: connections plan once for all otherwise.
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
                asked: dict[str, Any] = {"hours_kept": HOURS_KEPT, "now": self._connections.now()}
                span = await (await connection.execute(statement("series_span"), asked)).fetchone()
                assert span is not None
                begin = starts(span[0], since, step)
                asked = {"start": begin[0], "step": size}
                rows = await (await connection.execute(statement("depths"), asked)).fetchall()
            found: list[dict[str, Depth]] = [{} for _ in begin]
            for number, queue, *fields in rows:
                if number < len(found):
                    found[number][queue] = Depth(*fields)
            slices = (
                DepthSlice(start, there.pop(WHOLE, None), there)
                for start, there in zip(begin, found, strict=True)
            )
            return Depths(begin[0], span[0], step, tuple(slices))

        return await self._connections.run(call)
