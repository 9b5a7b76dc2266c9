"""Counting what waits, and reading a log, never walks a whole table, whatever the planner remembers."""

from __future__ import annotations

import pytest

from build import a_job, new_id
from rota._core.job_log import LogTail
from rota.stores.postgres.sqlfiles import statement


@pytest.mark.parametrize("verb", ["backlog", "backlog_by_tenant", "logs"])
async def test_what_is_asked_often_goes_by_an_index(store, verb):
    await store.enqueue([a_job(queue="mail" if number % 50 else "other") for number in range(3000)])
    await store.keep_logs([LogTail(new_id(), 2, 1, (), 1) for _ in range(500)])
    asked = {"queue": "mail", "cap": 100, "id": new_id()}
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE")
        rows = await (await connection.execute("EXPLAIN " + statement(verb), asked)).fetchall()
    plan = "\n".join(row[0] for row in rows)

    assert "Seq Scan" not in plan
    assert ("job_logs_pkey" if verb == "logs" else "jobs_due") in plan
