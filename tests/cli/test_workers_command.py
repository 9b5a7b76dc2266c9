"""`rota workers`: who is at work, how full, and who stopped without a word."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest

from build import a_session
from rota.stores.contract import SessionStart


def opened(jobs, host: str = "web-1", pid: int = 7, *, hears: bool = True) -> UUID:
    """A living worker's session."""
    start = SessionStart(uuid4(), host, pid, {"general": 5}, ("greet",), memory=80_000_000, hears=hears)
    jobs.do(lambda store: store.open_session(start, lease=600.0))
    return start.id


def test_workers_are_listed_with_how_full_they_are_and_what_they_serve(rota, jobs):
    jobs.run("greet")

    said = rota("workers")
    [line] = [line.split("\t") for line in said.lines]

    assert (line[2], line[3]) == ("alive", "1")
    assert said.code == 0
    [record] = json.loads(rota("workers", "list", "--json").out)
    assert (record["state"], record["used"]) == ("alive", 1)
    assert record["slots"] == sum(record["lanes"].values())


def test_without_any_it_says_how_to_start_one(rota, jobs):
    said = rota("workers")

    assert (said.code, said.out) == (4, "")
    assert said.err == "No worker is running. Start one: rota worker APP\n"


def test_one_that_stopped_beating_is_named_and_shown_on_request(rota, jobs):
    jobs.do(lambda store: a_session(store, lease=-60))

    said = rota("workers")
    assert said.code == 4
    assert "1 worker stopped beating lately; --all shows it too." in said.err
    assert "\tlost\t" in rota("workers", "list", "--all").out


def test_one_is_shown_with_its_memory_and_what_was_asked_of_it(rota, jobs):
    worker = opened(jobs)
    rota("workers", "drain", str(worker), "--reason", "deploy", "--yes")

    said = rota("workers", "show", str(worker))

    assert "memory\t80000000" in said.lines
    assert "asked\tto drain by ann@office, " in said.out
    record = json.loads(rota("workers", "show", str(worker), "--json").out)
    assert (record["state"], record["memory"], record["order"]["reason"]) == (
        "draining",
        80_000_000,
        "deploy",
    )


def test_a_worker_is_drained_then_stopped(rota, jobs):
    worker = opened(jobs)

    drained = rota("workers", "drain", str(worker), "--yes")
    stopped = rota("workers", "stop", str(worker), "--yes", "--json")

    assert (drained.code, drained.err) == (0, "web-1:7 is draining.\n")
    assert drained.lines == [f"{worker}\tweb-1\t7\talive\tdraining"]
    [record] = json.loads(stopped.out)
    assert (stopped.code, record["state"], record["order"]["verb"]) == (0, "stopping", "stop")
    assert "\tdrain\t" in rota("audit", "list", "--about", f"worker:{worker}").out


def test_all_of_a_host_or_all_at_all_and_one_that_refuses_stops_no_other(rota, jobs):
    here, old, there = opened(jobs), opened(jobs, pid=8, hears=False), opened(jobs, "web-2")

    said = rota("workers", "drain", "--host", "web-1", "--yes")

    assert said.code == 1
    assert "worker web-1:8 cannot be asked to drain: it does not answer orders" in said.err
    states = {row["session"]: row["state"] for row in json.loads(rota("workers", "list", "--json").out)}
    assert states == {str(here): "draining", str(old): "alive", str(there): "alive"}
    assert "web-2:7 is stopping." in rota("workers", "stop", "--all", "--yes").err
    assert rota("workers", "drain", "--host", "web-9", "--yes").code == 4


def test_nobody_is_asked_by_mistake(rota, jobs):
    worker = opened(jobs)

    unsaid = rota("workers", "drain")
    unasked = rota("workers", "drain", "--all")
    tried = rota("workers", "drain", "--all", "--dry-run")
    unknown = rota("workers", "stop", str(uuid4()), "--yes")

    assert (unsaid.code, "ids from `rota workers`, --host HOST or --all" in unsaid.err) == (2, True)
    assert (unasked.code, "add --yes" in unasked.err) == (2, True)
    assert (tried.code, tried.err) == (0, "Would drain web-1:7.\n")
    assert (unknown.code, "no worker has the id" in unknown.err) == (4, True)
    [record] = json.loads(rota("workers", "list", "--json").out)
    assert (record["session"], record["order"]) == (str(worker), None)


@pytest.mark.parametrize("verb", ["show", "drain", "stop"])
def test_what_is_no_id_is_answered_with_where_ids_are(rota, jobs, verb):
    said = rota("workers", verb, "web-1")

    assert said.code == 2
    assert "'web-1' is no worker's id. `rota workers` has them." in said.err
