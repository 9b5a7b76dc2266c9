"""Suspects: who is to blame when a process dies, and what it costs."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

import pytest

from build import a_stored_job, new_id
from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job, State
from rota._core.outcome import (
    BYSTANDER_LOSSES,
    Crashed,
    HandedBack,
    Lost,
    Parked,
    Raised,
    Snoozed,
    Transition,
    decide,
)
from rota._core.process import Process
from rota._core.retry import Retry
from rota._core.suspects import Crash, Death, ParkedTask, suspect, too_many

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
EXACT = Retry(attempts=5, jitter=0.0)
JOB = a_stored_job(attempt=1)
DEATH = Death(
    4711, signal=signal.SIGSEGV, seconds=1.25, memory=64 * 1024**2, log=("12:00:01 INFO x: hi",), stack="File"
)


def crashed(job: Job, *, alone: bool, retry: Retry = EXACT) -> Transition:
    return decide(job, Crashed(DEATH.failure(alone=alone), alone=alone), retry=retry, now=NOW)


def after(transition: Transition) -> Job:
    """The job as its next owner gets it."""
    job, losses = transition.job, transition.job.losses + transition.lost
    attempt = job.attempt if transition.attempt is None else transition.attempt
    failure = transition.failure
    return job._replace(
        attempt=attempt + 1,
        losses=0 if transition.cleared else losses,
        error_class=job.error_class if failure is None else failure.error_class.value,
        version=job.version + 2,
    )


def test_who_shared_a_process_that_died_is_a_suspect_and_loses_no_attempt():
    decided = crashed(JOB, alone=False)

    assert (decided.to, decided.verb, decided.attempt, decided.run_at) == (State.PENDING, "suspect", 0, NOW)
    assert suspect(after(decided))
    assert after(decided).attempt == JOB.attempt


@pytest.mark.scenario(7)
def test_a_poison_job_is_dead_at_its_third_loss():
    shared = crashed(JOB, alone=False)
    once = crashed(after(shared), alone=True)
    twice = crashed(after(once), alone=True)

    assert [step.to for step in (shared, once, twice)] == [State.PENDING, State.PENDING, State.DEAD]
    assert (after(once).losses, after(once).attempt) == (2, 2)
    assert once.run_at == NOW + timedelta(seconds=2)
    assert "its process died 3 times; the limit is 3" in (twice.reason or "")
    assert twice.failure is not None
    assert twice.failure.error_class is ErrorClass.CRASH


def test_the_limit_of_losses_is_the_task_s_own():
    assert crashed(JOB, alone=True, retry=Retry(max_losses=1)).to is State.DEAD
    assert crashed(JOB._replace(losses=8), alone=True, retry=Retry(max_losses=10)).to is State.PENDING
    with pytest.raises(ValueError, match=r"Retry\(max_losses=0\): give at least 1"):
        Retry(max_losses=0)


def test_alone_an_attempt_counts_as_any_other():
    assert crashed(JOB._replace(attempt=5), alone=True).to is State.DEAD
    assert crashed(JOB._replace(attempt=5), alone=False).to is State.PENDING


def test_work_that_must_not_happen_twice_is_dead_at_the_first_crash():
    for alone in (True, False):
        assert crashed(JOB, alone=alone, retry=Retry(lost=False)).to is State.DEAD


def test_a_bystander_is_not_run_for_ever():
    job = JOB
    for _ in range(BYSTANDER_LOSSES - 1):
        decided = crashed(job, alone=False)
        assert (decided.to, decided.attempt) == (State.PENDING, 0)
        job = after(decided)

    assert crashed(job, alone=False).to is State.DEAD


@pytest.mark.parametrize("alone", [True, False])
def test_a_job_that_was_to_be_cancelled_is_cancelled_when_its_process_dies(alone):
    decided = crashed(JOB._replace(cancel_requested_at=NOW, reason="wrong"), alone=alone)

    assert (decided.to, decided.reason, decided.lost) == (State.CANCELLED, "wrong", True)


def test_a_lost_lease_makes_a_suspect_only_the_second_time():
    first = decide(JOB, Lost(), retry=EXACT, now=NOW)
    second = decide(after(first), Lost(), retry=EXACT, now=NOW)

    assert not suspect(after(first))
    assert suspect(after(second))


@pytest.mark.parametrize(
    "outcome", [Raised(Failure.because(ErrorClass.RETRYABLE, "no")), Snoozed(60.0)], ids=["raised", "snoozed"]
)
def test_an_end_of_its_own_clears_a_suspect(outcome):
    job = after(crashed(JOB, alone=False))
    decided = decide(job, outcome, retry=EXACT, now=NOW)

    assert decided.cleared
    assert not suspect(after(decided))
    assert not decide(JOB, outcome, retry=EXACT, now=NOW).cleared


def test_a_suspect_that_is_handed_back_is_still_one():
    job = after(crashed(JOB, alone=False))

    assert suspect(after(decide(job, HandedBack(), retry=EXACT, now=NOW)))


def test_a_job_is_handed_back_for_later_when_its_worker_asks():
    decided = decide(JOB, HandedBack("not now", 30.0), retry=EXACT, now=NOW)

    assert (decided.run_at, decided.attempt, decided.snoozed) == (NOW + timedelta(seconds=30), 0, False)


def test_a_job_whose_task_is_parked_goes_back_unharmed():
    decided = decide(JOB, Parked("the task email is parked"), retry=EXACT, now=NOW)

    assert (decided.to, decided.verb, decided.attempt) == (State.PENDING, "park", 0)
    assert decided.changes == {"parked": "task"}
    asked = JOB._replace(cancel_requested_at=NOW)
    assert decide(asked, Parked("x"), retry=EXACT, now=NOW).to is State.CANCELLED


@pytest.mark.parametrize(
    ("death", "cause", "words"),
    [
        (Death(7, signal=11), "SIGSEGV", "was ended by SIGSEGV (a segmentation fault)"),
        (
            Death(7, signal=9, seconds=2.0),
            "SIGKILL",
            "after 2.0 s (killed from outside, most likely because memory",
        ),
        (Death(7, signal=99), "signal 99", "was ended by signal 99"),
        (Death(7, exit_code=3), "exit code 3", "process 7 ended with exit code 3"),
        (Death(7), "an unknown end", "process 7 ended with an unknown end"),
    ],
)
def test_a_death_is_told_in_words(death, cause, words):
    assert death.cause == cause
    assert words in death.summary()


def test_a_crash_report_has_all_that_is_known():
    failure = DEATH._replace(tick_age=3.5).failure(alone=True)

    assert (failure.error_class, failure.type) == (ErrorClass.CRASH, "SIGSEGV")
    assert failure.message.startswith("it killed its child process: process 4711")
    for part in ("memory: 64 MB", "stood still for 3.5 s", "12:00:01 INFO x: hi", "File"):
        assert part in (failure.stack or "")
    assert "It runs alone next; this attempt is not counted" in DEATH.failure(alone=False).message


def test_one_poison_job_does_not_stop_its_task_but_many_do():
    def crashes(*jobs):
        return [Crash("resize", "v1", job, version, "x") for version, job in enumerate(jobs)]

    one, two, three = new_id(), new_id(), new_id()

    assert not too_many(crashes(one, one, one, one), 3)
    assert too_many(crashes(one, two, three), 3)
    assert not too_many(crashes(one, two, three), 0)


def test_a_parked_task_says_how_it_is_released():
    parked = ParkedTask("resize", "v1", 5, "SIGSEGV", NOW)

    assert "5 of its jobs killed their process under code version v1" in parked.reason
    assert "`rota tasks release resize`" in parked.reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "much"}, "memory 'much' is not understood"),
        ({"memory": 5}, "memory must be at least 1 MB"),
        ({"memory": 1.5}, "memory must be a number of bytes"),
        ({"env": "HOME"}, r"give a list of names, such as env=\['HOME'\]"),
        ({"jobs": 0}, "a child must be good for one job at least"),
        ({"files": 3}, "Python itself needs about 64"),
        ({"processes": 0}, "give at least 1, or leave it out"),
        ({"cpu": "soon"}, "cpu 'soon' is not understood"),
    ],
)
def test_bounds_that_make_no_sense_say_so(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Process(**options)


def test_bounds_are_read_as_people_write_them():
    bounds = Process(memory="1.5 GB", cpu="2m", env=["AWS_*", "AWS_*"])

    assert bounds.limits() == {
        "memory": 1610612736,
        "cpu": 120.0,
        "files": 1024,
        "processes": None,
        "umask": 0o077,
    }
    assert bounds == Process(memory=1610612736, cpu=120, env=["AWS_*"])
    around = {"AWS_KEY": "k", "PATH": "/bin", "LC_ALL": "C", "DATABASE_URL": "secret", "MY_TOKEN": "secret"}
    assert bounds.environment(around) == {"AWS_KEY": "k", "PATH": "/bin", "LC_ALL": "C"}
    assert Process(env=["*"]).environment(around) == around
