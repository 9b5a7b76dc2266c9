"""The state words of the five systems that Rota unites, in both directions; views and importers translate here."""

from __future__ import annotations

from enum import StrEnum
from uuid import UUID

from rota._core.job import State


class Seed(StrEnum):
    """A system whose words Rota understands."""

    DELPHI = "delphi"
    DOC20 = "doc20"
    LIPAS = "lipas"
    DATAJOINT = "datajoint"
    DOCVERSE = "docverse"


NOBODY = "none"
"""Delphi's word for "no worker yet": its index needs a text that is not empty."""

# The first word of a state is the one that Rota says; all of them are understood.
# A state that is missing has no word in that system, so its views leave such jobs out.
_WORDS: dict[Seed, dict[State, tuple[str, ...]]] = {
    Seed.DELPHI: {
        State.PENDING: ("PENDING", "AWAITING_RECHECK"),
        State.BLOCKED: ("PENDING",),
        State.RUNNING: ("PROCESSING",),
        State.COMPLETED: ("COMPLETED",),
        State.PARTIAL: ("COMPLETED",),  # told apart by its result_type, PARTIAL
        State.DEAD: ("FAILED",),
        State.CANCELLED: ("CANCELLED",),
    },
    Seed.DOC20: {
        State.PENDING: ("pending",),
        State.BLOCKED: ("pending",),
        State.RUNNING: ("processing",),
        State.COMPLETED: ("completed",),
        State.PARTIAL: ("completed",),
        State.DEAD: ("dlq",),
    },
    Seed.LIPAS: {
        State.PENDING: ("pending", "failed"),
        State.BLOCKED: ("pending",),
        State.HELD: ("paused",),
        State.RUNNING: ("processing",),
        State.COMPLETED: ("completed",),
        State.PARTIAL: ("completed",),
        State.DEAD: ("dead",),
    },
    Seed.DATAJOINT: {
        State.PENDING: ("scheduled", "pending"),
        State.BLOCKED: ("scheduled",),
        State.HELD: ("ignore",),
        State.RUNNING: ("reserved",),
        State.COMPLETED: ("success",),
        State.DEAD: ("error",),
    },
    Seed.DOCVERSE: {
        State.PENDING: ("queued",),
        State.BLOCKED: ("queued",),
        State.RUNNING: ("in_progress",),
        State.COMPLETED: ("completed",),
        State.PARTIAL: ("completed_with_errors",),
        State.DEAD: ("failed",),
        State.CANCELLED: ("cancelled",),
    },
}
_LABELS = {(Seed.LIPAS, "retrying"): "failed", (Seed.DELPHI, "snoozed"): "AWAITING_RECHECK"}


def words(seed: Seed) -> frozenset[str]:
    """Every word that a system has for the state of a job."""
    return frozenset(word for known in _WORDS[seed].values() for word in known)


def word_for(seed: Seed, state: State, *, label: str | None = None) -> str | None:
    """A state in a system's word, or None where it has none.

    `label` is the job's label: LIPAS says `failed` for a job that will be
    retried, Delphi AWAITING_RECHECK for one that asked to be run later.
    """
    if state is State.PENDING and label is not None and (seed, label) in _LABELS:
        return _LABELS[seed, label]
    known = _WORDS[seed].get(state)
    return known[0] if known else None


def state_for(seed: Seed, word: str) -> State:
    """The state that a system means by its word. Where two states share a word, the plainer one."""
    for state in (State.PENDING, State.HELD, State.RUNNING, *_WORDS[seed]):
        if word in _WORDS[seed].get(state, ()):
            return state
    known = ", ".join(sorted(words(seed)))
    raise ValueError(f"{word!r} is not a state of {seed.value}; its states are {known}.")


def worker_for_delphi(session_id: UUID | None) -> str:
    """Who holds a job, as Delphi writes it: never empty."""
    return NOBODY if session_id is None else str(session_id)


def worker_from_delphi(word: str) -> str | None:
    """Who holds a job, read from Delphi's word."""
    return None if word in ("", NOBODY) else word
