"""What people do to one job over HTTP: each verb is one POST, and names the version it expects if it likes."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Body
from pydantic import BaseModel, Field

from rota._core.actions import Verb
from rota.admin.actions import Done
from rota.admin.editing import Edit
from rota.web.api.jobs import Name
from rota.web.api.shapes import JobId, JobShown, Sent, shown
from rota.web.api.spans import Zoned
from rota.web.asking import Asked
from rota.web.roles import Role, Routes

routes = Routes("jobs", "/jobs")


class Why(Sent):
    """Why it is done, and to which version of the job."""

    reason: str | None = Field(None, max_length=2000, description="Kept with the job and in the audit.")
    version: int | None = Field(None, description="Only if the job is still at this version; else 409.")


class Cancelling(Why):
    """How a running job is cancelled."""

    force: bool = Field(False, description="Cancel it even if its worker does not confirm within `grace`.")
    grace: float = Field(10.0, ge=0, le=25)


class Failing(Why):
    """How a running attempt is failed."""

    retry: bool = Field(True, description="Whether its retry policy gives it another attempt.")


class Editing(Why):
    """What is to be different; what is not given stays."""

    args: dict[str, Any] | None = Field(None, description="Arguments by name; the others stay.")
    priority: int | None = Field(None, ge=0, le=32_767)
    queue: Name | None = None
    run_at: Zoned | None = None


class Acted(BaseModel):
    """What was done."""

    id: UUID
    verb: Verb
    before: str
    after: str = Field(
        description="Its state now; `cancelling` until its worker confirms, `deleted` when it is gone."
    )


WHY = Why()
Said = Annotated[Why, Body()]


def acted(done: Done) -> Acted:
    return Acted(id=done.job.id, verb=done.verb, before=done.before, after=done.after)


@routes.post("/{job_id}/retry", verb="retry", role=Role.OPERATOR)
async def retry(asked: Asked, job_id: JobId, why: Said = WHY) -> Acted:
    """Run a dead or cancelled job again from its first attempt, or a waiting one at once."""
    return acted(await asked.admin.retry(job_id, reason=why.reason, version=why.version))


@routes.post("/{job_id}/cancel", verb="cancel", role=Role.OPERATOR)
async def cancel(asked: Asked, job_id: JobId, why: Annotated[Cancelling, Body()] = Cancelling()) -> Acted:  # noqa: B008
    """Take a waiting job off the list, or ask the worker of a running one to stop it."""
    done = await asked.admin.cancel(
        job_id, reason=why.reason, version=why.version, force=why.force, grace=why.grace
    )
    return acted(done)


@routes.post("/{job_id}/hold", verb="hold", role=Role.OPERATOR)
async def hold(asked: Asked, job_id: JobId, why: Said = WHY) -> Acted:
    """Set a pending job aside until it is released."""
    return acted(await asked.admin.hold(job_id, reason=why.reason, version=why.version))


@routes.post("/{job_id}/release", verb="release", role=Role.OPERATOR)
async def release(asked: Asked, job_id: JobId, why: Said = WHY) -> Acted:
    """Put a held job back on the list."""
    return acted(await asked.admin.release(job_id, reason=why.reason, version=why.version))


@routes.post("/{job_id}/fail", verb="fail", role=Role.OPERATOR)
async def fail(asked: Asked, job_id: JobId, why: Annotated[Failing, Body()] = Failing()) -> Acted:  # noqa: B008
    """Fail the running attempt; its retry policy says what follows."""
    done = await asked.admin.fail(job_id, reason=why.reason, version=why.version, will_retry=why.retry)
    return acted(done)


@routes.patch("/{job_id}", verb="edit", role=Role.OPERATOR)
async def edit(asked: Asked, job_id: JobId, wanted: Editing) -> JobShown:
    """Change what a pending or held job is to do, where, how urgently or when. Arguments that are not named stay."""
    change = Edit(wanted.args, wanted.priority, wanted.queue, wanted.run_at)
    job = await asked.admin.edit(job_id, change, reason=wanted.reason, version=wanted.version)
    return shown(asked, job, await asked.admin.store.now())


@routes.post("/{job_id}/reveal", verb="reveal", role=Role.MANAGER)
async def reveal(asked: Asked, job_id: JobId, why: Said = WHY) -> JobShown:
    """The job with its secrets, as it is stored. That somebody looked stands in the audit."""
    job = await asked.admin.reveal(job_id, reason=why.reason)
    return shown(asked, job, await asked.admin.store.now(), reveal=True)


@routes.post("/{job_id}/kill", verb="kill", role=Role.MANAGER)
async def kill(asked: Asked, job_id: JobId, why: Said = WHY) -> Acted:
    """Move an unfinished job to the dead at once; a worker that runs it is fenced off."""
    return acted(await asked.admin.kill(job_id, reason=why.reason, version=why.version))


@routes.post("/{job_id}/delete", verb="delete", role=Role.MANAGER)
async def delete(asked: Asked, job_id: JobId, why: Said = WHY) -> Acted:
    """Remove a job that is not running, with its history. The audit row stays."""
    return acted(await asked.admin.delete(job_id, reason=why.reason, version=why.version))
