"""A search that looks at jobs one by one comes to an end, and says how to narrow it."""

from __future__ import annotations

import psycopg
import pytest

from build import a_job
from rota._core.job_filter import ArgumentIs, JobFilter
from rota.stores.postgres import PostgresStore, finding
from rota.stores.search_contract import SearchTooWide

SLOW = JobFilter(args=(ArgumentIs(("user", "id"), "7"),))


async def test_a_search_that_takes_too_long_is_given_up_once_with_what_to_do(direct_database, monkeypatch):
    monkeypatch.setattr(finding, "LOOKING_SECONDS", 0.2)
    store = PostgresStore(direct_database)
    await store.enqueue([a_job(payload={"user": {"id": 7}})])
    with psycopg.connect(direct_database) as other:
        other.execute("LOCK TABLE rota.jobs IN ACCESS EXCLUSIVE MODE")  # as slow as can be
        with pytest.raises(
            SearchTooWide, match=r"has looked at jobs for 0\.2 s .* Narrow it by what has an index"
        ):
            await store.find(SLOW)

    [job] = await store.find(SLOW)
    assert job.payload == {"user": {"id": 7}}
    await store.close()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("7", '($."a" == 7 || $."a" == "7")'),
        ("null", '($."a" == null || $."a" == "null")'),
        ('say "hi"', '($."a" == "say \\"hi\\"")'),
    ],
)
def test_arguments_are_one_predicate_in_which_nothing_can_break_out(value, path):
    assert finding.json_path([ArgumentIs(("a",), value)]) == path
    assert finding.json_path([ArgumentIs(('b"] || true', "c"), "x")]) == '($."b\\"] || true"."c" == "x")'
