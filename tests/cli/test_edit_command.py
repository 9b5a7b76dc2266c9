"""`rota jobs edit`: another argument, priority, queue or time, before a job starts."""

from __future__ import annotations

import json

import pytest

from rota._core.task_spec import TaskSpec

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "times": {"type": "integer"}}}


@pytest.fixture
def waiting(jobs):
    jobs.publish(TaskSpec("greet", schema_json=json.dumps(SCHEMA)))
    return jobs.add("greet", payload={"name": "Ann", "times": 1})


def test_arguments_that_are_named_change_and_the_others_stay(rota, jobs, waiting):
    said = rota("jobs", "edit", waiting, "name=7", "times=3", "--priority", "10", "--reason", "a typo")

    job = jobs.get(waiting)
    assert (job.payload, job.priority) == ({"name": "7", "times": 3}, 10)
    assert said.err == f"Edited greet {job.id}: name, times, priority.\n"
    [row] = json.loads(rota("audit", "list", "--json").out)
    assert (row["action"], row["reason"]) == ("edit", "a typo")


def test_a_job_moves_to_another_queue_and_a_later_time(rota, jobs, waiting):
    before = jobs.get(waiting).run_at
    told = json.loads(rota("jobs", "edit", waiting, "--queue", "slow", "--in", "2h", "--json").out)

    assert told["queue"] == jobs.get(waiting).queue == "slow"
    assert (jobs.get(waiting).run_at - before).total_seconds() > 7000


def test_an_edit_of_nothing_and_two_times_are_refused(rota, jobs, waiting):
    nothing = rota("jobs", "edit", waiting)
    assert (nothing.code, "nothing is to be edited" in nothing.err) == (2, True)

    both = rota("jobs", "edit", waiting, "--in", "1h", "--at", "2030-01-01T00:00")
    assert (both.code, "a job becomes due once" in both.err) == (2, True)


def test_a_job_that_runs_is_not_edited(rota, jobs):
    running = jobs.run("greet")

    said = rota("jobs", "edit", running.id, "--priority", "1")
    assert said.code == 1
    assert "Only a job that waits or is held can be edited" in said.err
