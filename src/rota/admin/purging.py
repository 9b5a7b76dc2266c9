"""Purging a queue: every job of it that does not run is cancelled, as an operation like any other on many jobs.

Not a delete: keys, dependants and the audit stay true, it tells how far it is,
it can be stopped, and what it cancelled can be retried.
"""

from __future__ import annotations

from rota._core.actions import Verb
from rota._core.filtering import quoted
from rota._core.job import State
from rota.errors import RotaError

VERB = Verb.CANCEL
WAITING = (State.PENDING, State.BLOCKED, State.HELD)
"""What a purge takes: all that is unfinished, but for what runs."""


class NotTheName(RotaError, ValueError):
    """Whoever wants a queue purged has to type its name, and typed another."""

    def __init__(self, queue: str, typed: str) -> None:
        said = f"{typed!r} was typed, and the queue is {queue!r}" if typed else f"the queue is {queue!r}"
        super().__init__(
            f"the name does not fit: {said}. Nothing was purged. Type its name exactly to purge it."
        )


def purge_filter(queue: str) -> str:
    """Which jobs a purge of this queue takes, in the filter language."""
    return f"queue:{quoted(queue)} state:{','.join(WAITING)}"


def checked_name(queue: str, typed: str | None) -> None:
    """Refuse a purge of another queue than the one whose name was typed."""
    said = (typed or "").strip()
    if said != queue.strip():
        raise NotTheName(queue, said)


def purge_reason(queue: str, reason: str | None) -> str:
    """What stands with every job that it cancels."""
    return reason or f"the queue {queue} was purged"
