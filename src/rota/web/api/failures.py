"""Failures over HTTP: dead letters that are alike, together; and one verb on a whole group."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Body, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from rota._core.dead_letter import DeadFilter, FailureGroup
from rota._core.redaction import redacted_text
from rota._core.review import Review, ReviewVerb
from rota.web.api.dead_letters import LetterShown, letter_shown
from rota.web.api.operations import SLOWEST, OperationShown, begun
from rota.web.asking import Asked
from rota.web.roles import Role, Routes

routes = Routes("failures", "/failures")


class GroupShown(BaseModel):
    """Dead letters of one task that failed in the same way at the same place."""

    fingerprint: str
    task: str
    error_class: str | None
    error_type: str | None
    frame: str | None = Field(description="Where in your own code it was raised.")
    message: str | None = Field(description="Of the newest one.")
    letters: int
    trend: str = Field(
        description="The last hour against the one before: new, rising, steady, falling, quiet."
    )
    first_seen: datetime
    last_seen: datetime
    last_hour: int
    hour_before: int
    example: UUID = Field(description="The newest one.")


class GroupDetails(GroupShown):
    """One group with its newest members."""

    stack: str | None = Field(description="Of the newest one.")
    newest: list[LetterShown]


class Deciding(BaseModel):
    """Why a group is treated so, and how fast."""

    model_config = ConfigDict(extra="forbid")

    notes: str | None = Field(None, max_length=2000)
    rate: float | None = Field(
        None, ge=SLOWEST, le=10_000, description="Dead letters a second; null: as fast as they go."
    )
    dry_run: StrictBool = Field(False, description="Only count how many would be met.")


DECIDING = Deciding()
Said = Annotated[Deciding, Body()]


@routes.get(verb="list", role=Role.VIEWER)
async def list_groups(
    asked: Asked,
    task: str | None = None,
    review: Annotated[
        list[Review] | None, Query(description="May be repeated; else what waits for review.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> list[GroupShown]:
    """Like failures together, the group that was seen last first."""
    wanted = DeadFilter(tuple(review or ()), task=task, limit=limit)
    return [group_shown(group) for group in await asked.admin.failures(wanted)]


@routes.get("/{fingerprint}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, fingerprint: str) -> GroupDetails:
    """One group with its newest members, whatever their reviews."""
    view = await asked.admin.failure(fingerprint)
    return GroupDetails(
        **group_shown(view.group).model_dump(),
        stack=None if view.stack is None else redacted_text(view.stack),
        newest=[letter_shown(asked, letter, view.now, listed=True) for letter in view.letters],
    )


@routes.post("/{fingerprint}/acknowledge", verb="acknowledge", role=Role.OPERATOR, status_code=202)
async def acknowledge(asked: Asked, fingerprint: str, why: Said = DECIDING) -> OperationShown:
    """Note that somebody knows of all that wait for review in this group, as a tracked operation."""
    return await _decided(asked, ReviewVerb.ACKNOWLEDGE, fingerprint, why)


@routes.post("/{fingerprint}/discard", verb="discard", role=Role.OPERATOR, status_code=202)
async def discard(asked: Asked, fingerprint: str, why: Said = DECIDING) -> OperationShown:
    """Give the work of this group up, as a tracked operation."""
    return await _decided(asked, ReviewVerb.DISCARD, fingerprint, why)


@routes.post("/{fingerprint}/reprocess", verb="reprocess", role=Role.OPERATOR, status_code=202)
async def reprocess(asked: Asked, fingerprint: str, why: Said = DECIDING) -> OperationShown:
    """Do the work of this group again, each in a new job, as a tracked operation."""
    return await _decided(asked, ReviewVerb.REPROCESS, fingerprint, why)


async def _decided(asked: Asked, verb: ReviewVerb, fingerprint: str, why: Deciding) -> OperationShown:
    group = (await asked.admin.failure(fingerprint)).group  # the beginning of a fingerprint names it too
    wanted = DeadFilter(group=group.fingerprint)
    return await begun(asked, verb, wanted, reason=why.notes, rate=why.rate, dry_run=why.dry_run)


def group_shown(group: FailureGroup) -> GroupShown:
    message = None if group.message is None else redacted_text(group.message)
    return GroupShown(**group._asdict() | {"message": message}, trend=group.trend)
