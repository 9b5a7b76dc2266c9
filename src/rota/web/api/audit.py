"""The audit over HTTP: who did what to which job, and why. Nothing changes it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from rota._core.actions import Audit, AuditFilter
from rota.web.api.shapes import JobId
from rota.web.api.spans import Moment
from rota.web.asking import Asked
from rota.web.paging import Page, Paged
from rota.web.problems import Problem
from rota.web.roles import Role, Routes

routes = Routes("audit", "/audit")


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
    # Rows have a moment and no id that is told: the next page begins at a moment, after so many rows of it.
    begin, seen = _position(paging.position)
    wanted = AuditFilter(
        actor, action, job, about, correlation_id, since, begin or until, paging.fetch + seen
    )
    rows = list(await asked.admin.trail(wanted))
    for row in [row for row in rows if row.at == begin][:seen]:
        rows.remove(row)
    last = rows[: paging.limit][-1:]
    same = sum(row.at == one.at for one in last for row in rows[: paging.limit])
    same += seen if last and last[0].at == begin else 0
    return paging.page(rows, audit_shown, position=lambda row: f"{same} {row.at}")


def audit_shown(row: Audit) -> AuditShown:
    return AuditShown.model_validate(row)


def _position(text: str | None) -> tuple[datetime | None, int]:
    if text is None:
        return None, 0
    try:
        skipped, _, moment = text.partition(" ")
        return datetime.fromisoformat(moment), min(max(0, int(skipped)), 100_000)
    except ValueError:
        raise Problem(
            422, "bad-cursor", "This cursor does not belong to this list. Begin without one."
        ) from None
