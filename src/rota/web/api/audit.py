"""The audit over HTTP: who did what to which job, and why. Nothing changes it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from rota._core.actions import Audit, AuditFilter
from rota.web.api.shapes import JobId
from rota.web.api.spans import Moment
from rota.web.asking import Asked
from rota.web.paging import BadCursor, Page, Paged
from rota.web.roles import Role, Routes

routes = Routes("audit", "/audit")

PLACE_DIGITS = 18


class AuditShown(BaseModel):
    """One line of the audit."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime | None
    actor: str
    action: str
    job_id: UUID | None
    about: str | None = Field(
        description="What it was done to if not to a job: `schedule:nightly`, `operation:ID`."
    )
    correlation_id: str | None
    origin: str | None = Field(
        description="The address and the request it came from; none for what was done on the machine itself, "
        "and for callers of one tenant."
    )
    reason: str | None
    before: str | None
    after: str | None


@routes.get(verb="list", role=Role.VIEWER)
async def list_audit(
    asked: Asked,
    paging: Paged,
    *,
    actor: str | None = None,
    action: str | None = None,
    job: JobId | None = None,
    about: str | None = None,
    correlation_id: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Page[AuditShown]:
    """What was done, newest first. Every filter narrows."""
    wanted = AuditFilter(
        actor, action, job, about, correlation_id, since, until, paging.fetch, place(paging.position)
    )
    rows, stopped = await asked.admin.trail_page(wanted)
    return paging.page(rows, audit_shown, position=lambda row: row.place, stopped=stopped)


def audit_shown(row: Audit) -> AuditShown:
    return AuditShown.model_validate(row)


def place(text: str | None) -> int | None:
    """The place of the last row of the page before."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= PLACE_DIGITS):
        raise BadCursor
    return int(text)
