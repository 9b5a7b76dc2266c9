"""The state machine: every way an attempt can end, and the write that records it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import a_stored_job
from rota._core.failure import ErrorClass, Failure
from rota._core.job import State
from rota._core.outcome import (
    Cancelled,
    Expired,
    HandedBack,
    Lost,
    Raised,
    Returned,
    Snoozed,
    Transition,
    decide,
)
from rota._core.retry import Retry

JOB = a_stored_job()
NOW = JOB.run_at + timedelta(seconds=1)
EXACT = Retry(jitter=0)
FINAL_CLASSES = ("non_retryable", "payload_invalid", "unknown_task", "deadline", "not_ready")


def a_failure(error_class: str = "retryable", *, retry_after: float | None = None) -> Failure:
    return Failure(ErrorClass(error_class), "ValueError", "boom", None, retry_after)


def later(seconds: float) -> object:
    return NOW + timedelta(seconds=seconds)


def test_a_return_completes_the_job_with_its_result():
    decided = decide(JOB, Returned('{"sent": 1}'), retry=EXACT, now=NOW)

    assert decided == Transition(JOB, State.COMPLETED, "complete", result_json='{"sent": 1}')


@pytest.mark.req("V5")
def test_a_return_with_failed_items_completes_the_job_partially():
    decided = decide(JOB, Returned("[1]", partial=True), retry=EXACT, now=NOW)

    assert decided == Transition(JOB, State.PARTIAL, "complete", result_json="[1]")


@pytest.mark.req("L18")
def test_an_exception_brings_the_job_back_after_a_pause():
    decided = decide(JOB, Raised(a_failure()), retry=EXACT, now=NOW)

    assert decided == Transition(JOB, State.PENDING, "retry", run_at=later(2), failure=a_failure())


@pytest.mark.req("W20")
def test_the_last_attempt_that_fails_kills_the_job():
    last = JOB._replace(attempt=5)
    last_but_one = JOB._replace(attempt=4)

    assert decide(last, Raised(a_failure()), retry=EXACT, now=NOW).to is State.DEAD
    assert decide(last_but_one, Raised(a_failure()), retry=EXACT, now=NOW).to is State.PENDING


@pytest.mark.parametrize("error_class", FINAL_CLASSES)
def test_a_final_failure_kills_the_job_whatever_attempts_are_left(error_class: str):
    decided = decide(JOB, Raised(a_failure(error_class)), retry=EXACT, now=NOW)

    assert decided == Transition(JOB, State.DEAD, "die", failure=a_failure(error_class))


@pytest.mark.parametrize(
    "error_class", [kind.value for kind in ErrorClass if kind.value not in FINAL_CLASSES]
)
def test_every_other_failure_is_tried_again(error_class: str):
    decided = decide(JOB, Raised(a_failure(error_class)), retry=EXACT, now=NOW)

    assert (decided.to, decided.verb) == (State.PENDING, "retry")


@pytest.mark.req("W22")
def test_a_rate_limited_failure_waits_as_long_as_the_other_side_asks():
    asked = decide(JOB, Raised(a_failure("rate_limited", retry_after=7)), retry=EXACT, now=NOW)
    unasked = decide(JOB, Raised(a_failure("rate_limited")), retry=EXACT, now=NOW)

    assert asked.run_at == later(7)
    assert unasked.run_at == later(60)


def test_a_rate_limited_failure_can_leave_the_attempt_uncounted():
    patient = Retry(jitter=0, rate_limited_counts=False)
    last = JOB._replace(attempt=5)

    decided = decide(last, Raised(a_failure("rate_limited")), retry=patient, now=NOW)

    assert (decided.to, decided.attempt) == (State.PENDING, 4)


def test_a_retry_that_would_come_after_the_deadline_is_not_waited_for():
    pressed = JOB._replace(deadline=later(1))

    decided = decide(pressed, Raised(a_failure()), retry=EXACT, now=NOW)

    assert decided.to is State.DEAD
    assert decided.reason == "its deadline comes before its next attempt"
    assert decided.failure == a_failure()


def test_a_retry_right_at_the_deadline_is_still_made():
    pressed = JOB._replace(deadline=later(2))

    assert decide(pressed, Raised(a_failure()), retry=EXACT, now=NOW).to is State.PENDING


def test_the_first_loss_of_a_worker_is_repeated_at_once_and_counted():
    decided = decide(JOB, Lost(), retry=EXACT, now=NOW)

    assert (decided.to, decided.run_at, decided.lost, decided.attempt) == (State.PENDING, NOW, True, None)
    assert decided.failure == Failure(ErrorClass.LOST, "lost", "its worker stopped beating")


def test_a_second_loss_waits_like_any_failure():
    again = JOB._replace(attempt=2, losses=1)

    assert decide(again, Lost(), retry=EXACT, now=NOW).run_at == later(4)


def test_a_job_that_loses_its_worker_at_its_last_attempt_is_dead_with_class_lost():
    decided = decide(JOB._replace(attempt=5), Lost("killed"), retry=EXACT, now=NOW)

    assert (decided.to, decided.lost) == (State.DEAD, True)
    assert decided.failure == Failure(ErrorClass.LOST, "lost", "killed")


def test_work_that_must_not_happen_twice_dies_with_its_worker():
    assert decide(JOB, Lost(), retry=Retry(lost=False), now=NOW).to is State.DEAD
    assert decide(JOB, Lost(), retry=Retry.never(), now=NOW).to is State.DEAD


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled():
    asked = JOB._replace(cancel_requested_at=NOW, reason="wrong address")
    without_reason = asked._replace(reason=None)

    assert decide(asked, Lost(), retry=EXACT, now=NOW) == Transition(
        asked, State.CANCELLED, "cancel", reason="wrong address", lost=True
    )
    assert decide(without_reason, Lost(), retry=EXACT, now=NOW).reason == "cancelled"


def test_a_snooze_gives_the_attempt_back_and_counts_itself():
    decided = decide(JOB._replace(attempt=3), Snoozed(90, "no stock"), retry=EXACT, now=NOW)

    assert decided == Transition(
        decided.job, State.PENDING, "snooze", attempt=2, run_at=later(90), reason="no stock", snoozed=True
    )


def test_a_job_that_snoozes_for_ever_is_stopped():
    tired = JOB._replace(snoozes=3)

    decided = decide(tired, Snoozed(90), retry=Retry(max_snoozes=3), now=NOW)

    assert decided.to is State.DEAD
    assert decided.failure == Failure(
        ErrorClass.NOT_READY,
        "not_ready",
        "it asked to be run later 3 times, which is the limit (Retry.max_snoozes)",
    )


def test_a_snooze_past_the_deadline_kills_the_job():
    pressed = JOB._replace(deadline=later(60))

    decided = decide(pressed, Snoozed(90), retry=EXACT, now=NOW)

    assert decided.to is State.DEAD
    assert decided.failure is not None
    assert decided.failure.error_class is ErrorClass.DEADLINE
    assert decided.failure.message == (
        f"it asked to be run at {later(90)}, after its deadline ({pressed.deadline})"
    )


def test_a_job_handed_back_keeps_its_attempts_and_counts_no_snooze():
    decided = decide(JOB, HandedBack(), retry=EXACT, now=NOW)

    assert decided == Transition(
        JOB, State.PENDING, "hand back", attempt=0, run_at=NOW, reason="worker is shutting down"
    )


def test_a_job_handed_back_that_was_to_be_cancelled_is_cancelled():
    asked = JOB._replace(cancel_requested_at=NOW, reason="too late")

    assert decide(asked, HandedBack(), retry=EXACT, now=NOW) == Transition(
        asked, State.CANCELLED, "cancel", reason="too late"
    )


def test_a_confirmed_cancel_ends_the_job():
    decided = decide(JOB, Cancelled("asked"), retry=EXACT, now=NOW)

    assert decided == Transition(JOB, State.CANCELLED, "cancel", reason="asked")


def test_a_job_met_after_its_deadline_is_dead():
    late = JOB._replace(deadline=NOW)

    decided = decide(late, Expired(), retry=EXACT, now=NOW)

    assert decided.to is State.DEAD
    assert decided.failure == Failure(
        ErrorClass.DEADLINE, "deadline", f"its deadline ({NOW}) passed before it could start"
    )
