"""Beside a long history, whatever people ask is answered by an index: the plans that the server really uses, read.

`benchmarks/million.py` prints the milliseconds of the same questions beside a million finished jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

import history
from page_questions import addresses, browser
from questions import VIEWS, Scan, Sent, overheard, questions, scans, some_ids
from rota._core.job import State
from rota.admin import Admin
from rota.stores.contract import JobFilter, Retention
from rota.stores.postgres import PostgresStore
from servers import with_database

SIZE = history.Size(finished=200_000, dead=10_000, waiting=15_000, audit=10_000)
FEW = 1_000
"""A table of so few rows is read as quickly without an index."""
SUMS = ("hours", "tenant_hours")
WEEKS = ("/?range=7d", "/?range=30d")
"""A chart of weeks reads the sums of all hours in it, and that may be all there are."""
COUNTED = {"stats (counts)", "stats, an hour", "stats, a day", "unserved", "top"}
"""They count what is unfinished and what is dead, each up to 100,000."""


@pytest.fixture(scope="module")
def past(cluster, administrator, template) -> Iterator[str]:
    """A database with a history, as it stands some time after its janitor's last round."""
    name = f"past_{uuid4().hex[:12]}"
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    administrator.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
    url = with_database(cluster, name)
    history.fill(url, SIZE)
    yield url
    administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def unwanted(found: list[Scan], name: str) -> list[Scan]:
    """Of these scans, those that would grow with the history.

    The hot table has no index for questions, so a filter reads the backlog; the
    day that is being filled gets two of its indexes when it is over; and who
    counts dead letters reads those that match, which may be most of them.
    """
    today = f"finished_jobs_{datetime.now(UTC):%Y%m%d}"
    counting = name in COUNTED or name.startswith(("rota_lipas", "dlq count"))
    allowed = {"jobs", today} | ({"dead_jobs"} if counting else set())
    return [scan for scan in found if scan.rows >= FEW and scan.table not in allowed]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_no_question_reads_a_table_of_the_past_from_end_to_end(past):
    """Lists, counts, groups, numbers, explanations, the audit and every operator view."""
    store = PostgresStore(past)
    admin = Admin(store, actor="ann")
    wrong: dict[str, list[Scan]] = {}
    with psycopg.connect(past, autocommit=True) as connection:
        for name, question in questions(some_ids(past)).items():
            with overheard() as sent:
                await question(admin)
            assert sent, name
            found = [scan for one in sent for scan in scans(connection, one)]
            if kept := unwanted(found, name):
                wrong[name] = kept
        for name, query in VIEWS.items():
            if kept := unwanted(scans(connection, Sent(query, {}, custom=True)), name):
                wrong[name] = kept
    await store.close()

    assert wrong == {}, "\n".join(f"{name}: {found}" for name, found in wrong.items())


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_no_page_of_the_dashboard_reads_a_table_of_the_past_from_end_to_end(past):
    store = PostgresStore(past)
    wrong: dict[str, list[Scan]] = {}
    with psycopg.connect(past, autocommit=True) as connection:
        async with browser(store) as client:
            for address in addresses(past, some_ids(past)):
                with overheard() as sent:
                    answer = await client.get(address)
                assert answer.status_code in (200, 404), (address, answer.text)
                found = [scan for one in sent for scan in scans(connection, one)]
                summed = SUMS if address in WEEKS else ()
                if kept := [scan for scan in unwanted(found, "top") if scan.table not in summed]:
                    wrong[address] = kept
    await store.close()

    assert wrong == {}, "\n".join(f"{address}: {found}" for address, found in wrong.items())


