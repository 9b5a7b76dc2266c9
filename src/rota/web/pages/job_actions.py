"""What people do to one job from its page or its row: one form for each verb, and back to where they were."""

from __future__ import annotations

from starlette.responses import Response

from rota._core.actions import Verb
from rota._core.ids import public_id
from rota._core.job import Job
from rota.admin.actions import Done
from rota.admin.editing import Edit
from rota.web.api.shapes import JobId
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import Form, Formed, back, own_address, whole_number
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import path_to
from rota.web.pages.routing import PageRoutes
from rota.web.pages.words import short
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()


@routes.post("/jobs/{job_id}/retry", verb="job_retry", role=Role.OPERATOR)
async def retry(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Run a dead or cancelled job again, or a waiting one at once."""
    return _told(asked, form, await asked.admin.retry(job_id, reason=form.reason))


@routes.post("/jobs/{job_id}/cancel", verb="job_cancel", role=Role.OPERATOR)
async def cancel(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Take a waiting job off the list, or ask the worker of a running one to stop it."""
    return _told(asked, form, await asked.admin.cancel(job_id, reason=form.reason))


@routes.post("/jobs/{job_id}/force", verb="job_force", role=Role.OPERATOR)
async def force(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Cancel a running job whose worker does not answer: it is fenced off."""
    done = await asked.admin.cancel(job_id, reason=form.reason, force=True, grace=0.0)
    return _told(asked, form, done)


@routes.post("/jobs/{job_id}/hold", verb="job_hold", role=Role.OPERATOR)
async def hold(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Set a pending job aside."""
    return _told(asked, form, await asked.admin.hold(job_id, reason=form.reason), undo="page.job_release")


@routes.post("/jobs/{job_id}/release", verb="job_release", role=Role.OPERATOR)
async def release(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Put a held job back on the list."""
    return _told(asked, form, await asked.admin.release(job_id, reason=form.reason), undo="page.job_hold")


@routes.post("/jobs/{job_id}/delete", verb="job_delete", role=Role.MANAGER)
async def delete(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Remove a job that is not running, with its history."""
    done = await asked.admin.delete(job_id, reason=form.reason)
    return back(asked, form, Notice(_words(done)), to=path_to(asked, "page.jobs"))


@routes.post("/jobs/{job_id}/priority/{priority}", verb="job_prioritise", role=Role.OPERATOR)
async def prioritise(asked: Asked, job_id: JobId, priority: int, form: Formed) -> Response:
    """Another priority, by the address: the way an undo asks for it."""
    before = await asked.admin.job(job_id)
    job = await asked.admin.edit(job_id, Edit(priority=priority), reason=form.reason)
    return _changed(asked, form, before, job)


@routes.post("/jobs/{job_id}/move", verb="job_move", role=Role.OPERATOR)
async def move(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Another priority or another queue, as a form asks for it."""
    queue, said = form.text("queue", most=1000), form.text("priority", most=10)
    if said is not None and not (said.isascii() and said.isdigit()):
        raise Problem(422, "bad-priority", f"{said!r} is no priority: a whole number from 0 to 32,767.")
    before = await asked.admin.job(job_id)
    change = Edit(
        priority=None if said is None or int(said) == before.priority else int(said),
        queue=None if queue in (None, before.queue) else queue,
    )
    if change.empty:
        return back(asked, form, Notice("Nothing was to be changed."), to=_page(asked, before))
    # The form sends both as they were shown: what somebody else set meanwhile must not be set back by that.
    version = whole_number(form.text("version", most=20))
    after = await asked.admin.edit(job_id, change, reason=form.reason, version=version)
    return _changed(asked, form, before, after)


def _changed(asked: Asking, form: Form, before: Job, after: Job) -> Response:
    said, undo = [], None
    if after.queue != before.queue:
        said.append(f"Moved {_name(after)} from queue {before.queue} to {after.queue}.")
    if after.priority != before.priority:
        said.append(f"{_name(after)} has priority {after.priority} now, {before.priority} before.")
        if not said[1:]:
            undo = path_to(
                asked, "page.job_prioritise", job_id=public_id(after.id), priority=str(before.priority)
            )
    text = " ".join(said) or f"{_name(after)} is as it was."
    return back(asked, form, Notice(text, undo=undo), to=_page(asked, after))


def _told(asked: Asking, form: Form, done: Done, *, undo: str | None = None) -> Response:
    """Back to where the form was, with what was done and how to take it back."""
    here = _page(asked, done.job)
    elsewhere = own_address(asked, form.way_back)
    link = None if elsewhere is None or elsewhere.startswith(here) else here
    address = None if undo is None else path_to(asked, undo, job_id=public_id(done.job.id))
    return back(asked, form, Notice(_words(done), link=link, undo=address), to=here)


def _words(done: Done) -> str:
    name = _name(done.job)
    match done.verb:
        case Verb.RETRY if done.before == "pending":
            return f"{name} is due now."
        case Verb.RETRY:
            return f"{name} was {done.before} and runs again."
        case Verb.CANCEL if done.asked:
            return f"The worker of {name} is asked to stop it."
        case Verb.CANCEL:
            return f"{name} is cancelled."
        case Verb.HOLD:
            return f"{name} is held until somebody releases it."
        case Verb.RELEASE:
            return f"{name} is back on the list."
        case Verb.DELETE:
            return f"{name} is deleted with its history."
    return f"{name}: {done.verb.value}, {done.after} now."


def _name(job: Job) -> str:
    return f"{job.task} {short(job.id)}"


def _page(asked: Asking, job: Job) -> str:
    return path_to(asked, "page.job", job_id=public_id(job.id))
