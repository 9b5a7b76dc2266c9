"""Plans that must not flip: a claim takes what it was asked for and no more, whatever the statistics say."""

from __future__ import annotations

import re

import psycopg
import pytest

from build import a_job, a_session, claim, completed
from questions import overheard, scans
from rota.stores.contract import JobFilter, Wanted
from rota.stores.postgres.sqlfiles import statement

FORCED = ("enable_indexscan", "enable_bitmapscan", "enable_seqscan", "enable_hashjoin", "enable_mergejoin")


async def explain(connection, verb: str, parameters: dict) -> str:
    rows = await (await connection.execute("EXPLAIN " + statement(verb), parameters)).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.scenario(2)
@pytest.mark.parametrize("off", [None, *FORCED])
async def test_a_claim_never_takes_more_than_its_limit_under_poisoned_statistics(store, off):
    """ANALYZE saw a table of dead rows only; then the planner is pushed towards every other kind of plan."""
    session = await a_session(store, lease=300)
    await store.enqueue([a_job(priority=number % 3) for number in range(600)])
    await store.settle([completed(job) for job in await claim(store, session, Wanted(600))])
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE rota.jobs")
        await connection.execute(
            "UPDATE pg_class SET reltuples = 0, relpages = 0 WHERE oid = 'rota.jobs'::regclass"
        )
    await store.enqueue([a_job(priority=number % 3) for number in range(300)])
    wanted = Wanted(10)
    claims = store._desks().claims
    await claims.next_due(None)
    plan = claims.plan(wanted, session, 1)

    connection = await store._desks().connections.connect()
    try:
        if off:
            await connection.execute(f"SET {off} = off")
        rows = await (await connection.execute(statement("claim"), plan.parameters)).fetchall()
        locked = await (
            await connection.execute("SELECT count(*) FROM rota.jobs WHERE state = 'running'")
        ).fetchone()
    finally:
        await connection.close()

    assert len(rows) == 10
    assert locked == (10,)


@pytest.mark.parametrize("verb", ["claim", "exchange"])
async def test_a_claim_reads_its_own_index_and_sorts_no_backlog(store, verb):
    session = await a_session(store, lease=300)
    await store.enqueue([a_job() for _ in range(3000)])
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE rota.jobs")
        claims = store._desks().claims
        await claims.refresh(connection)
        parameters = claims.plan(Wanted(10), session, 1).parameters
        settles = {"ids": "{}", "versions": "{}", "results": None}
        text = await explain(connection, verb, parameters | (settles if verb == "exchange" else {}))

    assert "jobs_due" in text
    assert "Seq Scan on jobs" not in text


async def test_settling_goes_by_key_and_not_by_the_index_of_running_jobs(store):
    session = await a_session(store, lease=300)
    await store.enqueue([a_job() for _ in range(20_000)])
    jobs = await claim(store, session, Wanted(100))
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE rota.jobs")
        parameters = {
            "ids": "{" + ",".join(str(job.id) for job in jobs) + "}",
            "versions": "{" + ",".join(str(job.version) for job in jobs) + "}",
            "results": None, "now": None, "queues": [], "priorities": "{}", "floors": [], "floor_ids": "{}",
            "tasks": None, "tenant": None, "limit": 0, "session": session, "claim_no": 1,
        }  # fmt: skip
        text = await explain(connection, "exchange", parameters)

    delete = text[text.index("Delete on") :]
    assert "jobs_pkey" in delete[:400]


@pytest.mark.parametrize("verb", ["beat", "lost", "pairs", "get", "readback", "standing", "heads"])
async def test_nothing_that_runs_all_day_walks_the_whole_table(store, verb):
    session = await a_session(store, lease=300)
    await store.enqueue([a_job() for _ in range(3000)])
    [job] = await claim(store, session, Wanted(1))
    parameters = {
        "session": session, "lease": 15, "ids": "{" + str(job.id) + "}", "versions": "{2}", "memory": None, "now": None,
        "limit": 10, "id": job.id, "queue": "default", "priority": 100, "run_at": job.run_at, "gate": "serial::a",
        "cap": 100,
    }  # fmt: skip
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE")
        text = await explain(connection, verb, parameters)

    assert "Seq Scan on jobs" not in text


@pytest.mark.parametrize("place", ["first", "last"])
async def test_asking_where_a_job_stands_reads_no_more_rows_than_it_counts(store, place):
    """20,000 jobs of one moment, as a bulk leaves them, and as many that are due later."""
    await store.enqueue([a_job(priority=number % 2) for number in range(20_000)])
    await store.enqueue([a_job(priority=number % 2, delay=3600) for number in range(20_000)])
    [job] = await store.find(JobFilter(oldest_first=place == "first", limit=1))
    parameters = {name: getattr(job, name) for name in ("id", "queue", "priority", "run_at", "gate")}
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE rota.jobs")
        rows = await (
            await connection.execute(
                "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) " + statement("standing"),
                parameters | {"now": None, "cap": 100},
            )
        ).fetchall()
    text = "\n".join(row[0] for row in rows)

    assert "Seq Scan on jobs" not in text
    assert all(int(number) < 10 for number in re.findall(r"Rows Removed by .*: (\d+)", text)), text
    pages = re.search(r"Buffers: shared hit=(\d+)(?: read=(\d+))?", text)
    assert pages is not None
    assert sum(int(number or 0) for number in pages.groups()) < 400, text


async def test_numbers_of_an_hour_are_found_by_their_minutes(store):
    """Two weeks of minutes beside them, and a million jobs would make no difference: none is read."""
    connection = await store._desks().connections.connect()
    try:
        await connection.execute(
            "INSERT INTO rota.minutes SELECT date_trunc('minute', now()) - interval '1 minute' * n, "
            "'00000000-0000-0000-0000-000000000000', 'mail', 'send', 'completed', 5, 1, 1, '{1}', '{5}', '{2}', '{5}' "
            "FROM generate_series(0, 20000) AS n"
        )
        await connection.execute("ANALYZE rota.minutes")
    finally:
        await connection.close()

    with overheard() as sent:
        [total] = (await store.figures(3600.0)).totals
        series = await store.series(3600.0, 300.0)
    assert total.jobs in (5 * 60, 5 * 61), "the minute may have ended since the first line"
    assert sum(one.jobs for part in series.slices for one in part.totals) in range(5 * 60, 5 * 66)
    assert {one.custom for one in sent if "rota.minutes" in one.sql} == {True}, (
        "planned once for any stretch of time"
    )
    with psycopg.connect(store.url, autocommit=True) as direct:
        assert [scan for one in sent for scan in scans(direct, one) if scan.table == "minutes"] == []
    assert not any("rota.jobs" in one.sql for one in sent)


async def test_how_deep_queues_were_is_found_by_its_minutes(store):
    with psycopg.connect(store.url, autocommit=True) as direct:
        direct.execute(
            "INSERT INTO rota.depths SELECT date_trunc('minute', now()) - interval '1 minute' * n, q, 5, 1, 0, 2.5 "
            "FROM generate_series(1, 10000) AS n, (VALUES (''), ('mail')) AS queues (q)"
        )
        direct.execute("ANALYZE rota.depths")

        with overheard() as sent:
            found = await store.depths(3600.0, 60.0)
            assert await store.note_depths()
        assert [one.whole.pending for one in found.slices if one.whole] == [5] * 60
        assert [scan for one in sent for scan in scans(direct, one) if scan.table == "depths"] == []
