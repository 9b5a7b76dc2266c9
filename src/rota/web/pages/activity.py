"""What people do to many jobs at once and how far it is, and the audit: who did what, when, and why."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from fastapi import Depends, Query
from starlette.responses import Response

from rota._core.actions import Audit, AuditFilter
from rota._core.ids import parse_id, public_id
from rota._core.lengths import many, span
from rota._core.operation import Operation, OperationState
from rota.admin.operations import words
from rota.web.api import operations as api
from rota.web.api.audit import place
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import Formed, back
from rota.web.pages.moments import moment
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.sharing import shared
from rota.web.pages.turning import first, turned
from rota.web.paging import Paged
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

NEWEST = 8
MOST_OPERATIONS = 100
OF_ONE = 25
QUIET = 60.0
"""Seconds without a step after which an operation that should run is probably driven by nobody."""
Typed = Annotated[str, Query(max_length=400)]
FIELDS = ("actor", "action", "job", "about", "correlation", "since", "until")


class Typing:
    """What was typed into the filter above the audit."""

    def __init__(
        self,
        *,
        actor: Typed = "",
        action: Typed = "",
        job: Typed = "",
        about: Typed = "",
        correlation: Typed = "",
        since: Typed = "",
        until: Typed = "",
    ) -> None:
        given = (actor, action, job, about, correlation, since, until)
        self.said = {name: text.strip() for name, text in zip(FIELDS, given, strict=True)}

    async def wanted(self, asked: Asking, paging: Paged) -> AuditFilter:
        now = await asked.admin.store.now()
        said = self.said
        return AuditFilter(
            said["actor"] or None,
            said["action"] or None,
            _job(said["job"]),
            said["about"] or None,
            said["correlation"] or None,
            moment(said["since"], now, "since"),
            moment(said["until"], now, "until"),
            paging.fetch,
            place(paging.position),
        )

    @property
    def narrow(self) -> bool:
        """Whether anything was typed at all."""
        return any(self.said.values())

    @property
    def command(self) -> str:
        """The same question on the command line."""
        options = [f"--{name} {shlex.quote(text)}" for name, text in self.said.items() if text]
        return " ".join(["rota audit list", *options])


Filtered = Annotated[Typing, Depends()]


class Line(NamedTuple):
    """One line of the audit, and where it leads."""

    row: Audit
    href: str | None
    """Of what it was done to, if that has a page."""
    kind: str
    """What that is: job, schedule, operation, token."""
    name: str
    by: str | None = None
    """Of the operation that did it."""


class Going(NamedTuple):
    """An operation, in words."""

    row: Operation
    what: str
    left: int
    quiet: bool
    """It should go on, and nobody seems to drive it."""
    pace: str
    eta: str
    """How long it takes yet at its own pace; empty: nobody knows."""


@routes.get("/activity", verb="activity", role=Role.VIEWER)
async def activity(
    asked: Asked,
    paging: Paged,
    filtered: Filtered,
    every: Annotated[bool, Query(alias="all", description="All operations, not only the newest.")] = False,
) -> Response:
    """Bulk operations with their progress, and the audit below."""
    admin = asked.admin
    wanted = await filtered.wanted(asked, paging)
    rows, stopped = await shared(asked, ("audit", wanted), lambda: admin.trail_page(wanted))
    page = paging.page(
        rows, lambda row: audit_line(asked, row), position=lambda row: row.place, stopped=stopped
    )
    found = await admin.operations(limit=MOST_OPERATIONS if every else NEWEST + 1)
    now = await admin.store.now()
    going = [_going(one, now) for one in found]
    return render(
        asked,
        "activity.html",
        title="Activity",
        here="activity",
        topics="jobs",
        now=now,
        operations=going if every else going[:NEWEST],
        more=not every and len(found) > NEWEST,
        every=every,
        goes_on=any(one.row.state is OperationState.RUNNING and not one.quiet for one in going),
        lines=page.items,
        later=turned(asked, page.next),
        start=first(asked),
        filtered=filtered,
    )


@routes.get(
    "/activity/operations/{operation_id}",
    verb="operation",
    role=Role.VIEWER,
)
async def operation(asked: Asked, operation_id: UUID) -> Response:
    """One operation: how far it is, and what it did."""
    admin = asked.admin
    row = await admin.operation(operation_id)
    lines = await admin.trail(AuditFilter(about=row.about, limit=OF_ONE))
    now = await admin.store.now()
    return render(
        asked,
        "operation.html",
        title=f"{row.verb.value} {many(row.total, row.noun)}",
        here="activity",
        topics="jobs",
        now=now,
        one=_going(row, now),
        may_resume=row.verb.value != "delete" or asked.may(Role.MANAGER),
        lines=[audit_line(asked, line) for line in lines],
        State=OperationState,
    )


@routes.post(
    "/activity/operations/{operation_id}/stop",
    verb="operation_stop",
    role=Role.OPERATOR,
)
async def stop(asked: Asked, operation_id: UUID, form: Formed) -> Response:
    """Let it rest before the next job."""
    done = await api.stop(asked, operation_id, api.Steering(reason=form.reason))
    said = f"Stopped after {done.done + done.refused + done.changed:,} of {done.total:,}. Resume goes on from there."
    return back(asked, form, Notice(said), to=path_to(asked, "page.operation", operation_id=operation_id))


@routes.post(
    "/activity/operations/{operation_id}/resume",
    verb="operation_resume",
    role=Role.OPERATOR,
)
async def resume(asked: Asked, operation_id: UUID, form: Formed) -> Response:
    """Go on with what is left of it, on this server."""
    await api.resume(asked, operation_id, api.Steering(reason=form.reason))
    notice = Notice("It goes on, driven by this server.")
    return back(asked, form, notice, to=path_to(asked, "page.operation", operation_id=operation_id))


def audit_line(asked: Asking, row: Audit) -> Line:
    """A line of the audit, and where what it is about can be seen."""
    kind, _, name = (row.about or "").partition(":")
    operation = (
        path_to(asked, "page.operation", operation_id=name) if kind == "operation" and is_id(name) else None
    )
    if row.job_id is not None:
        return Line(row, path_to(asked, "page.job", job_id=public_id(row.job_id)), "job", "", operation)
    href = None
    if kind == "operation":
        href = operation
    elif kind in ("schedule", "task", "queue"):
        href = path_to(asked, f"page.{kind}", name=name)
    elif kind == "worker" and is_id(name):
        href = path_to(asked, "page.worker", worker_id=name)
    elif kind in ("token", "retention", "prune"):
        href = path_to(asked, "page.system")
    return Line(row, href, kind, name)


def _going(row: Operation, now: datetime) -> Going:
    met = row.progress.met
    left = max(row.total - met, 0)
    runs = row.state is OperationState.RUNNING
    quiet = runs and row.updated_at is not None and (now - row.updated_at).total_seconds() > QUIET
    pace, eta = "as fast as it goes" if row.rate is None else f"{row.rate:g} a second", ""
    if runs and not quiet and left:
        took = 0.0 if row.began_at is None else (now - row.began_at).total_seconds()
        speed = row.rate or (met / took if met and took >= 1 else 0.0)
        eta = f"about {span(left / speed)}" if speed else ""
    return Going(row, words(row), left, quiet, pace, eta)


def _job(text: str) -> UUID | None:
    try:
        return parse_id(text) if text else None
    except ValueError as error:
        raise Problem(422, "bad-id", str(error)) from error


def is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
