"""The question before a queue is purged: how many jobs that are, and its name to be typed."""

from __future__ import annotations

import shlex
from datetime import datetime

from starlette.responses import RedirectResponse, Response

from rota._core.filtering import quoted
from rota._core.job import State
from rota.admin.bulk import COUNT_CAP, Matched
from rota.admin.purging import VERB, NotTheName, checked_name, purge_filter, purge_reason
from rota.stores.contract import JobFilter
from rota.web.api.job_operations import begun_on_jobs
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import REASON, Form, Formed, whole_number
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.problems import Problem
from rota.web.roles import Role
from rota.web.searching import SEARCHES

routes = PageRoutes()


@routes.get("/purge/queues/{name:path}", verb="queue_purge_form", role=Role.MANAGER, dependencies=SEARCHES)
async def ask(asked: Asked, name: str) -> Response:
    """How many jobs would be cancelled, and the question whether that is meant."""
    return await _page(asked, name, Form([]))


@routes.post("/purge/queues/{name:path}", verb="queue_purge", role=Role.MANAGER, dependencies=SEARCHES)
async def purge(asked: Asked, name: str, form: Formed) -> Response:
    """Begin the operation; its page tells how far it is."""
    try:
        checked_name(name, form.text("name"))
    except NotTheName as error:
        return await _page(asked, name, form, wrong=str(error), status=422)
    try:
        begun = await begun_on_jobs(
            asked,
            VERB,
            purge_filter(name),
            reason=purge_reason(name, form.reason),
            expected=whole_number(form.text("expected", most=20)),
        )
    except Problem as problem:
        if problem.kind != "grown":
            raise
        return await _page(asked, name, form, grown=str(problem.detail), status=409)
    return RedirectResponse(path_to(asked, "page.operation", operation_id=str(begun.id)), status_code=303)


async def _page(
    asked: Asking, name: str, form: Form, *, wrong: str = "", grown: str = "", status: int = 200
) -> Response:
    admin = asked.admin
    matched = await admin.match_jobs(VERB, purge_filter(name))
    running = await admin.store.count_found(
        JobFilter(states=(State.RUNNING,), queue=name, tenant=asked.tenant), cap=COUNT_CAP + 1
    )
    typed = dict(reversed(form.pairs))
    return render(
        asked,
        "queue_purge.html",
        title=f"Purge the queue {name}",
        here="queues",
        status=status,
        at=path_to(asked, "page.queue_purge_form", name=name),
        name=name,
        matched=matched,
        running=Matched(min(running, COUNT_CAP), capped=running > COUNT_CAP),
        filter=purge_filter(name),
        wrong=wrong,
        grown=grown,
        typed=typed.get("name", "")[:REASON],
        reason=typed.get("reason", "")[:REASON],
        command=f"rota queues purge {shlex.quote(name)}",
        undo=shlex.join(["rota", "jobs", "retry", *_cancelled(name, await admin.store.now())]),
    )


def _cancelled(name: str, since: datetime) -> tuple[str, str, str]:
    """What a purge that begins now will have cancelled; not what was cancelled before, for other reasons."""
    return f"queue:{quoted(name)}", f"state:{State.CANCELLED}", f"finished>{since:%Y-%m-%dT%H:%M:%SZ}"
