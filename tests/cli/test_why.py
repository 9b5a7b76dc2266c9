"""`rota jobs why`: the answer that a tired operator reads at night."""

from __future__ import annotations

import json

from build import new_id
from rota.cli import exits


def test_it_says_why_and_what_to_type(rota, jobs):
    job_id = jobs.add("greet", delay=300.0)

    said = rota("jobs", "why", job_id)
    assert said.code == exits.DONE
    first, command, also, start = said.lines
    assert first.startswith("It is scheduled for ")
    assert command == f"  rota jobs retry {job_id}"
    assert also == "Also: No worker is alive. Start one:"
    assert start == "  rota worker APP"


def test_the_command_it_names_unblocks_the_job(rota, jobs):
    job_id = jobs.add("greet", held=True)
    command = json.loads(rota("jobs", "why", job_id, "--json").out)["command"]

    assert rota(*command.split()[1:]).code == exits.DONE
    assert json.loads(rota("jobs", "why", job_id, "--json").out)["cause"] == "no_worker"


def test_scripts_get_the_cause_in_one_word(rota, jobs):
    job_id = jobs.dead("greet", "no such address")

    said = json.loads(rota("jobs", "why", job_id, "--json").out)
    assert (said["job_id"], said["state"], said["cause"]) == (str(job_id), "dead", "ended")
    assert "no such address" in said["why"]
    assert said["also"] == []


def test_a_failure_is_told_with_the_type_of_its_exception(rota, jobs):
    job_id = jobs.dead("greet", "'id'")

    assert "(non_retryable: ValueError: 'id')" in rota("jobs", "why", job_id).out
    assert "error\tValueError: 'id'\n" in rota("jobs", "show", job_id).out


def test_stored_text_cannot_steer_the_terminal(rota, jobs):
    job_id = jobs.dead("greet", "\x1b[31mred\x1b[0m")

    assert "\x1b" not in rota("jobs", "why", job_id).out


def test_a_job_that_is_not_there_is_exit_code_4(rota, jobs):
    assert rota("jobs", "why", new_id()).code == exits.NOTHING
