"""Jobs: hand one in, list them, look at one. The verbs that change them are in `job_actions`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Header, Query
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, Field, Strict

from rota._core.filtering import PRIORITIES
from rota._core.ids import public_id
from rota._core.job import Job
from rota.admin.reads import CHILDREN_SHOWN
from rota.options import Unique
from rota.stores.contract import JobFilter
from rota.web.api.shapes import (
    AttemptShown,
    Explained,
    JobId,
    JobShown,
    LogShown,
    Sent,
    Tree,
    attempt_shown,
    branch,
    explanation_shown,
    log_shown,
    shown,
)
from rota.web.api.spans import written
from rota.web.asking import Asked
from rota.web.paging import BadCursor, Page, Paged
from rota.web.problems import Problem
from rota.web.roles import Role, Routes
from rota.web.searching import SEARCHES

routes = Routes("jobs", "/jobs")

Name = Annotated[str, Field(min_length=1, max_length=1000)]
FILTER = 2_000
LANGUAGE = "Words that narrow, as on the command line: `state:dead task:mail args.user.id:7 created>1h`."
ANCESTORS = 20


class UniqueSaid(Sent):
    """A unique key: what happens when a second job with it arrives."""

    key: Name
    until: str | float = Field("started", description="started, finished, or how long it keeps others out.")
    on_duplicate: Literal["keep", "replace", "reschedule", "merge", "reject"] = "keep"


class SubmitOptions(Sent):
    """How one job is to run, where that is not as its task says. Durations are seconds, or texts such as `5m`."""

    queue: Name | None = None
    priority: int | None = Field(None, ge=0, le=32_767, description="Lower runs first; 100 is normal.")
    delay: float | str | None = None
    at: Annotated[datetime, Strict(strict=False), BeforeValidator(written)] | None = Field(
        None, description="When it becomes due, with a time zone; instead of `delay`."
    )
    tenant: Name | None = Field(None, description="On whose behalf; only for callers of all tenants.")
    subject: Name | None = None
    key: Name | None = Field(None, description="As the header Idempotency-Key.")
    key_window: float | str | None = None
    unique: Name | UniqueSaid | None = None
    serial: Name | None = None
    correlation_id: Name | None = None
    parent: str | None = None
    tags: list[Name] | None = Field(None, max_length=50)
    category: Name | None = None
    deadline: float | str | None = None
    timeout: float | str | None = None
    max_attempts: int | None = None
    external_id: Name | None = None


class Submission(Sent):
    """A job to be done."""

    task: Name
    args: dict[str, Any] = Field(default_factory=dict, description="The task's arguments, by name.")
    options: SubmitOptions = SubmitOptions()


class Receipt(BaseModel):
    """Which job stands for what was handed in."""

    id: UUID
    public_id: str
    task: str
    queue: str
    stored: str = Field(
        description="created; else what became of it: duplicate, replaced, rescheduled, merged."
    )
    created: bool
    url: str = Field(description="Where the job is; also in Location.")
    queue_url: str = Field(description="Where it tells how it goes, in Docverse's words.")


@routes.post(
    verb="submit",
    role=Role.OPERATOR,
    status_code=201,
    responses={200: {"description": "It was there already."}},
)
async def submit(
    asked: Asked,
    submission: Submission,
    response: Response,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=1000)] = None,
) -> Receipt:
    """Enqueue a job. Once this answers, the job is durable.

    With an `Idempotency-Key`, repeating it answers the same job (200); other
    arguments under that key are a conflict (409), which names the job that has it.
    """
    options = submission.options.model_dump(exclude_none=True)
    unique = submission.options.unique
    if isinstance(unique, UniqueSaid):
        options["unique"] = _unique(unique)
    if idempotency_key is not None:
        if options.get("key") not in (None, idempotency_key):
            raise Problem(
                422,
                "two-keys",
                "Idempotency-Key and options.key differ. A job has one key; give one of them.",
            )
        options["key"] = idempotency_key
    done = await asked.admin.submit(
        submission.task, submission.args, options, tasks=asked.rota.tasks, pressure=asked.rota.pressure
    )
    named = public_id(done.answer.id)
    where = asked.url("jobs.show", job_id=named)
    response.headers["Location"] = where
    if not done.answer.created:
        response.status_code = 200
    return Receipt(
        id=done.answer.id,
        public_id=named,
        task=done.job.task,
        queue=done.job.queue,
        stored=done.answer.stored.value,
        created=done.answer.created,
        url=where,
        queue_url=asked.url("docverse.show", job_id=named),
    )


@routes.get(verb="list", role=Role.VIEWER, dependencies=SEARCHES)
async def list_jobs(
    asked: Asked,
    paging: Paged,
    wanted: Annotated[str, Query(alias="filter", max_length=FILTER, description=LANGUAGE)] = "",
) -> Page[JobShown]:
    """Jobs, newest first. Of large payloads and results only the size is told; the job itself has them."""
    admin = asked.admin
    which = await meant(asked, wanted, limit=paging.fetch, brief=True)
    if which.by_priority:
        which = which._replace(**_urgent_place(paging.position))
    else:
        which = which._replace(before=paging.before)
    found = await admin.list(which)
    now = await admin.store.now()
    return paging.page(
        found,
        lambda job: shown(asked, job, now, listed=True),
        position=lambda job: f"{job.priority} {job.id}" if which.by_priority else job.id,
    )


@routes.get("/{job_id}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, job_id: JobId) -> JobShown:
    """One job, by its UUID or its Base32 id. A job that retention removed is 404; an archived one says so."""
    return shown(asked, await asked.admin.job(job_id), await asked.admin.store.now())


@routes.get("/{job_id}/attempts", verb="attempts", role=Role.VIEWER)
async def attempts(asked: Asked, job_id: JobId) -> list[AttemptShown]:
    """Its attempts that did not succeed, oldest first."""
    job = await asked.admin.job(job_id)
    return [attempt_shown(seen) for seen in await asked.admin.store.attempts(job.id)]


@routes.get("/{job_id}/logs", verb="logs", role=Role.VIEWER)
async def logs(asked: Asked, job_id: JobId) -> list[LogShown]:
    """The newest lines that each of its attempts logged, oldest attempt first."""
    return [log_shown(tail) for tail in await asked.admin.logs(job_id)]


@routes.get("/{job_id}/tree", verb="tree", role=Role.VIEWER, dependencies=SEARCHES)
async def tree(asked: Asked, job_id: JobId) -> Tree:
    """The jobs it comes from, and those that it enqueued."""
    admin = asked.admin
    job = await admin.job(job_id)
    above: list[Job] = []
    seen = {job.id}
    parent = job.parent_id
    while parent is not None and parent not in seen and len(above) < ANCESTORS:
        found = await admin.store.get([parent])
        if not found:
            break
        seen.add(parent)
        above.append(found[0])
        parent = found[0].parent_id
    wanted = JobFilter(parent_id=job.id, oldest_first=True, limit=CHILDREN_SHOWN + 1)
    children = await admin.list(wanted)
    return Tree(
        job=branch(asked, job),
        ancestors=[branch(asked, one) for one in above],
        children=[branch(asked, one) for one in children[:CHILDREN_SHOWN]],
        more_children=len(children) > CHILDREN_SHOWN,
    )


@routes.get("/{job_id}/explain", verb="explain", role=Role.VIEWER)
async def explain(asked: Asked, job_id: JobId) -> Explained:
    """Why it is not running, and what would unblock it."""
    return explanation_shown(await asked.admin.explain(job_id))


async def meant(asked: Asked, words: str, **fields: Any) -> JobFilter:
    """Which jobs a filter means, if whoever asks may look for that."""
    return await asked.admin.filter(words, sees_hidden=asked.may(Role.MANAGER), **fields)


def _urgent_place(position: str | None) -> dict[str, Any]:
    """Where a page of the most urgent begins: behind a priority and an id."""
    if position is None:
        return {}
    priority, _, job_id = position.partition(" ")
    try:
        if priority.isascii() and priority.isdigit() and int(priority) in PRIORITIES:
            return {"before_priority": int(priority), "before": UUID(job_id)}
    except ValueError:
        pass
    raise BadCursor


def _unique(said: UniqueSaid) -> Unique:
    try:
        return Unique(said.key, until=said.until, on_duplicate=said.on_duplicate)
    except (ValueError, TypeError) as error:
        raise Problem(422, "payload-invalid", str(error)) from error
