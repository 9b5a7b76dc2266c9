"""`rota audit list`: who did what, by filter."""

from __future__ import annotations

import json


def test_the_audit_is_listed_by_actor_action_job_and_time(rota, jobs, monkeypatch):
    one, two = jobs.dead(), jobs.dead()
    rota("jobs", "retry", one, "--reason", "mail is back")
    monkeypatch.setenv("ROTA_ACTOR", "bob@office")
    rota("dlq", "discard", two, "--reason", "test data", "--yes")
    said = rota("audit", "list")

    rows = [line.split("\t") for line in said.lines]
    assert [row[1:7] for row in rows] == [
        ["bob@office", "job_dlq_discarded", str(two), "pending_review", "discarded", "test data"],
        ["ann@office", "retry", str(one), "dead", "pending", "mail is back"],
    ]
    for options, count in (
        (("--actor", "bob@office"), 1),
        (("--action", "retry"), 1),
        (("--job", two), 1),
        (("--correlation", two), 1),
        (("--since", "1h"), 2),
        (("--until", "1h"), 0),
        (("--limit", "1"), 1),
    ):
        found = rota("audit", "list", *options)
        assert (len(found.lines), found.code) == (count, 0 if count else 4), options


def test_the_audit_as_json_has_every_column(rota, jobs):
    job_id = jobs.dead(correlation_id="c-1")
    rota("dlq", "ack", job_id, "--reason", "known")
    [record] = json.loads(rota("audit", "list", "--json").out)

    at = record.pop("at")
    assert record == {
        "actor": "ann@office",
        "action": "job_dlq_acknowledged",
        "job_id": str(job_id),
        "reason": "known",
        "before": "pending_review",
        "after": "acknowledged",
        "about": None,
        "correlation_id": "c-1",
        "origin": None,
    }
    assert rota("audit", "list", "--since", at).lines


def test_older_rows_are_pointed_to(rota, jobs):
    ids = [jobs.dead() for _ in range(2)]
    rota("dlq", "ack", *ids, "--reason", "known")

    assert "1 row shown; for older ones: --until 20" in rota("audit", "list", "-n", "1").err


def test_an_empty_audit_says_so(rota, jobs):
    said = rota("audit", "list")

    assert (said.code, said.err) == (4, "Nothing in the audit matches.\n")


def test_a_time_that_is_none_is_told(rota, jobs):
    assert rota("audit", "list", "--since", "yesterday").code == 2


def test_an_audit_in_order_tells_its_head_which_can_be_expected_later(rota, jobs):
    rota("dlq", "ack", jobs.dead(), "--reason", "known")
    said = rota("audit", "verify", "--json")
    found = json.loads(said.out)

    assert (said.code, found["rows"], found["fault"]) == (0, 1, None)
    assert "as it was written" in said.err
    rota("dlq", "ack", jobs.dead(), "--reason", "known")
    assert rota("audit", "verify", "--expect", found["head"]).code == 0


def test_a_head_that_is_not_there_is_a_problem_and_one_that_is_none_a_mistake(rota, jobs):
    said = rota("audit", "verify", "--expect", "0" * 64)

    assert said.code == 1
    assert "The audit was tampered with: the hash 000" in said.err
    wrong = rota("audit", "verify", "--expect", "abc")
    assert wrong.code == 2
    assert "'abc' is no hash of 64 hex digits" in wrong.err
