"""The review of a dead job: its steps, the legal moves as one table, and what people may do with it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from rota._core.job import Job, State
from rota._core.redaction import redacted_text


class Review(StrEnum):
    """Where the review of a dead job stands."""

    PENDING = "pending_review"  # nobody has looked at it yet, or its reprocessing failed
    REPROCESSING = "reprocessing"  # a new job does its work again
    ACKNOWLEDGED = "acknowledged"  # somebody knows of it; nothing more is to be done for now
    RESOLVED = "resolved"  # the new job did the work
    DISCARDED = "discarded"  # somebody decided that the work need not be done


CLOSED = frozenset({Review.ACKNOWLEDGED, Review.RESOLVED, Review.DISCARDED})
"""Reviews after which retention may remove the job."""


class ReviewVerb(StrEnum):
    """What happens to a review. The first three are people's, the last two the engine's."""

    ACKNOWLEDGE = "acknowledge"
    DISCARD = "discard"
    REPROCESS = "reprocess"
    RESOLVE = "resolve"
    RETURN = "return"


class ReviewMove(NamedTuple):
    """One arrow: who may take it, and what it means."""

    origin: Review | None
    target: Review
    verb: ReviewVerb | None
    who: str
    meaning: str


REVIEW_MOVES: tuple[ReviewMove, ...] = (
    ReviewMove(None, Review.PENDING, None, "engine", "the job died; somebody must look"),
    ReviewMove(
        Review.PENDING, Review.ACKNOWLEDGED, ReviewVerb.ACKNOWLEDGE, "operator", "known, and left as it is"
    ),
    ReviewMove(
        Review.PENDING,
        Review.ACKNOWLEDGED,
        ReviewVerb.ACKNOWLEDGE,
        "engine",
        "it was the new job of another dead letter, which is back in review",
    ),
    ReviewMove(Review.PENDING, Review.DISCARDED, ReviewVerb.DISCARD, "operator", "the work is given up"),
    ReviewMove(Review.ACKNOWLEDGED, Review.DISCARDED, ReviewVerb.DISCARD, "operator", "the work is given up"),
    ReviewMove(
        Review.PENDING,
        Review.REPROCESSING,
        ReviewVerb.REPROCESS,
        "operator",
        "a new job with its payload does the work again",
    ),
    ReviewMove(
        Review.ACKNOWLEDGED,
        Review.REPROCESSING,
        ReviewVerb.REPROCESS,
        "operator",
        "a new job with its payload does the work again",
    ),
    ReviewMove(Review.REPROCESSING, Review.RESOLVED, ReviewVerb.RESOLVE, "engine", "the new job completed"),
    ReviewMove(
        Review.REPROCESSING,
        Review.PENDING,
        ReviewVerb.RETURN,
        "engine",
        "the new job died, was cancelled or is gone",
    ),
)

ACTIONS = {
    ReviewVerb.ACKNOWLEDGE: "job_dlq_acknowledged",
    ReviewVerb.DISCARD: "job_dlq_discarded",
    ReviewVerb.RESOLVE: "job_dlq_resolved",
    ReviewVerb.RETURN: "job_dlq_returned",
}
"""How the audit calls them. A reprocessing is a pair: the wish, and that the new job is there."""
REQUESTED = "job_dlq_reprocess_requested"
SUCCESS = "job_dlq_reprocess_success"
ENGINE = "rota"
"""Who the audit names where no person acted."""

_TARGETS = {(move.origin, move.verb): move.target for move in REVIEW_MOVES if move.verb is not None}


class ReviewChange(NamedTuple):
    """One write: this dead job, if it still has this version, is reviewed so."""

    job_id: UUID
    version: int
    origin: Review
    target: Review
    by: str
    notes: str | None = None


class Landed(StrEnum):
    """What became of the write of a review."""

    APPLIED = "applied"
    ALREADY = "already"  # it was done before: a lost answer repeated, or a second click
    FENCED = "fenced"  # somebody else was faster with something else; nothing was changed


class Reviewed(NamedTuple):
    """The answer to a change of a review."""

    landed: Landed
    review: Review | None
    """Where the review stands now; None: the job is not dead any more, or gone."""
    new_job: UUID | None = None
    """The job that does, or did, its work again."""


class ReviewRefusal(NamedTuple):
    """Why a review cannot be taken there, and what could be done instead."""

    stands: str
    """Where the review stands, or the state of a job that is not dead."""
    verb: ReviewVerb
    hint: str


def origins(verb: ReviewVerb) -> tuple[Review, ...]:
    """The reviews that `verb` may be done to."""
    return tuple(origin for (origin, its_verb) in _TARGETS if its_verb is verb and origin is not None)


def review(job: Job, verb: ReviewVerb, *, by: str, notes: str | None = None) -> ReviewChange | ReviewRefusal:
    """Decide what `verb` does to the review of `job`. Pure; the store applies it if the version still holds."""
    if job.state is not State.DEAD or job.review is None:
        return ReviewRefusal(job.state.value, verb, "Only a dead job is reviewed.")
    stands = Review(job.review)
    target = _TARGETS.get((stands, verb))
    if target is None:
        return ReviewRefusal(stands.value, verb, _HINTS[stands])
    kept = None if notes is None else redacted_text(notes)  # as the audit tells it: every face shows both
    return ReviewChange(job.id, job.version, stands, target, by, kept)


def ended(state: State | None) -> ReviewVerb | None:
    """What the end of the new job means for the review of the dead one; nothing while it lives. None: it is gone."""
    if state in (State.COMPLETED, State.PARTIAL):
        return ReviewVerb.RESOLVE
    if state is None or state.terminal:
        return ReviewVerb.RETURN
    return None


def diagram() -> str:
    """The moves as a Mermaid state diagram, in the table's order."""
    lines = ["stateDiagram-v2"]
    for move in REVIEW_MOVES:
        origin = move.origin.value if move.origin else "[*]"
        line = f"    {origin} --> {move.target.value}: {move.verb.value if move.verb else 'die'}"
        if line not in lines:
            lines.append(line)
    lines += [f"    {closed.value} --> [*]" for closed in Review if closed in CLOSED]
    return "\n".join(lines)


_HINTS = {
    Review.PENDING: "It waits for a review: acknowledge, discard or reprocess it.",
    Review.REPROCESSING: "A new job does its work now; wait for its end, or cancel that job.",
    Review.ACKNOWLEDGED: "Reprocess or discard it instead.",
    Review.RESOLVED: "Its work has been done.",
    Review.DISCARDED: "It was given up; `rota jobs retry` still runs it again in place.",
}
