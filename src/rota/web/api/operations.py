"""Bulk operations over HTTP: one verb on all that match, tracked and stoppable; on dead letters they begin here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Body, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from rota._core.actions import Verb
from rota._core.dead_letter import DeadFilter
from rota._core.operation import Operation, OperationState
from rota._core.redaction import redacted_text
from rota._core.review import Review, ReviewVerb
from rota.admin.operations import words
from rota.web.api.spans import Moment
from rota.web.asking import Asked
from rota.web.driving import drivers_of
from rota.web.problems import Problem
from rota.web.roles import Role, Routes

routes = Routes("operations", "/operations")

BulkVerb = Literal[ReviewVerb.ACKNOWLEDGE, ReviewVerb.DISCARD, ReviewVerb.REPROCESS]
SLOWEST = 0.01
"""Dead letters a second: what is slower never ends."""


class Which(BaseModel):
    """Which dead letters are meant; every field narrows. None at all: those that nobody has looked at."""

    model_config = ConfigDict(extra="forbid")

    reviews: tuple[Review, ...] = ()
    group: str | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    error_class: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    since: Moment | None = None
    until: Moment | None = None


class Beginning(BaseModel):
    """What is to be done to many."""

    model_config = ConfigDict(extra="forbid")

    verb: BulkVerb
    which: Which = Which()
    reason: str | None = Field(None, max_length=2000)
    rate: float | None = Field(
        None, ge=SLOWEST, le=10_000, description="Dead letters a second; null: as fast as they go."
    )
    dry_run: StrictBool = Field(False, description="Only count how many would be met.")


class Steering(BaseModel):
    """Why an operation is stopped or resumed."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(None, max_length=2000)


class OperationShown(BaseModel):
    """One operation, and how far it is."""

    id: UUID | None = Field(description="Null: nothing was begun, only counted.")
    url: str | None
    verb: ReviewVerb | Verb
    what: str = Field(description="In words.")
    wanted: dict[str, Any]
    actor: str
    reason: str | None
    rate: float | None
    state: OperationState | None
    total: int = Field(description="How many matched when it began.")
    done: int = 0
    capped: bool = Field(False, description="There are more than were counted.")
    refused: int = Field(0, description="Their state or review did not allow it, or their task is unknown.")
    changed: int = Field(0, description="Somebody else changed them first; they are as he left them.")
    began_at: datetime | None = None
    updated_at: datetime | None = None


STEERING = Steering()
Said = Annotated[Steering, Body()]


@routes.get(verb="list", role=Role.VIEWER)
async def list_operations(
    asked: Asked, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> list[OperationShown]:
    """The operations, newest first."""
    return [operation_shown(asked, one) for one in await asked.admin.operations(limit=limit)]


@routes.post(verb="begin", role=Role.OPERATOR, status_code=202)
async def begin(asked: Asked, wish: Annotated[Beginning, Body()]) -> OperationShown:
    """Do one verb to every dead letter that matches now. It goes on here; `url` tells how far it is."""
    wanted = DeadFilter(**dict(wish.which))
    return await begun(asked, wish.verb, wanted, reason=wish.reason, rate=wish.rate, dry_run=wish.dry_run)


@routes.get("/{operation_id}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, operation_id: UUID) -> OperationShown:
    """One operation, and how far it is."""
    return operation_shown(asked, await asked.admin.operation(operation_id))


@routes.post("/{operation_id}/stop", verb="stop", role=Role.OPERATOR)
async def stop(asked: Asked, operation_id: UUID, why: Said = STEERING) -> OperationShown:
    """Let it rest before the next job or dead letter, whoever drives it."""
    return operation_shown(asked, await asked.admin.stop_operation(operation_id, reason=why.reason))


@routes.post("/{operation_id}/resume", verb="resume", role=Role.OPERATOR, status_code=202)
async def resume(asked: Asked, operation_id: UUID, why: Said = STEERING) -> OperationShown:
    """Go on with what is left of it, here."""
    refuse_lower(asked, (await asked.admin.operation(operation_id)).verb)
    drivers = drivers_of(asked.request.app)
    with drivers.room(asked.key):
        operation = await asked.admin.resume_operation(operation_id, reason=why.reason)
        drivers.start(asked.admin, operation, asked.key, asked.still_counts)
    return operation_shown(asked, operation)


def refuse_lower(asked: Asked, verb: ReviewVerb | Verb) -> None:
    """Jobs are deleted by managers, also by an operation that one of them began."""
    if verb is Verb.DELETE and not asked.may(Role.MANAGER):
        raise Problem(
            403,
            "role-too-low",
            f"To delete jobs needs the role {Role.MANAGER.value}, and yours is {asked.user.role.value}.",
            needed=Role.MANAGER.value,
        )


async def begun(
    asked: Asked,
    verb: ReviewVerb,
    wanted: DeadFilter,
    *,
    reason: str | None,
    rate: float | None = None,
    dry_run: bool = False,
) -> OperationShown:
    """Begin an operation and drive it, or only count."""
    drivers = drivers_of(asked.request.app)
    try:
        if dry_run:
            matched = await asked.admin.match(verb, wanted)
            return OperationShown(
                id=None,
                url=None,
                verb=verb,
                what=f"would {verb.value} {matched} dead letters",
                wanted=wanted.as_json(),
                actor=asked.admin.actor,
                reason=reason,
                rate=rate,
                state=None,
                total=matched.jobs,
                capped=matched.capped,
            )
        with drivers.room(asked.key):
            operation = await asked.admin.begin_operation(verb, wanted, reason=reason, rate=rate)
            drivers.start(asked.admin, operation, asked.key, asked.still_counts)
    except ValueError as error:
        raise Problem(422, "bad-operation", str(error)) from error
    return operation_shown(asked, operation)


def operation_shown(asked: Asked, operation: Operation) -> OperationShown:
    progress = operation.progress
    return OperationShown(
        id=operation.id,
        url=asked.url("operations.show", operation_id=str(operation.id)),
        verb=operation.verb,
        what=words(operation),
        wanted=operation.wanted.as_json(),
        actor=operation.actor,
        reason=None if operation.reason is None else redacted_text(operation.reason),
        rate=operation.rate,
        state=operation.state,
        total=operation.total,
        capped=operation.capped,
        done=progress.done,
        refused=progress.refused,
        changed=progress.changed,
        began_at=operation.began_at,
        updated_at=operation.updated_at,
    )
