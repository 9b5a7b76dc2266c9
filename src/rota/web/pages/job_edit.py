"""The same work with other arguments: a waiting job is changed, a dead one retried so, any one done anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import RedirectResponse, Response

from rota._core.durations import seconds
from rota._core.ids import public_id
from rota._core.job import Job, State
from rota._core.review import Review
from rota.admin.editing import EDITABLE, Edit
from rota.errors import EnqueueError, JobChanged, MoveRefused
from rota.web.api.shapes import JobId
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import REASON, Form, Formed
from rota.web.pages.notices import Notice, give
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.schema_answers import Answers, marked, read
from rota.web.pages.schema_form import Field, prefilled
from rota.web.pages.words import short
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

EDIT, REPROCESS, CLONE = "edit", "reprocess", "clone"
WORDS = {EDIT: "Edit", REPROCESS: "Retry with edits", CLONE: "Clone"}
ABOUT = {
    EDIT: "It has not started. What you change here is what it will do.",
    REPROCESS: "A new job does its work with these arguments. The dead one is resolved when that completes.",
    CLONE: "A new job of the same task. This one stays as it is.",
}


def editable(job: Job) -> str | None:
    """What other arguments mean for it as it is; None: it can only be cloned."""
    if job.state in EDITABLE:
        return EDIT
    if job.state is State.DEAD and job.review not in (Review.REPROCESSING, Review.RESOLVED):
        return REPROCESS
    return None


@routes.get("/jobs/{job_id}/edit", verb="job_form", role=Role.OPERATOR)
async def form_of(
    asked: Asked, job_id: JobId, how: Annotated[str, Query(alias="as", max_length=20)] = ""
) -> Response:
    """The form with the job's arguments. What is hidden stays hidden, and stays as it is unless it is typed anew."""
    job = await asked.admin.job(job_id)
    fields = prefilled(await _schema(asked, job), job.payload)
    return await _page(asked, job, _how(job, how), fields)


