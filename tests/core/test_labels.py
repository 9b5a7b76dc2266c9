"""The state of a job in the words people use, and what else a job can say of itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import a_job, a_stored_job
from rota._core.job import TERMINAL, State

NOW = a_stored_job().run_at
LATER = NOW + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("label", "state", "fields"),
    [
        ("pending", State.PENDING, {}),
        ("scheduled", State.PENDING, {"run_at": LATER}),
        ("snoozed", State.PENDING, {"run_at": LATER, "snoozes": 1}),
        ("pending", State.PENDING, {"snoozes": 1}),
        ("retrying", State.PENDING, {"attempt": 1, "run_at": LATER}),
        ("retrying", State.PENDING, {"attempt": 1}),
        ("parked", State.PENDING, {"parked": "gate", "attempt": 1}),
        ("blocked", State.BLOCKED, {}),
        ("held", State.HELD, {"run_at": LATER}),
        ("running", State.RUNNING, {}),
        ("cancelling", State.RUNNING, {"cancel_requested_at": NOW}),
        ("completed", State.COMPLETED, {}),
        ("partial", State.PARTIAL, {}),
        ("dead", State.DEAD, {"attempt": 5}),
        ("cancelled", State.CANCELLED, {"cancel_requested_at": NOW}),
    ],
)
def test_a_job_is_labelled_in_the_words_people_use(label: str, state: State, fields: dict):
    assert a_stored_job(state, **fields).label(NOW) == label


def test_four_states_are_terminal():
    assert {state for state in State if state.terminal} == TERMINAL
    assert {state.value for state in TERMINAL} == {"completed", "partial", "dead", "cancelled"}


@pytest.mark.req("L11")
def test_a_job_without_a_correlation_is_correlated_by_its_own_id():
    job = a_stored_job()

    assert job.correlation == str(job.id)
    assert job._replace(correlation_id="user-action-123").correlation == "user-action-123"


def test_payload_and_result_are_read_from_their_json():
    job = a_stored_job(payload_json='{"to": "a@b.c"}', result_json="[1, null]")

    assert job.payload == {"to": "a@b.c"}
    assert job.result == [1, None]
    assert a_stored_job().result is None


def test_the_duration_of_a_job_is_that_of_its_last_attempt():
    job = a_stored_job(State.COMPLETED, claimed_at=NOW, finished_at=LATER)

    assert job.duration == timedelta(seconds=1)
    assert job._replace(finished_at=None).duration is None
    assert job._replace(claimed_at=None).duration is None


def test_the_fence_is_the_version():
    assert a_stored_job(version=7).fence == 7


def test_only_jobs_with_keys_must_look_at_other_jobs():
    assert not a_job().keyed
    assert a_job(key="a").keyed
    assert a_job(unique_key="a").keyed
