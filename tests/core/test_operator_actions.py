"""What people may do by hand: each action on each state, as a value."""

from __future__ import annotations

import pytest

from build import a_stored_job
from rota._core.actions import CancelRequest, Refusal, Removal, Verb, act
from rota._core.failure import ErrorClass
from rota._core.job import TERMINAL, UNSTARTED, State
from rota._core.outcome import Transition
from rota._core.retry import Retry

NOW = a_stored_job().run_at


def acted(
    state: State, verb: Verb, *, force: bool = False, reason: str | None = None, **fields: object
) -> object:
    return act(a_stored_job(state, **fields), verb, retry=Retry(), now=NOW, force=force, reason=reason)


@pytest.mark.parametrize("state", [State.DEAD, State.CANCELLED])
def test_retry_begins_an_ended_job_again_from_its_first_attempt(state: State):
    change = acted(state, Verb.RETRY, attempt=5, reason="fixed")

    assert change == Transition(
        a_stored_job(state, attempt=5), State.PENDING, "retry", attempt=0, run_at=NOW, reason="fixed"
    )


def test_retry_of_a_waiting_job_runs_it_at_once():
    assert acted(State.PENDING, Verb.RETRY) == Transition(
        a_stored_job(State.PENDING), State.PENDING, "edit", run_at=NOW
    )


@pytest.mark.parametrize(
    ("state", "hint"),
    [
        (State.RUNNING, "It is running now; wait for it, or cancel it first."),
        (State.HELD, "Release it instead."),
        (State.BLOCKED, "It waits for other jobs."),
        (State.COMPLETED, "Enqueue its task again for another run."),
        (State.PARTIAL, "Enqueue its task again for another run."),
    ],
)
def test_retry_is_refused_where_it_would_run_something_twice(state: State, hint: str):
    assert acted(state, Verb.RETRY) == Refusal(state, Verb.RETRY, hint)


@pytest.mark.req("D8")
@pytest.mark.parametrize("state", sorted(UNSTARTED))
def test_cancel_takes_an_unstarted_job_off_the_list(state: State):
    assert acted(state, Verb.CANCEL, reason="typo") == Transition(
        a_stored_job(state), State.CANCELLED, "cancel", reason="typo"
    )


def test_cancel_asks_the_worker_of_a_running_job_and_force_does_not():
    asked = acted(State.RUNNING, Verb.CANCEL, reason="late")
    forced = acted(State.RUNNING, Verb.CANCEL, reason="late", force=True)

    assert asked == CancelRequest(a_stored_job(State.RUNNING), "late")
    assert forced == Transition(a_stored_job(State.RUNNING), State.CANCELLED, "cancel", reason="late")


@pytest.mark.scenario(13)
@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_cancel_of_an_ended_job_is_refused(state: State):
    assert acted(state, Verb.CANCEL) == Refusal(state, Verb.CANCEL, "It has ended; there is nothing to stop.")


def test_hold_sets_a_pending_job_aside_and_nothing_else():
    hint = "Only a pending job can be held; cancel a running one instead."

    assert acted(State.PENDING, Verb.HOLD) == Transition(a_stored_job(State.PENDING), State.HELD, "hold")
    for state in set(State) - {State.PENDING}:
        assert acted(state, Verb.HOLD) == Refusal(state, Verb.HOLD, hint)


def test_release_puts_a_held_job_back_and_nothing_else():
    assert acted(State.HELD, Verb.RELEASE) == Transition(a_stored_job(State.HELD), State.PENDING, "release")
    for state in set(State) - {State.HELD}:
        assert acted(state, Verb.RELEASE) == Refusal(state, Verb.RELEASE, "Only a held job can be released.")


def test_fail_ends_the_running_attempt_as_its_policy_says():
    again = acted(State.RUNNING, Verb.FAIL, reason="stuck")
    finished = acted(State.RUNNING, Verb.FAIL, attempt=5)

    assert isinstance(again, Transition)
    assert (again.to, again.verb) == (State.PENDING, "fail")
    assert again.failure is not None
    assert (again.failure.error_class, again.failure.message) == (ErrorClass.OPERATOR, "stuck")
    assert isinstance(finished, Transition)
    assert (finished.to, finished.verb) == (State.DEAD, "fail")
    assert finished.failure is not None
    assert finished.failure.message == "failed by hand"


def test_fail_of_a_job_that_does_not_run_is_refused():
    hint = "Only a running job can be failed; use kill to move a waiting one to the dead."

    for state in set(State) - {State.RUNNING}:
        assert acted(state, Verb.FAIL) == Refusal(state, Verb.FAIL, hint)


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL))
def test_kill_moves_an_unfinished_job_to_the_dead(state: State):
    change = acted(state, Verb.KILL)

    assert isinstance(change, Transition)
    assert (change.to, change.verb) == (State.DEAD, "kill")
    assert change.failure is not None
    assert (change.failure.error_class, change.failure.message) == (ErrorClass.OPERATOR, "killed by hand")


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_kill_of_an_ended_job_is_refused(state: State):
    assert acted(state, Verb.KILL) == Refusal(state, Verb.KILL, "It has ended already.")


def test_delete_removes_any_job_but_a_running_one():
    assert acted(State.RUNNING, Verb.DELETE) == Refusal(
        State.RUNNING, Verb.DELETE, "Cancel it first, then delete it."
    )
    for state in set(State) - {State.RUNNING}:
        assert acted(state, Verb.DELETE) == Removal(a_stored_job(state))
