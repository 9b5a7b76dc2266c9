"""The audit read again: a good trail is believed, and each kind of wrong is found."""

from __future__ import annotations

import pytest

from chaos.trail import Letter, Told, astray, wrong

ACK, DISCARD, RESOLVED, RETURNED = (
    f"job_dlq_{word}" for word in ("acknowledged", "discarded", "resolved", "returned")
)
ASKED, MADE = "job_dlq_reprocess_requested", "job_dlq_reprocess_success"


def told(*actions: str, new_job: str = "n") -> list[Told]:
    return [Told("a", action, f"job {new_job}" if action == MADE else None) for action in actions]


@pytest.mark.parametrize(
    ("review", "actions"),
    [
        ("pending_review", ()),
        ("acknowledged", (ACK,)),
        ("discarded", (ACK, DISCARD)),
        ("reprocessing", (ASKED, MADE)),
        ("resolved", (ASKED, MADE, RESOLVED)),
        ("resolved", (ASKED, MADE, RETURNED, ASKED, MADE, RESOLVED)),
        ("pending_review", (DISCARD, "retry")),
        ("discarded", ("kill", "retry", "hold", DISCARD)),
    ],
)
def test_a_legal_walk_is_believed(review, actions):
    assert wrong(Letter("a", review, "n"), told(*actions)) is None


@pytest.mark.parametrize(
    ("review", "actions", "what"),
    [
        ("acknowledged", (), "its review is acknowledged, and the audit tells of pending_review"),
        ("acknowledged", (ACK, ACK), "job_dlq_acknowledged was told while its review was acknowledged"),
        ("reprocessing", (ASKED, MADE, ASKED, MADE), "requested was told while its review was reprocessing"),
        ("reprocessing", (ASKED, MADE, MADE), "a new job was made, and nobody had asked for it"),
        ("reprocessing", (ASKED,), "a new job was asked for, and none was made"),
        ("reprocessing", (ASKED, MADE, DISCARD), "discarded was told while its review was reprocessing"),
        ("resolved", (RESOLVED,), "resolved was told while its review was pending_review"),
    ],
)
def test_a_row_too_many_or_too_few_is_found(review, actions, what):
    assert what in (wrong(Letter("a", review), told(*actions)) or "")


def test_a_new_job_that_the_audit_does_not_know_is_found():
    assert "tells of job other" in (
        wrong(Letter("a", "reprocessing", "n"), told(ASKED, MADE, new_job="other")) or ""
    )


@pytest.mark.parametrize(
    ("state", "actions"),
    [
        ("completed", ()),
        ("held", ("hold",)),
        ("completed", ("hold", "release", "hold", "release")),
        ("cancelled", ("hold", "cancel")),
        ("dead", ("hold", "kill", "reveal")),
        (None, ("hold", "delete")),
        ("held", ("hold", "release", "hold", "edit")),
    ],
)
def test_a_job_that_was_set_aside_and_brought_back_is_believed(state, actions):
    assert astray(state, told(*actions)) is None


@pytest.mark.parametrize(
    ("state", "actions", "what"),
    [
        ("held", (), "it is held, and the audit tells that it is not held"),
        ("completed", ("hold",), "it is completed, and the audit tells that it is held"),
        (None, ("hold",), "it is gone, and the audit tells that it is held"),
        ("held", ("hold", "hold"), "it was held while it was held"),
        ("completed", ("hold", "release", "release"), "it was released, and nobody had held it"),
    ],
)
def test_an_action_that_is_told_twice_or_not_at_all_is_found(state, actions, what):
    assert astray(state, told(*actions)) == what


def test_who_acted_is_always_told():
    assert astray("completed", [Told("a", "cancel", by="")]) == "cancel was told, and not by whom"
