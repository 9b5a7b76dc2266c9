"""`rota jobs retry|cancel|hold|release|fail|kill|delete`: by id and by filter, asked and unasked."""

from __future__ import annotations

import json
import os
import sys
from uuid import UUID

import pexpect
import pytest

from build import handed_back
from rota._core.job import State

NOBODY = UUID(int=1)


def actors(jobs, job_id):
    return [(row.actor, row.action, row.reason) for row in jobs.do(lambda store: store.audit(job_id))]


def test_a_dead_job_is_retried_under_the_name_of_who_typed_it(rota, jobs):
    job_id = jobs.dead()

    said = rota("jobs", "retry", job_id, "--reason", "server is back")

    assert (said.code, said.out) == (0, f"{job_id}\tretry\tdead\tpending\n")
    assert said.err == f"{job_id} is pending in queue 'default' and due now.\n"
    assert jobs.get(job_id).state is State.PENDING
    assert actors(jobs, job_id) == [("ann@office", "retry", "server is back")]


def test_an_action_as_json_is_a_list_of_what_was_done(rota, jobs):
    job_id = jobs.add()

    said = rota("jobs", "hold", job_id, "--json")

    assert json.loads(said.out) == [
        {"id": str(job_id), "did": "hold", "from": "pending", "to": "held", "dry_run": False}
    ]


def test_cancelling_a_running_job_says_that_its_worker_was_asked(rota, jobs):
    job = jobs.run()

    said = rota("jobs", "cancel", job.id)

    assert said.code == 0
    assert said.err == (
        f"{job.id} is running: its worker was asked to stop it. --force ends it if the worker does not.\n"
    )
    assert jobs.get(job.id).cancel_requested_at is not None


def test_a_forced_cancel_needs_a_yes_and_ends_the_job_after_the_grace(rota, jobs):
    job = jobs.run()

    unasked = rota("jobs", "cancel", job.id, "--force", "--grace", "0s")
    forced = rota("jobs", "cancel", job.id, "--force", "--grace", "0.3s", "--yes")

    assert unasked.code == 2
    assert (forced.code, jobs.get(job.id).state) == (0, State.CANCELLED)


@pytest.mark.req("L15")
def test_a_running_job_is_failed_with_or_without_another_attempt(rota, jobs):
    again, last = jobs.run(), jobs.run()

    first = rota("jobs", "fail", again.id, "--reason", "hangs")
    second = rota("jobs", "fail", last.id, "--no-retry")

    assert first.err == f"{again.id}: attempt 1 of 5 was failed; it will be retried.\n"
    assert second.err == f"{last.id}: attempt 1 of 5 was failed; the job is dead.\n"
    assert (jobs.get(again.id).state, jobs.get(last.id).state) == (State.PENDING, State.DEAD)


@pytest.mark.parametrize("verb", ["kill", "delete"])
def test_what_cannot_be_undone_needs_a_yes_where_nobody_can_be_asked(rota, jobs, verb):
    job_id = jobs.add()

    refused = rota("jobs", verb, job_id)
    between = jobs.get(job_id).state
    done = rota("jobs", verb, job_id, "--yes")

    assert refused.code == 2
    assert refused.err == (
        f"rota: {verb.capitalize()} job {job_id}? Nobody can answer that here: "
        "add --yes to do it, or --dry-run to see what it would do.\n"
    )
    assert (between, done.code) == (State.PENDING, 0)


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("n", 1)])
def test_on_a_terminal_a_person_is_asked(jobs, answer, left):
    job_id = jobs.add()
    child = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", "jobs", "delete", str(job_id)],
        env=dict(os.environ),
        encoding="utf-8",
        timeout=30,
    )

    child.expect(rf"Delete job {job_id}\? \[y/N\]")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()

    assert len(jobs.do(lambda store: store.get([job_id]))) == left
    assert child.exitstatus == (0 if answer == "y" else 130)


@pytest.mark.parametrize("verb", ["retry", "cancel", "kill", "delete"])
def test_a_dry_run_says_what_would_happen_and_changes_nothing(rota, jobs, verb):
    job_id = jobs.add()
    before = jobs.get(job_id)

    said = rota("jobs", verb, job_id, "--dry-run")

    assert said.code == 0
    assert said.err.startswith(f"Would: {verb} {job_id}: pending -> ")
    assert jobs.get(job_id) == before
    assert actors(jobs, job_id) == []


