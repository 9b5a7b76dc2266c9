"""Why a job is not running: every reason in words, with the command that unblocks it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from build import a_stored_job
from rota._core.actions import Audit
from rota._core.explain import explain
from rota._core.explanation import Cause, Facts, Standing, WorkerSeen, queues_of
from rota._core.job import State
from rota._core.review import Review
from rota._core.suspects import ParkedTask
from rota._core.task_spec import TaskSpec

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
WORKER = WorkerSeen(UUID(int=1), "web1", 311, ("email", "report"), slots=5)
OTHER = UUID(int=99)


def pending(**fields):
    return a_stored_job(State.PENDING, **fields)


def why(job, **facts):
    return explain(Facts(job, NOW, **({"workers": (WORKER,)} | facts)))


def test_a_job_with_nothing_in_its_way_is_the_next():
    said = why(pending())

    assert said.cause is Cause.DUE
    assert str(said) == (
        "Nothing is in its way: it is due since 2026-05-04 12:00:00 UTC and is the next of its queue 'default'. "
        "A worker takes it as soon as a slot is free."
    )


def test_a_scheduled_job_says_until_when_and_how_to_run_it_now():
    job = pending(run_at=NOW + timedelta(hours=2, minutes=5))
    said = why(job)

    assert (said.cause, said.why) == (
        Cause.SCHEDULED,
        "It is scheduled for 2026-05-04 14:05:00 UTC (in 2h 5m).",
    )
    assert said.command == f"rota jobs retry {job.id}"


def test_a_retrying_job_says_what_failed_and_when_it_is_tried_again():
    said = why(pending(run_at=NOW + timedelta(seconds=40), attempt=2, error_message="mail server is down."))

    assert said.cause is Cause.RETRYING
    assert said.why == (
        "Attempt 2 of 5 failed (mail server is down). The next one is due at 2026-05-04 12:00:40 UTC (in 40s)."
    )


def test_a_snoozed_job_was_put_off_by_its_own_code():
    said = why(pending(run_at=NOW + timedelta(days=3), snoozes=1, reason="batch not ready"))

    assert said.cause is Cause.SNOOZED
    assert (
        "Its own code put it off (batch not ready); it is due at 2026-05-07 12:00:00 UTC (in 3d)." in said.why
    )


def test_a_held_job_names_who_held_it_and_why():
    job = a_stored_job(State.HELD, reason="wait for legal")
    said = why(job, audit=(Audit("bob@office", "hold", job.id, "wait for legal", at=NOW),))

    assert (said.cause, said.why) == (
        Cause.HELD,
        "bob@office held it at 2026-05-04 12:00:00 UTC: wait for legal.",
    )
    assert said.command == f"rota jobs release {job.id}"
    assert "stored as held" in why(job).why


def test_a_job_behind_a_gate_names_the_job_that_holds_it():
    job = pending(gate="serial:acme:site-7", tenant="acme", parked="gate")
    inside = a_stored_job(State.RUNNING, id=OTHER, task="report", claimed_at=NOW)
    said = why(job, inside=inside, standing=Standing(inside=OTHER))

    assert said.cause is Cause.GATE
    assert said.why == (
        f"It may not run at the same time as job {OTHER} (report), which is running since 2026-05-04 12:00:00 UTC. "
        "Both have the serial key 'site-7'."
    )
    assert said.command == f"rota jobs cancel {OTHER}"
    assert "no job runs with it any more" in why(job).why


def test_a_parked_task_is_released_by_name():
    parked = ParkedTask("email", "v7", 3, "process 9 was ended by SIGSEGV", NOW)
    said = why(pending(parked="task"), parked=(parked,))

    assert said.cause is Cause.TASK_PARKED
    assert "3 of its jobs killed their process under code version v7, the last one so: process 9" in said.why
    assert said.command == "rota tasks release email"
    assert why(pending(), parked=(parked,)).cause is Cause.TASK_PARKED  # also before a worker has met it
    assert "which it is no longer" in why(pending(parked="task")).why


def test_a_job_parked_for_something_else_says_for_what():
    said = why(pending(parked="breaker", reason="the breaker smtp is open"))

    assert (said.cause, said.why) == (Cause.PARKED, "It is parked (breaker): the breaker smtp is open.")


def test_without_any_worker_it_says_so():
    assert (why(pending(), workers=()).cause, why(pending(), workers=()).command) == (
        Cause.NO_WORKER,
        "rota worker APP",
    )


def test_a_task_that_no_living_worker_knows_is_named():
    said = why(pending(task="resize"), task=TaskSpec("resize", code_version="v6"))

    assert said.cause is Cause.TASK_UNKNOWN
    assert said.why == (
        "None of the 1 living worker (web1 (process 311)) knows the task resize; it was published by code version v6."
    )
    assert "it was never published" in why(pending(task="resize")).why


def test_a_queue_that_no_lane_serves_is_named():
    narrow = [WORKER._replace(queues=("fast",)), WORKER._replace(queues=("mail", "fast"))]
    said = why(pending(queue="reports"), workers=tuple(narrow))

    assert said.cause is Cause.QUEUE_UNSERVED
    assert said.why == "No living worker that knows email serves the queue 'reports'; they serve fast, mail."
    assert said.command == "rota worker APP --queue reports"


def test_a_worker_that_knows_the_task_and_another_that_serves_the_queue_do_not_make_one_that_runs_it():
    workers = (WORKER._replace(queues=("fast",)), WORKER._replace(tasks=("report",)))

    assert why(pending(), workers=workers).cause is Cause.QUEUE_UNSERVED


@pytest.mark.parametrize(
    ("tenant", "command"), [("acme", "rota worker APP --tenant acme"), (None, "rota worker APP")]
)
def test_a_tenant_that_nobody_works_for_is_named(tenant, command):
    said = why(pending(tenant=tenant), workers=(WORKER._replace(tenant="globex"),))

    assert (said.cause, said.command) == (Cause.TENANT_UNSERVED, command)
    assert "work only for globex" in said.why


def test_a_payload_that_is_newer_than_the_published_code_is_said():
    said = why(pending(payload_version="10.0"), task=TaskSpec("email", payload_version="9.2"))

    assert said.cause is Cause.PAYLOAD_TOO_NEW
    assert (
        "Its payload has version 10.0, and the newest published code of email reads version 9.2." in said.why
    )
    assert (
        why(pending(payload_version="9.2"), task=TaskSpec("email", payload_version="9.2")).cause is Cause.DUE
    )
    assert (
        why(pending(payload_version="blue"), task=TaskSpec("email", payload_version="red")).cause is Cause.DUE
    )


def test_a_suspect_runs_alone_next():
    said = why(pending(losses=2, error_class="crash", error_message="its worker died with it"))

    assert said.cause is Cause.SUSPECT
    assert "a worker process died 2 times with it (last: its worker died with it)" in said.why


def test_jobs_ahead_are_counted_beside_the_slots_that_may_run_them():
    said = why(pending(), standing=Standing(1234))

    assert said.cause is Cause.BEHIND
    assert "1,234 due jobs are before it in the queue 'default', and 5 slots of living workers" in said.why
    assert "10,000+ due jobs" in why(pending(), standing=Standing(10_000, capped=True)).why
    assert "1 due job is before it" in why(pending(), standing=Standing(1)).why


def test_a_turn_is_not_promised_to_a_job_that_no_worker_may_run():
    said = why(pending(task="unheard"), standing=Standing(6))
    [behind] = said.also

    assert (said.cause, behind.cause) == (Cause.TASK_UNKNOWN, Cause.BEHIND)
    assert behind.why.startswith("6 due jobs are before it in the queue 'default'. It waits since ")
    assert (behind.fix, behind.command) == ("Its turn comes after them, once a worker may run it.", None)


def test_a_wait_beyond_the_target_of_its_queue_is_said():
    job = pending(run_at=NOW - timedelta(minutes=3))

    assert "(2m 30s over the target of 30s of its queue)" in why(job, target=30.0).why
    assert "(2m 30s over the target of 30s of its queue)" in why(job, target=30.0, standing=Standing(4)).why
    assert "target" not in why(job, target=300.0).why


def test_a_deadline_that_is_past_comes_first():
    said = why(pending(deadline=NOW - timedelta(seconds=1)), workers=())

    assert [said.cause, *(other.cause for other in said.also)] == [Cause.EXPIRED, Cause.NO_WORKER]


def test_what_would_still_be_in_its_way_is_said_in_order():
    job = pending(run_at=NOW + timedelta(minutes=1), queue="reports", tenant="acme")
    said = why(job, workers=(WORKER._replace(queues=("fast",)),))

    assert [said.cause, *(other.cause for other in said.also)] == [Cause.SCHEDULED, Cause.QUEUE_UNSERVED]
    lines = str(said).splitlines()
    assert lines[1] == f"  rota jobs retry {job.id}"
    assert lines[2].startswith("Also: No living worker that knows email serves the queue 'reports'")
    assert lines[3] == "  rota worker APP --queue reports"


def test_a_running_job_says_where_and_since_when():
    job = a_stored_job(claimed_at=NOW, session_id=WORKER.id)

    assert (why(job, owner=WORKER).cause, why(job, owner=WORKER).why) == (
        Cause.RUNNING,
        "It is running on web1 (process 311) since 2026-05-04 12:00:00 UTC, attempt 1 of 5.",
    )
    asked = why(job._replace(cancel_requested_at=NOW), owner=WORKER)
    assert (asked.cause, asked.command) == (Cause.CANCELLING, f"rota jobs cancel {job.id} --force")
    assert (why(job).cause, why(job).command) == (Cause.LOST, "rota doctor")


@pytest.mark.parametrize(
    ("review", "words", "command"),
    [
        (Review.PENDING, "", "rota jobs retry"),
        (Review.ACKNOWLEDGED, " Somebody knows of it.", "rota jobs retry"),
        (Review.REPROCESSING, " A new job does its work again.", "rota dlq show"),
        (Review.RESOLVED, " A new job has done its work since.", "rota dlq show"),
        (Review.DISCARDED, " Its work was given up.", "rota dlq show"),
    ],
)
def test_a_dead_job_is_not_to_be_retried_where_its_work_is_done_again_or_given_up(review, words, command):
    said = why(a_stored_job(State.DEAD, finished_at=NOW, review=review.value))

    assert said.why == f"It died at 2026-05-04 12:00:00 UTC, after 1 attempt.{words}"
    assert said.command == f"{command} {said.job_id}"


def test_an_ended_job_says_how_it_ended():
    def ended(state, **fields):
        return why(a_stored_job(state, finished_at=NOW, **fields))

    at = "2026-05-04 12:00:00 UTC"
    assert ended(State.COMPLETED).why == f"It completed at {at}."
    assert ended(State.PARTIAL).why == f"It completed at {at}, and some of its items failed."
    dead = ended(State.DEAD, error_class="non_retryable", error_message="no such address")
    assert dead.why == f"It died at {at}, after 1 attempt (non_retryable: no such address)."
    assert (dead.cause, dead.command) == (Cause.ENDED, f"rota jobs retry {dead.job_id}")
    assert (
        ended(State.CANCELLED, reason="no longer wanted").why
        == f"It was cancelled at {at}: no longer wanted."
    )
    assert ended(State.CANCELLED, superseded_by=OTHER).command == f"rota jobs why {OTHER}"
    job = a_stored_job(State.CANCELLED)
    assert why(job, audit=(Audit("bob", "cancel", job.id),)).why == "It was cancelled by bob."


def test_a_blocked_job_waits_for_others():
    assert why(a_stored_job(State.BLOCKED)).cause is Cause.BLOCKED


def test_lanes_together_serve_their_queues():
    assert queues_of({"fast": ("fast",), "mail": ("mail", "fast")}) == ("fast", "mail")
    assert queues_of({"fast": ("fast",), "general": None}) is None
    assert queues_of(None) is None
