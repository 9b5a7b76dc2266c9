"""The audit read again: what it tells of a job is a legal walk that ends where the job stands.

A row too many, or too few, is a step that the table of moves does not have. Of dead letters the
walk goes through their review; of all jobs it tells who set them aside, and who brought them back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota._core.review import ACTIONS, REQUESTED, REVIEW_MOVES, SUCCESS, Review, ReviewVerb

VERBS = {action: verb for verb, action in ACTIONS.items()} | {REQUESTED: ReviewVerb.REPROCESS}
MOVES = frozenset({"hold", "release", "cancel", "kill", "delete", "retry", "fail"})
"""What people do that moves a job."""
TARGETS = {(move.origin, move.verb): move.target for move in REVIEW_MOVES}


class Told(NamedTuple):
    """One row of the audit."""

    job: str
    action: str
    after: str | None = None
    by: str = "somebody"


class Letter(NamedTuple):
    """A dead job as it stands."""

    job: str
    review: str
    new_job: str | None = None


def wrong(letter: Letter, told: Iterable[Told]) -> str | None:
    """What the audit, oldest first, has wrong about this dead letter."""
    stands: Review = Review.PENDING
    asked, made = False, None
    for row in told:
        if row.action == "retry":  # it ran again in place, and died again
            stands, asked, made = Review.PENDING, False, None
        elif row.action == SUCCESS:
            if not asked:
                return "a new job was made, and nobody had asked for it"
            asked, made = False, row.after
        elif row.action in VERBS:
            target = TARGETS.get((stands, VERBS[row.action]))
            if target is None or asked:
                return f"{row.action} was told while its review was {stands.value}"
            stands, asked = target, row.action == REQUESTED
    if asked:
        return "a new job was asked for, and none was made"
    if stands != letter.review:
        return f"its review is {letter.review}, and the audit tells of {stands.value}"
    if letter.new_job is not None and made is not None and made != f"job {letter.new_job}":
        return f"its work is done again by {letter.new_job}, and the audit tells of {made}"
    return None


def astray(state: str | None, told: Iterable[Told]) -> str | None:
    """What the audit, oldest first, has wrong about a job of this state (None: it is gone) that people acted on."""
    held = False
    for row in told:
        if not row.by:
            return f"{row.action} was told, and not by whom"
        if row.action == "hold" and held:
            return "it was held while it was held"
        if row.action == "release" and not held:
            return "it was released, and nobody had held it"
        held = row.action == "hold" if row.action in MOVES else held
    if held != (state == "held"):
        return f"it is {state or 'gone'}, and the audit tells that it is {'held' if held else 'not held'}"
    return None
