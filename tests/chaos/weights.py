"""How heavy a statement is, in pages that the server has to look at: a measure that a busy machine does not change."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rota.stores.contract import Wanted
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.settle import NOTHING
from rota.stores.postgres.sqlfiles import statement

EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
EMPTY = {"ids": "{}", "versions": "{}", "results": None, "now": None}


async def claim_weight(store: PostgresStore, session: UUID, limit: int) -> tuple[int, int]:
    """What one claim would cost now, as a worker sends it: the jobs that it would get, and the pages it looks at."""
    desk = store._desks()
    async with desk.connections.connection() as connection:
        await desk.claims.refresh(connection)
        plan = desk.claims.plan(Wanted(limit), session, desk.claims.next_no())
        assert plan is not None
        await connection.execute("BEGIN")
        try:
            row = await (
                await connection.execute(EXPLAIN + statement("exchange"), NOTHING | EMPTY | plan.parameters)
            ).fetchone()
        finally:
            await connection.execute("ROLLBACK")
    assert row is not None
    top: dict[str, Any] = row[0][0]["Plan"]
    return top["Actual Rows"], top["Shared Hit Blocks"] + top["Shared Read Blocks"]