def test_a_refused_action_says_why_and_what_to_do_instead(rota, jobs):
    job_id = jobs.add()

    said = rota("jobs", "release", job_id)

    assert (said.code, said.out) == (1, "")
    assert said.err == f"rota: cannot release job {job_id}: it is pending. Only a held job can be released.\n"


def test_one_id_that_fails_does_not_stop_the_others(rota, jobs):
    first, second = jobs.add(times=2)

    said = rota("jobs", "hold", first, NOBODY, second)

    assert said.code == 1
    assert {line.split("\t")[0] for line in said.lines} == {str(first), str(second)}
    assert f"no job has the id {NOBODY}" in said.err


def test_only_unknown_ids_are_exit_4(rota, jobs):
    assert rota("jobs", "retry", NOBODY).code == 4


@pytest.mark.parametrize("verb", ["retry", "kill"])
def test_an_action_without_a_target_says_how_to_name_one(rota, jobs, verb):
    said = rota("jobs", verb)

    assert said.code == 2
    by_filter = ", a filter such as --task NAME, or --all" if verb == "retry" else ""
    assert f"say which job to {verb}: an id{by_filter}." in said.err


def test_ids_and_a_filter_together_are_refused(rota, jobs):
    said = rota("jobs", "retry", NOBODY, "--task", "greet")

    assert said.code == 2
    assert "give ids or a filter, not both." in said.err


def test_a_filter_acts_on_all_that_match_and_on_nothing_else(rota, jobs):
    mails = [jobs.dead("greet") for _ in range(3)]
    other = jobs.dead("report")

    said = rota("jobs", "retry", "--task", "greet", "--yes", "--reason", "back")

    assert (said.code, said.out, said.err) == (0, "3\t0\t0\t0\n", "retry: 3 jobs done.\n")
    assert {jobs.get(job_id).state for job_id in mails} == {State.PENDING}
    assert jobs.get(other).state is State.DEAD


def test_a_filter_needs_a_yes_even_for_what_can_be_undone(rota, jobs):
    jobs.add(times=2)

    said = rota("jobs", "hold", "--task", "greet")

    assert said.code == 2
    assert said.err.startswith("rota: Hold 2 jobs? Nobody can answer that here")


def test_a_dry_run_by_filter_counts(rota, jobs):
    jobs.add(times=4)

    plain = rota("jobs", "cancel", "--all", "--dry-run")
    limited = rota("jobs", "cancel", "--all", "--dry-run", "--limit", 3, "--json")

    assert (plain.code, plain.out, plain.err) == (0, "4\n", "Would cancel 4 jobs.\n")
    assert json.loads(limited.out) == {"verb": "cancel", "dry_run": True, "matched": 3, "capped": False}


def test_a_filter_that_matches_nothing_is_exit_4(rota, jobs):
    jobs.add()

    said = rota("jobs", "release", "--all", "--yes")

    assert (said.code, said.err) == (4, "No job to release matches.\n")


def test_a_sweep_as_json_counts_what_became_of_the_jobs(rota, jobs):
    job = jobs.run()
    jobs.add()

    said = rota("jobs", "cancel", "--all", "--yes", "--json")

    assert json.loads(said.out) == {
        "verb": "cancel", "dry_run": False, "done": 2, "asked": 1, "refused": 0, "changed": 0,
    }  # fmt: skip
    assert "1 of them are running and their workers were asked to stop" in said.err
    assert jobs.get(job.id).cancel_requested_at is not None


def test_a_sweep_that_was_partly_refused_is_exit_1(rota, jobs):
    jobs.run()
    jobs.add()

    said = rota("jobs", "hold", "--state", "running", "--state", "pending", "--yes")

    assert said.code == 1
    assert said.err == "hold: 1 job done; 1 refused by their state.\n"


def test_force_works_on_ids_only(rota, jobs):
    said = rota("jobs", "cancel", "--all", "--force", "--yes")

    assert said.code == 2
    assert "--force works on ids only: it waits for each job's worker." in said.err


def test_a_job_that_its_worker_has_cancelled_meanwhile_is_reported_as_it_is(rota, jobs):
    job = jobs.run()
    rota("jobs", "cancel", job.id)
    asked = jobs.get(job.id)
    jobs.do(lambda store: store.settle([handed_back(asked)]))

    said = rota("jobs", "cancel", job.id)

    assert said.code == 1
    assert f"cannot cancel job {job.id}: it is cancelled. It has ended; there is nothing to stop." in said.err
