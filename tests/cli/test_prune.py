"""`rota retention` and `rota prune`: policies as data, what would go, the purge itself, and archived jobs shown."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from build import a_running_job, completed
from rota.stores.postgres import PostgresStore

DAY = 86_400.0


@pytest.fixture
def ended(jobs):
    """Jobs that ended so many days ago."""

    def make(days: float, *, times: int = 1, task: str = "greet", **options):
        async def run():
            moment = datetime.now(UTC) - timedelta(days=days)
            store = PostgresStore(jobs.url, clock=lambda: moment)
            made = [await a_running_job(store, task, **options) for _ in range(times)]
            await store.settle([completed(job) for job in made])
            await store.close()
            return [job.id for job in made]

        return asyncio.run(run())

    return make


def test_policies_are_set_listed_and_removed(rota, jobs):
    assert rota("retention", "set", "--state", "completed", "--keep", "30d", "--reason", "support").code == 0
    said = rota("retention", "set", "--tenant", "acme", "--keep", "forever")
    assert "Jobs (tenant=acme) are kept for ever." in said.err
    listed = [line.split("\t") for line in rota("retention", "list").lines]

    assert [row[:3] for row in listed] == [
        ["tenant=acme", "forever", "ann@office"],
        ["state=completed", "2592000", "ann@office"],
        ["state=completed", "604800", "default"],
        ["state=partial", "604800", "default"],
        ["state=cancelled", "604800", "default"],
        ["state=dead", "2592000", "default"],
        ["state=archived", "31536000", "default"],
    ]
    first, second, *_ = json.loads(rota("retention", "list", "--json").out)
    assert (first["tenant"], first["keep"], second["state"], second["reason"]) == (
        "acme",
        None,
        "completed",
        "support",
    )
    assert "Removed: tenant=acme" in rota("retention", "remove", "--tenant", "acme").err
    again = rota("retention", "remove", "--tenant", "acme")
    assert (again.code, again.err.strip()) == (
        4,
        "There is no policy about tenant=acme. `rota retention list` shows what there is.",
    )


def test_a_policy_that_cannot_be_is_wrong_usage(rota, jobs):
    for options in (
        ("--state", "running", "--keep", "1d"),
        ("--state", "archived", "--tenant", "acme", "--keep", "1d"),
        ("--keep", "soon"),
        (),
    ):
        assert rota("retention", "set", *options).code == 2, options


def test_a_dry_run_says_what_would_go_by_policy_and_changes_nothing(rota, jobs, ended):
    [parent, *_] = ended(20, times=3)
    ended(20, task="ping", times=2)
    ended(2)
    jobs.add(parent_id=parent, delay=DAY)
    rota("retention", "set", "--task", "ping", "--keep", "12h")
    said = rota("prune", "--dry-run")

    assert [line.split("\t")[:4] for line in said.lines] == [
        ["task=ping", "completed", "2", "0"],
        ["default", "completed", "2", "1"],
    ]
    assert "4 jobs would go to the archive. Nothing was changed." in said.err
    records = json.loads(rota("prune", "--dry-run", "--json", "--older-than", "1d").out)
    assert [(one["policy"], one["state"], one["jobs"]) for one in records] == [
        ("task=ping", "completed", 2),
        (None, "completed", 3),
    ]
    assert len(json.loads(rota("jobs", "list", "--state", "completed", "--json").out)) == 6


def test_a_purge_asks_first_and_is_audited(rota, jobs, ended):
    [old], [young] = ended(20), ended(2)
    refused = rota("prune")
    assert (refused.code, "add --yes to do it" in refused.err) == (2, True)
    said = rota("prune", "--yes", "--json", "--reason", "disk is full")

    assert json.loads(said.out) == {"archived": 1, "finished": 1, "dead": 0, "busy": False}
    assert "1 job went to the archive" in said.err
    assert [job["id"] for job in json.loads(rota("jobs", "list", "--json").out)] == [str(young)]
    trail = json.loads(rota("audit", "list", "--json").out)
    assert [(row["action"], row["actor"], row["reason"]) for row in trail] == [
        ("pruned", "ann@office", None),
        ("prune", "ann@office", "disk is full"),
    ]
    nothing = rota("prune", "--yes")
    assert (nothing.code, nothing.err.strip()) == (4, "No job is past its time.")
    assert old != young


def test_a_purge_by_hand_leaves_the_turn_to_whoever_has_it(rota, jobs, ended):
    ended(20)

    async def taken(store):
        await store._pruner()._take_turn(uuid4())

    jobs.do(taken)
    said = rota("prune", "--yes")

    assert said.code == 1
    assert "Somebody else purges at the moment" in said.err


def test_an_archived_job_is_shown_as_what_is_left_of_it(rota, jobs, ended):
    [job_id] = ended(20, tenant="acme", correlation_id="c-1")
    rota("prune", "--yes")
    said = rota("jobs", "show", job_id)
    fields = dict(line.split("\t") for line in said.lines)
    record = json.loads(rota("jobs", "show", job_id, "--json").out)

    assert said.code == 0
    assert "It is archived" in said.err
    assert (fields["state"], fields["ended"], fields["tenant"]) == ("archived", "completed", "acme")
    assert (record["id"], record["state"], record["ended"]) == (str(job_id), "archived", "completed")
    assert (record["correlation_id"], record["attempts"], record["ran"]) == ("c-1", 1, 0.0)
    why = rota("jobs", "why", job_id)
    assert (why.code, "was archived at" in why.err) == (4, True)
    retried = rota("jobs", "retry", job_id)
    assert (retried.code, "was archived at" in retried.err) == (4, True)
