"""Who is at work: where, with which code, how full, and what each one did in the last minutes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from starlette.responses import Response

from rota._core.numbers import LaneTotal
from rota.admin.scope import OutOfScope
from rota.admin.workers import RUNNING, WorkerView, viewed
from rota.errors import StoreError
from rota.web.api.workers import NOT_FOUND
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import Form, Formed, back
from rota.web.pages.lanes import drawn, tone
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.sharing import figures, shared
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

WINDOW = timedelta(minutes=10)
HOUR = 3600.0
TABLED = 50


@routes.get("/workers", verb="workers", role=Role.VIEWER)
async def workers(asked: Asked) -> Response:
    """Those that work now, and those that ended lately."""
    admin = asked.admin
    now, sessions, used, lanes = await asyncio.gather(
        admin.store.now(), admin.store.sessions(), _used(asked), _lanes(asked)
    )
    cut = used is not None and used.total() >= RUNNING
    lines = [viewed(record, now, None if cut else used) for record in sessions]
    alive = [line for line in lines if line.living]
    return render(
        asked,
        "workers.html",
        title="Workers",
        here="workers",
        topics="jobs",
        now=now,
        alive=sorted(alive, key=lambda line: (line.record.host, line.record.pid)),
        gone=[line for line in lines if not line.living],
        lanes=lanes,
        slots=sum(line.slots for line in alive),
        used=None if used is None else sum(used[line.record.id] for line in alive),
        cut=cut,
        versions=sorted({line.record.code_version or "unknown" for line in alive}),
        hosts=len({line.record.host for line in alive}),
    )


@routes.get(
    "/workers/{worker_id}",
    verb="worker",
    role=Role.VIEWER,
)
async def worker(asked: Asked, worker_id: UUID) -> Response:
    """One worker: what it runs, and what its slots did in the last ten minutes."""
    admin = asked.admin
    now, sessions = await asyncio.gather(admin.store.now(), admin.store.sessions())
    record = next((one for one in sessions if one.id == worker_id), None)
    if record is None:
        raise Problem(404, "worker-not-found", NOT_FOUND)
    # Of one that is gone, the last minutes of its life.
    until = min(now, record.ended_at or record.lease_until)
    since = max(until - WINDOW, record.started_at)
    stints = await admin.stints(worker_id, (now - since).total_seconds())
    running = [stint for stint in stints.found if stint.ended is None]
    # Somebody of one tenant sees his own jobs only: others may fill the other slots.
    line = viewed(record, now, None if asked.tenant is not None else {worker_id: len(running)})
    return render(
        asked,
        "worker.html",
        title=f"{record.host} ({record.pid})",
        here="workers",
        topics="jobs",
        now=now,
        until=until,
        since=since,
        line=line,
        record=record,
        running=sorted(running, key=lambda stint: stint.begun),
        stints=stints.found[:TABLED],
        more=stints.more,
        total=len(stints.found),
        picture=drawn(stints.found, since, until, line.slots),
        tone=tone,
        everybody=asked.tenant is None,
    )


@routes.post("/workers/{worker_id}/drain", verb="worker_drain", role=Role.OPERATOR)
async def drain(asked: Asked, worker_id: UUID, form: Formed) -> Response:
    """Let it take no more jobs, finish those that run, and go."""
    return _told(asked, form, await asked.admin.drain_worker(worker_id, reason=form.reason))


@routes.post("/workers/{worker_id}/stop", verb="worker_stop", role=Role.OPERATOR)
async def stop(asked: Asked, worker_id: UUID, form: Formed) -> Response:
    """Let it finish what runs within its grace, hand back the rest, and go."""
    return _told(asked, form, await asked.admin.stop_worker(worker_id, reason=form.reason))


def _told(asked: Asking, form: Form, view: WorkerView) -> Response:
    notice = Notice(f"{view} is {view.state}: it hears of it with its next beat, within seconds.")
    return back(asked, form, notice, to=path_to(asked, "page.worker", worker_id=view.record.id))


async def _used(asked: Asking) -> Counter[UUID] | None:
    """How many jobs each worker runs; None: it is not known, or about others' jobs too."""
    if asked.tenant is not None:
        return None
    try:
        running = await shared(asked, "running", lambda: asked.admin.store.running(limit=RUNNING))
    except StoreError:
        return None
    return Counter(work.session_id for work in running if work.session_id is not None)


async def _lanes(asked: Asking) -> Sequence[LaneTotal] | None:
    """How full lanes of all workers together were in the last hour."""
    try:
        return (await figures(asked, HOUR)).lanes
    except (OutOfScope, StoreError):
        return None
