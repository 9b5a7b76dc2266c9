"""The day that pages are tried with has everything in it that pages show."""

from __future__ import annotations

import re

import psycopg
import pytest

from rota._core.dead_letter import DeadFilter
from rota.admin import Admin
from rota.stores.postgres import PostgresStore


@pytest.fixture
async def admin(lively_database):
    store = PostgresStore(lively_database)
    yield Admin(store, actor="tests")
    await store.close()


async def test_jobs_are_in_every_state_but_blocked(admin, lively_database):
    with psycopg.connect(lively_database) as connection:
        found = {state for (state,) in connection.execute("SELECT DISTINCT state FROM rota.all_jobs")}
        reviews = {review for (review,) in connection.execute("SELECT DISTINCT review FROM rota.dead_jobs")}
        parked = {why for (why,) in connection.execute("SELECT DISTINCT parked FROM rota.jobs")}

    assert found == {"pending", "held", "running", "completed", "partial", "dead", "cancelled"}
    assert reviews >= {"pending_review", "acknowledged", "discarded"}
    assert parked == {None, "gate", "task"}


async def test_workers_live_and_a_queue_that_nobody_serves_is_noticed(admin):
    assert sorted(worker.host for worker in await admin.living()) == ["worker-1", "worker-2", "worker-3"]
    assert "fax" in str((await admin.picture()).alerts)


async def test_failures_have_groups_with_readable_traces_and_no_path_of_this_machine(admin):
    groups = await admin.failures(DeadFilter())
    view = await admin.failure(groups[0].fingerprint)

    assert len(groups) >= 5
    assert 'File "/srv/shop/jobs.py", line' in view.stack
    assert re.search(r"\n    \w", view.stack)  # with the lines of its code
    assert "seeding" not in view.stack


async def test_the_numbers_of_the_last_day_have_a_shape(admin):
    chart = await admin.series(since=86_400)

    assert sum(point.completed for point in chart.points) > 1000
    assert {point.completed for point in chart.points if point.dead} != {0}


async def test_people_have_done_something_today(admin):
    assert len(await admin.operations()) == 2
    assert {schedule.paused_by for schedule in (await admin.schedules()).schedules} == {
        None,
        "jana@shop.example",
    }
    assert len(await admin.tokens()) == 2
