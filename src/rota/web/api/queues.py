"""Queues over HTTP: what waits in each, how long, and who serves it; and emptying one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body
from pydantic import BaseModel, Field

from rota.admin.numbers import QueueView
from rota.admin.purging import VERB, NotTheName, checked_name, purge_filter, purge_reason
from rota.web.api.figures import WorkShown, work_shown
from rota.web.api.job_operations import begun_on_jobs
from rota.web.api.operations import SLOWEST, OperationShown
from rota.web.api.shapes import Sent
from rota.web.api.spans import Since
from rota.web.asking import Asked
from rota.web.problems import Problem
from rota.web.roles import Role, Routes
from rota.web.searching import SEARCHES

routes = Routes("queues", "/queues")


class QueueShown(BaseModel):
    """One queue. What could not be read is null."""

    name: str
    pending: int | None = Field(description="Jobs that wait, due or not.")
    running: int | None
    dead: int | None
    oldest_wait: float | None = Field(
        description="Seconds that its oldest due job waits; null: nothing is due."
    )
    slots: int | None = Field(description="Slots of living workers that may serve it.")
    target: float | None = Field(
        description="Seconds that a due job should wait at most, if the app says so."
    )
    late: bool | None = Field(
        description="Whether jobs wait longer than they should; null: it has no target."
    )
    work: WorkShown | None


class Purging(Sent):
    """Which queue is meant, typed once more."""

    name: str | None = Field(None, max_length=1000, description="The queue's name again; not for a dry run.")
    reason: str | None = Field(None, max_length=2000, description="Kept with the jobs and in the audit.")
    rate: float | None = Field(
        None, ge=SLOWEST, le=10_000, description="Jobs a second; null: as fast as they go."
    )
    expected: int | None = Field(
        None, ge=0, description="How many you were shown. If many more wait now, nothing is begun (409)."
    )
    dry_run: bool = Field(False, description="Only count how many would be cancelled.")


@routes.get(verb="list", role=Role.VIEWER)
async def list_queues(asked: Asked, since: Since = 3600.0) -> list[QueueShown]:
    """Every queue that has work, had some in this time, or is served by name."""
    return [queue_shown(view) for view in (await asked.admin.overview(since)).queues()]


@routes.get("/{name}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, name: str, since: Since = 3600.0) -> QueueShown:
    """One queue."""
    for view in (await asked.admin.overview(since)).queues():
        if view.queue == name:
            return queue_shown(view)
    raise Problem(
        404, "queue-not-found", f"No queue {name!r} has work, had some in this time, or is served by name."
    )


@routes.post("/{name}/purge", verb="purge", role=Role.MANAGER, status_code=202, dependencies=SEARCHES)
async def purge(asked: Asked, name: str, wish: Annotated[Purging, Body()]) -> OperationShown:
    """Cancel every job of the queue that does not run, as an operation. Running jobs are left alone."""
    if not wish.dry_run:
        try:
            checked_name(name, wish.name)
        except NotTheName as error:
            raise Problem(422, "not-the-name", str(error)) from error
    return await begun_on_jobs(
        asked,
        VERB,
        purge_filter(name),
        reason=purge_reason(name, wish.reason),
        rate=wish.rate,
        expected=wish.expected,
        dry_run=wish.dry_run,
    )


def queue_shown(view: QueueView) -> QueueShown:
    return QueueShown(
        name=view.queue,
        pending=view.pending,
        running=view.running,
        dead=view.dead,
        oldest_wait=None if view.oldest_wait is None else view.oldest_wait.total_seconds(),
        slots=view.slots,
        target=view.target,
        late=view.late,
        work=None if view.done is None else work_shown(view.done),
    )
