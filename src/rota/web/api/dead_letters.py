"""Dead letters over HTTP: look at them, acknowledge, discard, and do their work again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Body, Query
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from rota._core.dead_letter import DeadFilter, DeadLetter
from rota._core.ids import public_id
from rota._core.review import Review, ReviewVerb
from rota.admin.dead_letters import ReviewDone
from rota.web.api.audit import AuditShown, audit_shown
from rota.web.api.shapes import AttemptShown, JobId, JobShown, attempt_shown, shown
from rota.web.api.spans import Moment
from rota.web.asking import Asked
from rota.web.paging import Page, Paged
from rota.web.roles import Role, Routes

routes = Routes("dead_letters", "/dead-letters")


class LetterShown(BaseModel):
    """A dead job, why it died, and where its review stands."""

    job: JobShown
    review: Review
    group: str | None = Field(description="Its fingerprint: like failures have the same.")
    error_type: str | None
    frame: str | None = Field(description="Where in your own code it was raised.")
    reviewed_by: str | None
    reviewed_at: datetime | None
    notes: str | None
    reprocessed_as: UUID | None = Field(description="The newest job that did, or does, its work again.")
    newer_success: UUID | None = Field(
        description="A later job of its task and its subject or key that completed: perhaps nothing is left to do."
    )


class LetterDetails(LetterShown):
    """A dead letter with its history."""

    attempts: list[AttemptShown]
    audit: list[AuditShown]
    new_job: JobShown | None


class Reviewing(BaseModel):
    """Why a dead letter is reviewed so."""

    model_config = ConfigDict(extra="forbid")

    notes: str | None = Field(
        None, max_length=2000, description="Kept with the dead letter and in the audit."
    )
    version: StrictInt | None = Field(None, description="Only if it is still at this version; else 409.")


class Reprocessing(Reviewing):
    """How the work of a dead letter is done again."""

    edits: dict[str, Any] | None = Field(
        None, description="Arguments that replace those of the dead letter; checked by the task's schema."
    )


class ReviewedShown(BaseModel):
    """What was done."""

    id: UUID
    verb: ReviewVerb
    before: str
    after: str
    already: bool = Field(description="Somebody did the same a moment before; nothing was done twice.")
    new_job: UUID | None = None
    queue_url: str | None = Field(None, description="Where the new job tells how it goes.")


REVIEWING, REPROCESSING = Reviewing(), Reprocessing()
Said = Annotated[Reviewing, Body()]


@routes.get(verb="list", role=Role.VIEWER)
async def list_letters(
    asked: Asked,
    paging: Paged,
    *,
    review: Annotated[list[Review] | None, Query(description="May be repeated; else all.")] = None,
    group: str | None = None,
    task: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    error_class: str | None = None,
    subject: str | None = None,
    correlation_id: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Page[LetterShown]:
    """Dead letters, newest first. Every filter narrows."""
    wanted = DeadFilter(
        tuple(review or ()),
        group,
        task,
        queue,
        tenant,
        error_class,
        subject,
        correlation_id,
        since,
        until,
        before=paging.before,
        limit=paging.fetch,
    )
    found, now = await asked.admin.dead_letters(wanted), await asked.admin.store.now()
    return paging.page(
        found,
        lambda letter: letter_shown(asked, letter, now, listed=True),
        position=lambda letter: letter.job.id,
    )


@routes.get("/{job_id}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, job_id: JobId) -> LetterDetails:
    """One dead letter with its attempts, what was done to it, and the job that does its work again."""
    view = await asked.admin.show_dead_letter(job_id)
    return LetterDetails(
        **letter_shown(asked, view.letter, view.now).model_dump(),
        attempts=[attempt_shown(attempt) for attempt in view.attempts],
        audit=[audit_shown(row) for row in view.audit],
        new_job=None if view.new_job is None else shown(asked, view.new_job, view.now),
    )


@routes.post("/{job_id}/acknowledge", verb="acknowledge", role=Role.OPERATOR)
async def acknowledge(asked: Asked, job_id: JobId, why: Said = REVIEWING) -> ReviewedShown:
    """Note that somebody knows of it; nothing more is done."""
    return reviewed(asked, await asked.admin.acknowledge(job_id, reason=why.notes, version=why.version))


@routes.post("/{job_id}/discard", verb="discard", role=Role.OPERATOR)
async def discard(asked: Asked, job_id: JobId, why: Said = REVIEWING) -> ReviewedShown:
    """Give its work up."""
    return reviewed(asked, await asked.admin.discard(job_id, reason=why.notes, version=why.version))


@routes.post("/{job_id}/reprocess", verb="reprocess", role=Role.OPERATOR)
async def reprocess(
    asked: Asked, job_id: JobId, why: Annotated[Reprocessing, Body()] = REPROCESSING
) -> ReviewedShown:
    """Do its work again in a new job, with its payload; `edits` replace arguments by name."""
    done = await asked.admin.reprocess(job_id, reason=why.notes, edits=why.edits, version=why.version)
    return reviewed(asked, done)


def letter_shown(asked: Asked, letter: DeadLetter, now: datetime, *, listed: bool = False) -> LetterShown:
    return LetterShown(
        job=shown(asked, letter.job, now, listed=listed),
        review=letter.review,
        group=letter.fingerprint,
        error_type=letter.error_type,
        frame=letter.frame,
        reviewed_by=letter.reviewed_by,
        reviewed_at=letter.reviewed_at,
        notes=letter.notes,
        reprocessed_as=letter.reprocessed_as,
        newer_success=letter.newer_success,
    )


def reviewed(asked: Asked, done: ReviewDone) -> ReviewedShown:
    new = done.new_job
    return ReviewedShown(
        id=done.letter.job.id,
        verb=done.verb,
        before=done.before,
        after=done.after,
        already=done.already,
        new_job=new,
        queue_url=None if new is None else asked.url("docverse.show", job_id=public_id(new)),
    )
