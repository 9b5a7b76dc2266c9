"""A search that looks at very many jobs comes to an end, says how to narrow it, and leaves room for others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg
import pytest

from build import a_job
from rota._core.job_filter import ArgumentIs, JobFilter
from rota.stores.postgres import PostgresStore, finding
from rota.stores.postgres.connections import Connections
from rota.stores.search_contract import SearchesBusy, SearchTooWide

SLOW = JobFilter(args=(ArgumentIs(("user", "id"), "7"),))


QUESTIONS = {
    "by argument": lambda store: store.find(SLOW),
    "all": lambda store: store.find(JobFilter()),
    "of a tenant": lambda store: store.find(JobFilter(tenant="blue")),
    "by priority": lambda store: store.find(JobFilter(by_priority=True)),
    "by id": lambda store: store.find(JobFilter(ids=(UUID(int=7),))),
    "counted": lambda store: store.tally("blue", cap=10),
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_whatever_takes_too_long_is_given_up_once_with_what_to_do(
    direct_database, monkeypatch, question
):
    monkeypatch.setattr(finding, "LOOKING_SECONDS", 0.2)
    store = PostgresStore(direct_database)
    await store.enqueue([a_job(payload={"user": {"id": 7}})])
    with (
        locked(direct_database),
        pytest.raises(SearchTooWide, match=r"were looked at for 0\.2 s.* Narrow it by what has an index"),
    ):
        await QUESTIONS[question](store)

    [job] = await store.find(SLOW)
    assert job.payload == {"user": {"id": 7}}
    await store.close()


async def test_many_wide_searches_leave_connections_for_everybody_else(direct_database, monkeypatch):
    monkeypatch.setattr(finding, "LOOKING_SECONDS", 1.0)
    store = PostgresStore(direct_database)
    await store.now()
    with locked(direct_database):
        searches = [asyncio.create_task(store.find(SLOW)) for _ in range(12)]
        await asyncio.sleep(0.3)  # all of them are at work, or wait
        async with asyncio.timeout(0.5):
            await asyncio.gather(*(store.tasks() for _ in range(6)))
        assert not any(search.done() for search in searches)
        ends = await asyncio.gather(*searches, return_exceptions=True)

    assert {type(end) for end in ends} == {SearchTooWide, SearchesBusy}
    assert await store.find(SLOW) == []  # their turns came back
    await store.close()


async def test_a_search_that_waited_for_its_connection_looks_no_longer_than_others(
    direct_database, monkeypatch
):
    monkeypatch.setattr(finding, "LOOKING_SECONDS", 0.5)
    monkeypatch.setitem(Connections.run.__kwdefaults__, "seconds", 0.6)
    take = Connections._take

    async def late(self, pool):
        await asyncio.sleep(0.3)
        return await take(self, pool)

    store = PostgresStore(direct_database)
    await store.find(SLOW)
    monkeypatch.setattr(Connections, "_take", late)
    with locked(direct_database), pytest.raises(SearchTooWide):
        async with asyncio.timeout(
            3
        ):  # repeated from the start, it would end after eight seconds, as a fault
            await store.find(SLOW)
    await store.close()


@contextmanager
def locked(database: str) -> Iterator[None]:
    """Every look at a job takes as long as can be."""
    with psycopg.connect(database) as other:
        other.execute("LOCK TABLE rota.jobs IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("7", '($."a" == 7 || $."a" == "7")'),
        ("null", '($."a" == null || $."a" == "null")'),
        ("1e1000", '($."a" == 1e1000 || $."a" == "1e1000")'),
        ("-1e-1001", '($."a" == "-1e-1001")'),  # more than a server can read as a number
        ('say "hi"', '($."a" == "say \\"hi\\"")'),
    ],
)
def test_arguments_are_one_predicate_in_which_nothing_can_break_out(value, path):
    assert finding.json_path([ArgumentIs(("a",), value)]) == path
    assert finding.json_path([ArgumentIs(('b"] || true', "c"), "x")]) == '($."b\\"] || true"."c" == "x")'
