"""Watching costs the same however long the history is: only what is new is read."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from build import Clock, a_job, a_session, by_hand, claim, completed, failed
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.happening import Happened, HappeningFilter, Mark
from rota.stores.postgres import PostgresStore, watching
from rota.stores.postgres.sqlfiles import statement
from rota.stores.postgres.watching import AT_MOST, BACK, first_id

ALL = HappeningFilter()._asdict()
HISTORY = """
INSERT INTO rota.finished_jobs (id, run_at, created_at, claimed_at, finished_at, version, snoozes, priority, attempt,
    max_attempts, losses, state, task, queue, payload)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || lpad(to_hex(n), 20, '0'))::uuid,
    at, at, at, at, 2, 0, 100, 1, 5, 0, 'completed', 'email', 'default', '{"to": "somebody"}'
FROM generate_series(1, %(rows)s) AS n,
    LATERAL (SELECT %(now)s - (%(rows)s + 60 - n) * interval '1 second' AS at) AS moment
"""


@pytest.fixture
async def past(fresh_database: str, clock: Clock):
    """A store with a day behind it."""
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute(HISTORY, {"rows": 20_000, "now": clock.now})
        connection.execute("ANALYZE rota.finished_jobs")
    store = PostgresStore(fresh_database, clock=clock)
    yield store
    await store.close()


async def plan(store: PostgresStore, verb: str, asked: dict) -> str:
    async with store._desks().connections.connection() as connection:
        rows = await (await connection.execute("EXPLAIN (ANALYZE) " + statement(verb), asked)).fetchall()
    return "\n".join(row[0] for row in rows)


def ends(look: Happened) -> int:
    return sum(one.kind == "completed" for one in look.news)


async def test_ends_are_read_from_the_last_blocks_of_the_day_and_nothing_else_of_it(past, clock: Clock):
    look = await past.happened(Mark(clock.now), HappeningFilter(), limit=10)
    assert look.mark.place > 300
    asked = ALL | {"since": clock.now, "until": clock.now.replace(hour=23), "limit": 10}
    said = await plan(past, "happened_ended", asked | {"place": f"({look.mark.place - 3},0)"})

    assert "Tid Range Scan" in said
    assert "Seq Scan" not in said
    read = [int(line.split()[-1]) for line in said.splitlines() if "Rows Removed by Filter" in line]
    assert sum(read) < 300


async def test_a_first_look_reads_no_more_than_it_may_and_the_next_ones_a_little(past, clock: Clock):
    look = await past.happened(Mark(clock.now), HappeningFilter(), limit=10)

    assert look.mark.place - BACK > 0
    assert AT_MOST * 8192 == 16 * 1024 * 1024
    await past.enqueue([a_job()])
    [job] = await claim(past)
    await past.settle([completed(job)])
    again = await past.happened(look.mark, HappeningFilter(), limit=10)
    assert [one.job_id for one in again.news if one.kind == "completed"] == [job.id]


async def test_a_first_look_that_was_cut_says_so(past, clock: Clock, monkeypatch):
    asked = Mark(clock.now - timedelta(hours=2)), HappeningFilter(queue="default")
    whole = await past.happened(*asked, limit=50_000)
    monkeypatch.setattr(watching, "AT_MOST", 50)
    cut = await past.happened(*asked, limit=50_000)

    assert not whole.more
    assert cut.more
    assert 0 < ends(cut) < ends(whole)
    assert not (await past.happened(Mark(clock.now), HappeningFilter(), limit=50_000)).more, (
        "nothing is left out"
    )


async def test_what_was_not_even_filtered_is_said_to_be_more(past, clock: Clock):
    acme = HappeningFilter(tenant="acme")
    for ending in ("fail", "cancel"):
        clock.advance(60)
        await past.enqueue([a_job() for _ in range(11)])
        assert not (await past.happened(Mark(clock.now), acme, limit=1)).more
        for job in await claim(past):
            if ending == "fail":
                await past.settle([failed(job, ErrorClass.NON_RETRYABLE)])
            else:
                await by_hand(past, job, Verb.CANCEL)
        look = await past.happened(Mark(clock.now), acme, limit=1)
        assert look.more
        assert look.news == []


async def test_new_jobs_are_found_by_their_ids(past, clock: Clock):
    since = clock.now
    said = await plan(
        past, "happened_enqueued", ALL | {"since": since, "first": first_id(since), "limit": 10}
    )

    day = f"finished_jobs_{since:%Y%m%d}"
    assert f"using {day}_id_idx" in said
    assert f"Seq Scan on {day}" not in said


async def test_failures_of_one_worker_below_very_many_of_others_are_said_to_be_left_out(
    fresh_database, clock: Clock
):
    store = PostgresStore(fresh_database, clock=clock)
    try:
        mine, other = await a_session(store, lease=1e6), await a_session(store, lease=1e6)
        await store.enqueue([a_job()])
        [first] = await claim(store, mine)
        since = clock.now
        await store.settle([failed(first, ErrorClass.NON_RETRYABLE, now=clock.now)])
        alone = await store.stints(mine, since, limit=1)
        for _ in range(11):
            clock.advance(1)
            await store.enqueue([a_job()])
            [job] = await claim(store, other)
            await store.settle([failed(job, ErrorClass.NON_RETRYABLE, now=clock.now)])
        below = await store.stints(mine, since, limit=1)
    finally:
        await store.close()

    assert (len(alone.found), alone.more) == (1, False)
    assert (len(below.found), below.more) == (0, True)
