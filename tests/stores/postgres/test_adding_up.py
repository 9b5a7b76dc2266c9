"""Hours are added up in steps that each come to an end, and what fails undoes nothing that was done before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors as pg

from build import Clock
from rota._core.numbers import Figures
from rota.stores.postgres import PostgresStore

DAY = 86_400.0
MERGED = UUID(int=0)
MINUTES = """
INSERT INTO rota.minutes (minute, session_id, queue, task, ending, jobs, wait_sum, run_sum, waits, wait_counts, runs,
    run_counts)
SELECT %s - interval '10 minutes' * m, %s, 'mail', 'ping', 'completed', 1, 0.5, 0.25, ARRAY[1 + m %% 3]::smallint[],
    ARRAY[1], ARRAY[5]::smallint[], ARRAY[1]
FROM generate_series(60, 432) AS m
"""
"""Three days, a row each ten minutes."""


@pytest.fixture
async def own(fresh_database: str, clock: Clock) -> AsyncIterator[PostgresStore]:
    """A store after three days without a roller, as its numbers are found when the hours are new."""
    store = PostgresStore(fresh_database, clock=clock)
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute(MINUTES, [clock.now, uuid4()])
    yield store
    await store.close()


def until(url: str) -> datetime | None:
    """Up to when the hours are added up; None: not one is."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT nullif(until, '-infinity') FROM rota.hours_until").fetchone()
    assert row is not None
    return None if row[0] is None else row[0].astimezone(UTC)


def answers(figures: Figures) -> tuple[object, ...]:
    return figures.totals, figures.tenants, figures.lanes


async def test_a_long_backlog_of_minutes_is_added_up_six_hours_at_a_time(own, fresh_database, clock):
    before = answers(await own.figures(4 * DAY))
    summing = "SELECT rota.sum_hours(%(now)s - interval '40 minutes', %(now)s - interval '14 days')"
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        steps = [connection.execute(summing, {"now": clock.now}).fetchone() for _ in range(2)]
    oldest = (clock.now - timedelta(days=3)).replace(minute=0, second=0, microsecond=0)

    assert steps == [(True,), (True,)]
    assert until(fresh_database) == oldest + timedelta(hours=12)
    assert answers(await own.figures(4 * DAY)) == before
    await own.roll()
    assert until(fresh_database) == (clock.now - timedelta(minutes=40)).replace(
        minute=0, second=0, microsecond=0
    )
    assert answers(await own.figures(4 * DAY)) == before


async def test_hours_that_cannot_be_added_up_undo_neither_the_merge_nor_the_hours_before_them(
    own, fresh_database, clock
):
    before = answers(await own.figures(4 * DAY))
    wall = clock.now - timedelta(days=1)
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE rota.hours ADD CONSTRAINT wall CHECK (hour < '{wall.isoformat()}')")
        with pytest.raises(pg.CheckViolation, match="wall"):
            await own.roll()
        sessions = connection.execute("SELECT DISTINCT session_id FROM rota.minutes").fetchall()
        stopped = until(fresh_database)
        assert sessions == [(MERGED,)]
        assert stopped is not None
        assert wall - timedelta(hours=6) <= stopped <= wall
        assert answers(await own.figures(4 * DAY)) == before

        connection.execute("ALTER TABLE rota.hours DROP CONSTRAINT wall")
        await own.roll()

    assert until(fresh_database) > wall
    assert answers(await own.figures(4 * DAY)) == before
