"""Queues over HTTP: what waits in each, how long, and who serves it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from rota.admin.numbers import QueueView
from rota.web.api.figures import WorkShown, work_shown
from rota.web.api.spans import Since
from rota.web.asking import Asked
from rota.web.problems import Problem
from rota.web.roles import Role, Routes

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
