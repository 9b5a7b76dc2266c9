"""The words of the five systems, in both directions."""

from __future__ import annotations

from uuid import UUID

import pytest

from rota._core.job import State
from rota._core.vocabulary import Seed, state_for, word_for, words, worker_for_delphi, worker_from_delphi


def said(seed: Seed) -> dict[str, str | None]:
    return {state.value: word_for(seed, state) for state in State}


@pytest.mark.req("D8")
def test_delphi_says():
    assert said(Seed.DELPHI) == {
        "pending": "PENDING",
        "blocked": "PENDING",
        "held": None,
        "running": "PROCESSING",
        "completed": "COMPLETED",
        "partial": "COMPLETED",
        "dead": "FAILED",
        "cancelled": "CANCELLED",
    }
    assert word_for(Seed.DELPHI, State.PENDING, label="snoozed") == "AWAITING_RECHECK"


def test_doc20_says():
    assert said(Seed.DOC20) == {
        "pending": "pending",
        "blocked": "pending",
        "held": None,
        "running": "processing",
        "completed": "completed",
        "partial": "completed",
        "dead": "dlq",
        "cancelled": None,
    }


@pytest.mark.req("L2")
def test_lipas_says():
    assert said(Seed.LIPAS) == {
        "pending": "pending",
        "blocked": "pending",
        "held": "paused",
        "running": "processing",
        "completed": "completed",
        "partial": "completed",
        "dead": "dead",
        "cancelled": None,
    }
    assert word_for(Seed.LIPAS, State.PENDING, label="retrying") == "failed"
    assert words(Seed.LIPAS) == {"pending", "processing", "completed", "failed", "dead", "paused"}


def test_datajoint_says():
    assert said(Seed.DATAJOINT) == {
        "pending": "scheduled",
        "blocked": "scheduled",
        "held": "ignore",
        "running": "reserved",
        "completed": "success",
        "partial": None,
        "dead": "error",
        "cancelled": None,
    }
    assert state_for(Seed.DATAJOINT, "pending") is State.PENDING


@pytest.mark.req("V5")
def test_docverse_says():
    assert said(Seed.DOCVERSE) == {
        "pending": "queued",
        "blocked": "queued",
        "held": None,
        "running": "in_progress",
        "completed": "completed",
        "partial": "completed_with_errors",
        "dead": "failed",
        "cancelled": "cancelled",
    }


@pytest.mark.parametrize("seed", Seed)
def test_every_word_is_understood_and_said_again_by_the_same_system(seed: Seed):
    older_name = {(Seed.DATAJOINT, "pending")}  # DataJoint 2.x calls scheduled jobs so; we say the older word
    for word in words(seed):
        state = state_for(seed, word)
        spoken = {word_for(seed, state, label=label) for label in (None, "retrying", "snoozed")}

        assert word in spoken or (seed, word) in older_name


@pytest.mark.parametrize("seed", Seed)
def test_a_state_that_has_a_word_comes_back_as_itself_or_its_plainer_twin(seed: Seed):
    twins = {State.BLOCKED: State.PENDING, State.PARTIAL: State.COMPLETED}
    for state in State:
        word = word_for(seed, state)
        if word is not None:
            assert state_for(seed, word) in (state, twins.get(state))


def test_a_label_changes_no_state_but_pending():
    assert word_for(Seed.LIPAS, State.RUNNING, label="retrying") == "processing"
    assert word_for(Seed.DOCVERSE, State.PENDING, label="retrying") == "queued"


def test_a_word_of_another_system_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError) as refused:
        state_for(Seed.DOCVERSE, "PROCESSING")

    assert str(refused.value) == (
        "'PROCESSING' is not a state of docverse; its states are "
        "cancelled, completed, completed_with_errors, failed, in_progress, queued."
    )


@pytest.mark.req("D10")
def test_delphi_names_a_worker_even_where_there_is_none():
    session = UUID(int=5)

    assert worker_for_delphi(None) == "none"
    assert worker_for_delphi(session) == str(session)
    assert worker_from_delphi("none") is None
    assert worker_from_delphi("") is None
    assert worker_from_delphi("worker-7") == "worker-7"