async def test_a_day_is_born_with_the_indexes_that_cost_a_plain_job_nothing_and_gets_the_others_when_it_is_over(
    fresh_database, clock
):
    store = PostgresStore(fresh_database, clock=clock)

    async def indexes(day: datetime) -> set[str]:
        with psycopg.connect(fresh_database) as connection:
            found = connection.execute(
                "SELECT indexname FROM pg_indexes WHERE tablename = %s", [f"finished_jobs_{day:%Y%m%d}"]
            )
            return {name.partition(f"{day:%Y%m%d}_")[2] for (name,) in found}

    at_birth, later = {"tenant", "tags", "other"}, {"task", "queue"}
    today, tomorrow = clock(), clock() + timedelta(days=1)

    assert await indexes(today) >= at_birth
    assert await indexes(tomorrow) >= at_birth
    await store.tidy(Retention())
    assert not await indexes(today) & later
    clock.advance(86_400)
    await store.tidy(Retention())
    assert await indexes(today) >= at_birth | later
    assert not await indexes(tomorrow) & later
    await store.tidy(Retention())  # nothing is left to do
    await store.close()


def test_who_does_not_own_the_days_leaves_their_indexes_to_the_owner(direct_database, administrator):
    """A worker under the role of an app has a janitor too."""
    role = f"app_{uuid4().hex[:12]}"
    administrator.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    try:
        with psycopg.connect(direct_database, autocommit=True) as connection:
            connection.execute("SELECT rota.open_days(now() - interval '3 days', 0)")
            connection.execute("SELECT rota.grant_to(%s)", [role])
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
            assert connection.execute("SELECT rota.index_days()").fetchone() == (0,)
            connection.execute("RESET ROLE")
            assert connection.execute("SELECT rota.index_days() > 0").fetchone() == (True,)
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
    finally:
        administrator.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.mark.slow
async def test_what_is_asked_beside_a_history_is_also_right(past):
    """The answers of the lists that go by other indexes than before, against a plain look at every row."""
    store = PostgresStore(past)
    admin = Admin(store, actor="ann")
    with psycopg.connect(past, autocommit=True) as connection:
        for wanted, condition in (
            (JobFilter(task=history.RARE), f"task = '{history.RARE}'"),
            (JobFilter(tenant=history.QUIET_TENANT), f"tenant = '{history.QUIET_TENANT}'"),
            (JobFilter(tag="wave-9"), "'wave-9' = ANY (tags)"),
            (
                JobFilter(states=(State.CANCELLED,), queue="mail"),
                "state = 'cancelled' AND queue = 'mail'",
            ),
            (JobFilter(tenant="tenant-7", states=(State.DEAD,)), "tenant = 'tenant-7' AND state = 'dead'"),
        ):
            rows = connection.execute(
                f"SELECT id FROM rota.all_jobs WHERE {condition} ORDER BY id DESC LIMIT 50"
            ).fetchall()
            assert rows, condition
            assert [job.id for job in await admin.list(wanted)] == [row[0] for row in rows]
            oldest = connection.execute(
                f"SELECT id FROM rota.all_jobs WHERE {condition} ORDER BY id LIMIT 50"
            ).fetchall()
            assert [job.id for job in await admin.list(wanted._replace(oldest_first=True))] == [
                row[0] for row in oldest
            ]
    await store.close()


@pytest.mark.slow
async def test_numbers_of_a_day_are_the_same_from_hours_and_from_minutes(past):
    """What lies in whole hours that are added up is read as hours; before the first sum all is read as minutes."""
    store = PostgresStore(past)
    with psycopg.connect(past, autocommit=True) as connection:
        connection.execute("UPDATE rota.hours_until SET until = '-infinity'")
        connection.execute("TRUNCATE rota.hours, rota.tenant_hours, rota.lane_hours")
        by_minutes = [await store.figures(seconds) for seconds in (1800.0, 7_250.0, 86_400.0)]
        await store.roll()
        hours = connection.execute("SELECT count(DISTINCT hour) FROM rota.hours").fetchone()
        by_hours = [await store.figures(seconds) for seconds in (1800.0, 7_250.0, 86_400.0)]
        again = await asyncio.gather(store.roll(), store.roll())
        unchanged = await store.figures(86_400.0)
    await store.close()

    assert hours is not None
    assert hours[0] >= 48
    for before, after in zip(by_minutes, by_hours, strict=True):
        if before.since == after.since:  # no minute has passed between the two
            assert (before.totals, before.tenants, before.lanes) == (after.totals, after.tenants, after.lanes)
    assert again == [0, 0]
    assert unchanged.totals == by_hours[-1].totals or unchanged.since != by_hours[-1].since