@routes.post("/jobs/{job_id}/edit", verb="job_edit", role=Role.OPERATOR)
async def edit(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Take the arguments; what does not fit is said beside its field, and nothing that was typed is lost."""
    job = await asked.admin.job(job_id)
    said = form.text("as") or ""
    how = said if said in (EDIT, REPROCESS) else _how(job, said)
    answers = read(prefilled(await _schema(asked, job), job.payload), form, keeps=how != CLONE)
    if not _still(job, how):
        return await _page(asked, job, how, answers.fields, form=form, wrong=_moved_on(job), status=409)
    if answers.wrong:
        return await _page(
            asked, job, how, answers.fields, form=form, wrong="Some arguments do not fit; see below."
        )
    try:
        done, notice = await _done(asked, job, how, answers, form)
    except EnqueueError as error:
        return await _page(asked, job, how, marked(answers, str(error)), form=form, wrong=str(error))
    except (MoveRefused, JobChanged) as error:
        return await _page(asked, job, how, answers.fields, form=form, wrong=str(error), status=409)
    except Problem as problem:
        return await _page(asked, job, how, answers.fields, form=form, wrong=str(problem.detail))
    response = RedirectResponse(path_to(asked, "page.job", job_id=done), status_code=303)
    give(asked, response, notice)
    return response


async def _done(asked: Asking, job: Job, how: str, answers: Answers, form: Form) -> tuple[str, Notice]:
    """Do it: the public id of the job that stands for it now, and what to say."""
    name = f"{job.task} {short(job.id)}"
    version = form.text("version", most=20)
    expected = int(version) if version is not None and version.isascii() and version.isdigit() else None
    if how == EDIT:
        change = Edit(answers.edits or None, *await _terms(asked, job, form))
        if expected not in (None, job.version):
            raise JobChanged(job.id, job.state)
        if change.empty:
            return public_id(job.id), Notice("Nothing was changed.")
        await asked.admin.edit(job.id, change, reason=form.reason, version=expected)
        return public_id(job.id), Notice(f"{name} is changed.")
    if how == REPROCESS:
        reviewed = await asked.admin.reprocess(
            job.id, reason=form.reason, edits=answers.edits or None, version=expected
        )
        new = reviewed.new_job or job.id
        return public_id(new), Notice(f"This job does the work of {name} again.")
    priority, queue, run_at = await _terms(asked, job, form)
    options = {
        "queue": queue or job.queue,
        "priority": job.priority if priority is None else priority,
        "at": run_at,
        "tenant": job.tenant,
        "subject": job.subject,
        "correlation_id": job.correlation,
        "tags": list(job.tags) or None,
        "category": job.category,
    }
    submitted = await asked.admin.submit(
        job.task,
        answers.arguments,
        {word: value for word, value in options.items() if value is not None},
        tasks=asked.rota.tasks,
        pressure=asked.rota.pressure,
    )
    stored = submitted.answer
    said = (
        f"Made from {name}."
        if stored.created
        else f"No new job was made: this one stands for it ({stored.stored.value})."
    )
    return public_id(stored.id), Notice(said, good=stored.created)


async def _terms(asked: Asking, job: Job, form: Form) -> tuple[int | None, str | None, datetime | None]:
    """Priority, queue and time that were typed; None: as they are."""
    said, queue = form.text("priority", most=10), form.text("queue", most=1000)
    if said is not None and not (said.isascii() and said.isdigit()):
        raise Problem(422, "bad-priority", f"{said!r} is no priority: a whole number from 0 to 32,767.")
    run_at = due(form.text("run_at", most=40), await asked.admin.store.now())
    same_priority = said is None or int(said) == job.priority
    return None if same_priority else int(said or 0), None if queue == job.queue else queue, run_at


def due(text: str | None, now: datetime) -> datetime | None:
    """When it is to run: `15m` from now, or a moment; without a zone it is in UTC."""
    if text is None:
        return None
    try:
        return now + timedelta(seconds=seconds(text))
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(
            422,
            "bad-moment",
            f"{text!r} is neither a length of time (15m, 2h: that long from now) nor a moment (2026-11-01T09:30).",
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


async def _schema(asked: Asking, job: Job) -> dict[str, Any]:
    """What is known of the task's arguments; nothing, where no worker has told."""
    for spec in await asked.admin.store.tasks():
        if spec.name == job.task:
            schema: dict[str, Any] = json.loads(spec.schema_json)
            return schema
    return {}


def _how(job: Job, said: str) -> str:
    return CLONE if said == CLONE else editable(job) or CLONE


def _still(job: Job, how: str) -> bool:
    """Whether it can still be done as the form says. What was meant as a change must never make a second job."""
    return how == CLONE or editable(job) == how


def _moved_on(job: Job) -> str:
    stands = job.state.value if job.review is None else f"{job.state.value} ({job.review})"
    return (
        f"Nothing was done: the job has moved on since this form was opened, and is {stands} now. "
        "What you typed is kept below. Go back to the job for what can be done with it as it is."
    )


def _typed(form: Form, name: str) -> str:
    """What was typed, also where it is longer than can be meant."""
    return next((value.strip() for key, value in form.pairs if key == name), "")[:REASON]


async def _page(
    asked: Asking,
    job: Job,
    how: str,
    fields: Sequence[Field],
    *,
    form: Form | None = None,
    wrong: str | None = None,
    status: int = 422,
) -> Response:
    return render(
        asked,
        "job_edit.html",
        title=f"{WORDS[how]}: {job.task}",
        here="jobs",
        status=status if wrong else 200,
        job=job._replace(payload_json="{}", result_json=None),
        how=how,
        word=WORDS[how],
        about=ABOUT[how] if _still(job, how) else "",
        fields=fields,
        wrong=wrong,
        label=job.label(await asked.admin.store.now()),
        typed={
            "queue": job.queue if form is None else _typed(form, "queue"),
            "priority": str(job.priority) if form is None else _typed(form, "priority"),
            "run_at": "" if form is None else _typed(form, "run_at"),
            "reason": "" if form is None else _typed(form, "reason"),
        },
        expects=job.version if form is None else _typed(form, "version"),
    )
