"""Every write that the rules can make is an arrow of the one table of moves."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from build import a_stored_job
from rota._core.actions import Refusal, Verb, act
from rota._core.failure import ErrorClass, Failure
from rota._core.job import TERMINAL, UNSTARTED, Job, State
from rota._core.moves import MOVES, diagram, legal
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

ARROWS = {(move.origin, move.target, move.verb) for move in MOVES}
MOMENT = a_stored_job().run_at
OUTCOMES = [
    Returned(),
    Returned("1", partial=True),
    Snoozed(60),
    Cancelled(),
    Lost(),
    HandedBack(),
    Expired(),
    *(Raised(Failure(kind, "E", "m")) for kind in ErrorClass),
]
POLICIES = [Retry(), Retry.lipas(), Retry.never(), Retry(max_snoozes=0), Retry(rate_limited_counts=False)]


def jobs_in(state: State) -> list[Job]:
    """Jobs of one state in every situation that a rule looks at."""
    return [
        a_stored_job(
            state,
            attempt=attempt,
            losses=losses,
            deadline=deadline,
            cancel_requested_at=asked,
        )
        for attempt, losses, deadline, asked in product(
            (0, 1, 5), (0, 1), (None, MOMENT + timedelta(seconds=1)), (None, MOMENT)
        )
    ]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_every_end_of_an_attempt_is_a_legal_move(outcome: object):
    decided = [
        decide(job, outcome, retry=policy, now=MOMENT)  # type: ignore[arg-type]
        for job in jobs_in(State.RUNNING)
        for policy in POLICIES
    ]

    assert {(move.job.state, move.to, move.verb) for move in decided} <= ARROWS


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("verb", Verb)
def test_every_action_of_an_operator_is_a_legal_move_or_refused_with_advice(verb: Verb, state: State):
    answers = [
        act(job, verb, retry=policy, now=MOMENT, force=force)
        for job in jobs_in(state)
        for policy in POLICIES
        for force in (False, True)
    ]

    moves = {
        (answer.job.state, answer.to, answer.verb) for answer in answers if isinstance(answer, Transition)
    }
    advice = {answer.hint for answer in answers if isinstance(answer, Refusal)}
    assert moves <= ARROWS
    assert all(hint.endswith(".") for hint in advice)


def test_only_a_claim_makes_a_job_run():
    into_running = [move for move in MOVES if move.target is State.RUNNING]

    assert [(move.origin, move.verb) for move in into_running] == [(State.PENDING, "claim")]


def test_a_terminal_state_is_left_only_by_a_persons_retry():
    out = {(move.origin, move.target, move.verb, move.who) for move in MOVES if move.origin in TERMINAL}

    assert out == {
        (State.DEAD, State.PENDING, "retry", "operator"),
        (State.CANCELLED, State.PENDING, "retry", "operator"),
    }


@pytest.mark.req("D8")
def test_every_job_begins_unstarted_and_every_state_can_be_reached_and_left():
    begins = {move.target for move in MOVES if move.origin is None}
    reached = {move.target for move in MOVES}
    left = {move.origin for move in MOVES}

    assert begins == UNSTARTED
    assert reached == set(State)
    assert set(State) - TERMINAL <= left


def test_a_move_that_is_not_in_the_table_is_not_legal():
    assert legal(State.PENDING, State.RUNNING)
    assert legal(None, State.PENDING)
    assert not legal(State.COMPLETED, State.PENDING)
    assert not legal(State.HELD, State.RUNNING)
    assert not legal(None, State.RUNNING)


def test_the_diagram_draws_every_arrow_once_with_all_its_verbs():
    lines = diagram().splitlines()

    assert lines[0] == "stateDiagram-v2"
    assert "    [*] --> pending: enqueue" in lines
    assert "    running --> pending: retry, suspect, park, snooze, hand back, fail" in lines
    assert "    dead --> [*]" in lines
    assert (
        len(lines)
        == len(set(lines))
        == 1 + len({(move.origin, move.target) for move in MOVES}) + len(TERMINAL)
    )
