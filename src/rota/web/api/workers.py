"""Workers over HTTP: who is at work, and what each one holds."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from rota._core.job import State
from rota._core.job_filter import JobFilter
from rota._core.worker_order import OrderVerb
from rota.admin.workers import viewed
from rota.stores.contract import SessionRecord
from rota.web.api.schedules import WHY, Said
from rota.web.api.shapes import JobShown, shown
from rota.web.asking import Asked
from rota.web.problems import Problem
from rota.web.roles import Role, Routes

routes = Routes("workers", "/workers")

NOT_FOUND = "No worker has this id. Those that ended more than an hour ago are forgotten."
HELD = 200
"""So many of its running jobs are shown."""


class OrderShown(BaseModel):
    """What somebody asked of a worker."""

    verb: OrderVerb
    by: str
    at: datetime
    reason: str | None


class WorkerShown(BaseModel):
    """One worker process's life."""

    id: UUID = Field(description="Of its session; `worker:ID` finds its jobs.")
    host: str
    pid: int
    alive: bool
    state: str = Field(description="alive, draining, stopping, lost (it fell silent) or gone.")
    memory: int | None = Field(description="Bytes that its own process uses; null: unknown.")
    lanes: dict[str, int] = Field(description="The slots of each lane.")
    queues: dict[str, list[str] | None] | None = Field(
        description="The queues of each lane; null: every queue."
    )
    tasks: list[str]
    tenant: str | None = Field(description="The only tenant that it works for.")
    code_version: str | None
    started_at: datetime
    lease_until: datetime
    ended_at: datetime | None
    hears_orders: bool = Field(description="Whether it can be asked to drain or stop; older versions cannot.")
    order: OrderShown | None = Field(description="What it was asked to do.")


class WorkerDetails(WorkerShown):
    """One worker, and what it runs now."""

    running: list[JobShown]


@routes.get(verb="list", role=Role.VIEWER)
async def list_workers(asked: Asked, ended: bool = False) -> list[WorkerShown]:
    """The workers that hold a lease now, the newest first; with `ended`, those that ended lately too."""
    now = await asked.admin.store.now()
    seen = [worker_shown(session, now) for session in await asked.admin.store.sessions()]
    return [worker for worker in seen if ended or worker.alive]


@routes.get("/{worker_id}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, worker_id: UUID) -> WorkerDetails:
    """One worker, and the jobs that it runs now."""
    now = await asked.admin.store.now()
    for session in await asked.admin.store.sessions():
        if session.id == worker_id:
            wanted = JobFilter(states=(State.RUNNING,), session_id=worker_id, limit=HELD)
            running = [shown(asked, job, now, listed=True) for job in await asked.admin.list(wanted)]
            return WorkerDetails(**worker_shown(session, now).model_dump(), running=running)
    raise Problem(404, "worker-not-found", NOT_FOUND)


@routes.post("/{worker_id}/drain", verb="drain", role=Role.OPERATOR)
async def drain(asked: Asked, worker_id: UUID, why: Said = WHY) -> WorkerShown:
    """Let it take no more jobs, finish those that run however long they take, and go. Nobody takes its place."""
    view = await asked.admin.drain_worker(worker_id, reason=why.reason)
    return worker_shown(view.record, await asked.admin.store.now())


@routes.post("/{worker_id}/stop", verb="stop", role=Role.OPERATOR)
async def stop(asked: Asked, worker_id: UUID, why: Said = WHY) -> WorkerShown:
    """Let it finish what runs within its grace, hand back the rest, and go, as SIGTERM does. Nobody takes its place."""
    view = await asked.admin.stop_worker(worker_id, reason=why.reason)
    return worker_shown(view.record, await asked.admin.store.now())


def worker_shown(session: SessionRecord, now: datetime) -> WorkerShown:
    queues, order = session.queues, session.order
    return WorkerShown(
        id=session.id,
        host=session.host,
        pid=session.pid,
        alive=session.ended_at is None and session.lease_until > now,
        state=viewed(session, now, None).state,
        memory=session.memory,
        lanes=dict(session.lanes),
        queues=None
        if queues is None
        else {lane: None if its is None else list(its) for lane, its in queues.items()},
        tasks=sorted(session.tasks),
        tenant=session.tenant,
        code_version=session.code_version,
        started_at=session.started_at,
        lease_until=session.lease_until,
        ended_at=session.ended_at,
        hears_orders=session.hears,
        order=None if order is None else OrderShown(**order._asdict()),
    )
