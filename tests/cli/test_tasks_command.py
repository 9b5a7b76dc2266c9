"""`rota tasks`: what is known, what is parked, and the way back."""

from __future__ import annotations

import json

import pytest

from build import new_id
from rota._core.outcome import Parked, decide
from rota._core.retry import Retry
from rota._core.suspects import Crash
from rota._core.task_spec import TaskSpec


@pytest.fixture
def parked(jobs):
    """A task that is parked, with a job that waits for it."""
    jobs.publish(TaskSpec("resize", queue="images", timeout=90.0, code_version="v7"), TaskSpec("greet"))
    jobs.do(lambda store: store.note_crash(Crash("resize", "v7", new_id(), 2, "SIGSEGV"), limit=1, within=60))
    job = jobs.run("resize")
    [reason] = [row.reason for row in jobs.do(lambda store: store.parked_tasks())]
    jobs.do(lambda store: store.settle([decide(job, Parked(reason), retry=Retry(), now=job.updated_at)]))
    return job.id


def test_tasks_are_listed_with_what_the_store_knows_of_them(rota, jobs, parked):
    said = rota("tasks", "list")

    assert [line.split("\t") for line in said.lines] == [
        ["greet", "active", "default", "100", "5", "", ""],
        ["resize", "parked", "images", "100", "5", "1m 30s", "v7"],
    ]
    assert "resize: parked now: 1 job killed their process under code version v7" in said.err
    assert "`rota tasks release resize`" in said.err


def test_only_the_parked_can_be_asked_for(rota, jobs, parked):
    [record] = json.loads(rota("tasks", "list", "--parked", "--json").out)

    assert (record["task"], record["status"], record["parked"][0]["what"]) == ("resize", "parked", "SIGSEGV")


def test_a_task_is_released_and_its_jobs_go_back_on_the_list(rota, jobs, parked):
    shown = rota("jobs", "show", parked).out
    assert "`rota tasks release resize`" in shown
    said = rota("tasks", "release", "resize", "--reason", "the library is fixed")

    assert (said.code, said.err) == (0, "The task resize is released; 1 job went back on the list.\n")
    assert jobs.get(parked).parked is None
    assert rota("tasks", "list", "--parked").code == 4
    [audit] = jobs.do(lambda store: store.audit(about="task:resize"))
    assert (audit.actor, audit.before, audit.reason) == ("ann@office", "parked (v7)", "the library is fixed")


def test_a_task_that_is_not_parked_is_not_released(rota, jobs, parked):
    assert "the task 'greet' is not parked; parked are resize." in rota("tasks", "release", "greet").err
    said = rota("tasks", "release", "resise")

    assert (said.code, "did you mean 'resize'?" in said.err) == (4, True)
    assert rota("tasks", "release", "resize", "--json").out == '{\n  "task": "resize",\n  "jobs": 1\n}\n'
    assert "no task is parked" in rota("tasks", "release", "resize").err


def test_an_empty_store_has_no_tasks(rota, jobs):
    said = rota("tasks", "list")

    assert (said.code, said.err) == (4, "No task is known. A worker makes its tasks known.\n")
    assert rota("tasks", "list", "--parked").err == "No task is parked.\n"


def test_the_doctor_names_a_parked_task_and_the_cure(rota, jobs, parked):
    [finding] = [found for found in json.loads(rota("doctor", "--json").out) if "parked" in found["what"]]

    assert finding["level"] == "warn"
    assert finding["fix"] == "Deploy a repaired version, or `rota tasks release resize`."
