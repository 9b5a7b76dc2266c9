"""The review of a dead job: one table of moves, and every verb keeps to it."""

from __future__ import annotations

import json
from itertools import product

import pytest

from build import a_stored_job, new_id
from rota._core.actions import Refusal, Verb, act
from rota._core.dead_letter import DeadFilter, follower, how_it_went, losses_of_follower, reprocess_of
from rota._core.effects import effect_key
from rota._core.job import Job, State
from rota._core.retry import Retry
from rota._core.review import (
    CLOSED,
    REVIEW_MOVES,
    Review,
    ReviewChange,
    ReviewRefusal,
    ReviewVerb,
    diagram,
    ended,
    origins,
    review,
)

ARROWS = {(move.origin, move.verb): move.target for move in REVIEW_MOVES}


def a_dead(stands: str = "pending_review", **fields) -> Job:
    return a_stored_job(State.DEAD, review=stands, version=7, **fields)


@pytest.mark.req("W26")
@pytest.mark.parametrize(("stands", "verb"), list(product(Review, ReviewVerb)))
def test_a_review_moves_only_by_the_table(stands: Review, verb: ReviewVerb):
    decided = review(a_dead(stands), verb, by="ann", notes="why")

    if (stands, verb) in ARROWS:
        assert decided == ReviewChange(a_dead().id, 7, stands, ARROWS[stands, verb], "ann", "why")
    else:
        assert isinstance(decided, ReviewRefusal)
        assert (decided.stands, decided.verb) == (stands, verb)
        assert decided.hint.endswith(".")


def test_notes_are_kept_without_the_secrets_that_somebody_put_into_them():
    dead = a_stored_job(State.DEAD, review=Review.PENDING.value)
    change = review(dead, ReviewVerb.ACKNOWLEDGE, by="ann", notes="told him password=hunter2, ticket 12")

    assert isinstance(change, ReviewChange)
    assert change.notes == "told him password=***, ticket 12"


@pytest.mark.req("W26")
def test_every_review_begins_in_pending_and_can_be_reached():
    reached = {move.target for move in REVIEW_MOVES}

    assert [move.target for move in REVIEW_MOVES if move.origin is None] == [Review.PENDING]
    assert reached == set(Review)
    assert origins(ReviewVerb.RESOLVE) == (Review.REPROCESSING,)


@pytest.mark.parametrize("state", [state for state in State if state is not State.DEAD])
def test_only_the_dead_are_reviewed(state: State):
    decided = review(a_stored_job(state), ReviewVerb.DISCARD, by="ann")

    assert decided == ReviewRefusal(state.value, ReviewVerb.DISCARD, "Only a dead job is reviewed.")


@pytest.mark.parametrize(
    ("state", "verb"),
    [
        (State.COMPLETED, ReviewVerb.RESOLVE),
        (State.PARTIAL, ReviewVerb.RESOLVE),
        (State.DEAD, ReviewVerb.RETURN),
        (State.CANCELLED, ReviewVerb.RETURN),
        (None, ReviewVerb.RETURN),
        (State.PENDING, None),
        (State.RUNNING, None),
        (State.HELD, None),
        (State.BLOCKED, None),
    ],
)
def test_the_end_of_the_new_job_decides_what_becomes_of_the_dead_one(state, verb):
    assert ended(state) is verb


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.DELETE])
def test_what_is_being_reprocessed_is_neither_run_in_place_nor_deleted(verb: Verb):
    job = a_dead(Review.REPROCESSING)
    decided = act(job, verb, retry=Retry(), now=job.updated_at)

    assert isinstance(decided, Refusal)
    assert "A new job does its work now" in decided.hint
    assert not isinstance(act(a_dead(), verb, retry=Retry(), now=job.updated_at), Refusal)


def test_what_was_resolved_is_not_run_once_more_by_a_slip():
    job = a_dead(Review.RESOLVED)
    decided = act(job, Verb.RETRY, retry=Retry(), now=job.updated_at)

    assert isinstance(decided, Refusal)
    assert decided.hint == "Its work was done by another job; enqueue its task for another run."


@pytest.mark.req("W34")
def test_the_new_job_has_the_payload_the_terms_and_the_correlation_of_the_dead_one():
    dead = a_dead(
        payload_json='{"to": "a@b.c"}', queue="mail", priority=7, max_attempts=3, timeout=9.0, tenant="acme",
        subject="order:7", key="k", tags=("x",), category="notifications", payload_version="2.0", gate="serial::1",
        headers_json='{"rota.schedule": "nightly"}',
    )  # fmt: skip
    new = follower(dead, new_id(), by="ann")

    for name in (
        "task", "payload_json", "queue", "priority", "max_attempts", "timeout", "tenant", "subject", "key", "tags",
        "category", "payload_version", "gate",
    ):  # fmt: skip
        assert getattr(new, name) == getattr(dead, name)
    assert (new.parent_id, new.correlation_id, new.created_by) == (dead.id, dead.correlation, "ann")
    headers = json.loads(new.headers_json)
    assert headers["rota.schedule"] == "nightly"
    assert headers["rota.effect_key"] == effect_key(dead)
    assert reprocess_of(a_stored_job(headers_json=new.headers_json)) == dead.id


def test_a_job_that_follows_nobody_says_so():
    assert reprocess_of(a_stored_job()) is None
    assert reprocess_of(a_stored_job(headers_json='{"rota.reprocess_of": "nonsense"}')) is None


def test_the_follower_of_one_that_killed_its_process_runs_alone():
    assert losses_of_follower(a_dead(error_class="crash")) == 1
    assert losses_of_follower(a_dead(error_class="retryable")) == 0


def test_a_filter_is_read_back_from_a_stored_operation_as_it_was():
    moment = a_stored_job().run_at
    wanted = DeadFilter((Review.PENDING,), "abc", task="mail", since=moment, until=moment)

    assert DeadFilter.from_json(json.loads(json.dumps(wanted.as_json()))) == wanted
    assert DeadFilter.from_json(DeadFilter().as_json()) == DeadFilter()


def test_what_became_of_the_new_job_is_told_in_words():
    job = new_id()

    assert how_it_went(job, State.COMPLETED) == f"the new job {job} completed"
    assert how_it_went(job, State.DEAD) == f"the new job {job} died too"
    assert how_it_went(job, State.CANCELLED) == f"the new job {job} was cancelled"
    assert how_it_went(None, None) == "the new job is gone"


def test_the_diagram_draws_every_arrow_once():
    lines = diagram().splitlines()

    assert len(lines) == len(set(lines))
    assert "    pending_review --> reprocessing: reprocess" in lines
    assert {f"    {stands.value} --> [*]" for stands in CLOSED} <= set(lines)
