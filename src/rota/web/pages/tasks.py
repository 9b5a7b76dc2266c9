"""The tasks that code made known: what each takes, how it runs, how long it takes, and a form that enqueues one."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import RedirectResponse, Response

from rota._core.filtering import quoted
from rota._core.ids import public_id
from rota._core.lengths import many, span
from rota._core.numbers import Figures, Summary
from rota._core.redaction import redacted_text
from rota._core.retry import Retry
from rota._core.rules import KeyRule
from rota._core.series import step_for
from rota._core.task_spec import TaskSpec
from rota.admin.tasks import TaskView
from rota.errors import EnqueueError, KeyConflict, NotUnique, PayloadInvalid
from rota.web.asking import Asked, Asking
from rota.web.pages import charting, sharing
from rota.web.pages.charting import known
from rota.web.pages.forms import Formed, back
from rota.web.pages.notices import Notice, give
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.schema_answers import Answers, marked, read
from rota.web.pages.schema_form import Field, blank
from rota.web.pages.sharing import shared
from rota.web.pages.spans import RANGES, Range, Ranged
from rota.web.pages.waiting import first_waits
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

OPTIONS = ("queue", "delay", "priority", "key", "tenant")
HOUR = Range("1h")


class Row(NamedTuple):
    """One task, as the list shows it."""

    spec: TaskSpec
    parked: bool
    doc: str
    done: Summary | None
    """What it did in the chosen range; None: unknown."""
    ended: list[float | None]
    """How many attempts ended, along time."""


class Typed(NamedTuple):
    """The enqueue form as somebody sent it."""

    fields: Sequence[Field]
    options: Mapping[str, str]
    wrong: str | None = None
    job: str | None = None
    """The address of the job that stands in its way."""
    status: int = 200


@routes.get("/tasks", verb="tasks", role=Role.VIEWER)
async def tasks(asked: Asked, chosen: Ranged) -> Response:
    """Every task that was ever published, the busiest first."""
    admin = asked.admin
    views, figures, series, now = await asyncio.gather(
        admin.tasks(),
        known(sharing.figures(asked, chosen.seconds)),
        known(shared(asked, ("tasks along time", chosen.word), lambda: _series(asked, chosen))),
        admin.store.now(),
    )
    done = {} if figures is None else figures.by_task()
    rows = [
        Row(
            view.spec,
            bool(view.parked),
            doc(view.spec),
            None if figures is None else done.get(view.spec.name, Summary.of(())),
            charting.ended(series, lambda total: total.task, view.spec.name),
        )
        for view in views
    ]
    return render(
        asked,
        "tasks.html",
        title="Tasks",
        here="tasks",
        topics="jobs",
        now=now,
        rows=sorted(rows, key=_busiest),
        minutes=_minutes(figures),
        pace=charting.pace,
        chosen=chosen,
        choices=list(RANGES),
    )


@routes.get("/tasks/{name:path}", verb="task", role=Role.VIEWER)
async def task(asked: Asked, name: str, chosen: Ranged) -> Response:
    """One task: what it takes, how it runs, how long it takes, and the form that enqueues it."""
    return await _page(asked, await _view(asked, name), chosen)


@routes.post(
    "/tasks/{name:path}",
    verb="task_enqueue",
    role=Role.OPERATOR,
)
async def enqueue(asked: Asked, name: str, form: Formed) -> Response:
    """Store one job of this task, and go to its page. What does not fit stays in the form, with why."""
    view = await _view(asked, name)
    answers = read(blank(_schema(view.spec)), form)
    options = {option: form.text(option, most=1000) or "" for option in OPTIONS}
    if answers.wrong:
        wrong = f"{many(len(answers.wrong), 'argument')} did not fit: nothing was enqueued."
        return await _page(asked, view, HOUR, typed=Typed(answers.fields, options, wrong, status=422))
    try:
        done = await asked.admin.submit(
            name, answers.arguments, _options(options), tasks=asked.rota.tasks, pressure=asked.rota.pressure
        )
    except EnqueueError as error:
        return await _page(asked, view, HOUR, typed=_refused(asked, answers, options, error))
    response = RedirectResponse(path_to(asked, "page.job", job_id=public_id(done.answer.id)), status_code=303)
    words = "Enqueued." if done.answer.created else "Nothing new: this job stands for it already."
    give(asked, response, Notice(words))
    return response


@routes.post(
    "/task-releases/{name:path}",
    verb="task_release",
    role=Role.OPERATOR,
)
async def release(asked: Asked, name: str, form: Formed) -> Response:
    """Let the jobs of a parked task run again."""
    freed = await asked.admin.release_task(name, reason=form.reason)
    notice = Notice(f"Released: {many(freed, 'job')} went back on the list.")
    return back(asked, form, notice, to=path_to(asked, "page.task", name=name))


async def _page(asked: Asking, view: TaskView, chosen: Range, *, typed: Typed | None = None) -> Response:
    admin, spec = asked.admin, view.spec
    figures, chart, stats, roster, now = await asyncio.gather(
        known(sharing.figures(asked, chosen.seconds)),
        known(sharing.series(asked, chosen, task=spec.name)),
        known(shared(asked, "stats", admin.stats)),
        known(admin.schedules()),
        admin.store.now(),
    )
    fields = blank(_schema(spec))
    typed = typed or Typed(fields, dict.fromkeys(OPTIONS, ""))
    done = None if figures is None else figures.by_task().get(spec.name, Summary.of(()))
    mine = [one for one in (() if roster is None else roster.schedules) if one.effective.task == spec.name]
    return render(
        asked,
        "task.html",
        title=f"Task {spec.name}",
        here="tasks",
        topics=f"task:{spec.name}",
        status=typed.status,
        now=now,
        view=view,
        spec=spec,
        doc=doc(spec),
        fields=fields,
        typed=typed,
        sent=typed.wrong is not None,
        done=done,
        minutes=_minutes(figures),
        pace=charting.pace,
        waits_for=await first_waits(asked, None if stats is None else stats.counts, task=spec.name),
        schedules=None if roster is None else [(one, one.status(now)) for one in mine],
        retry=retry_words(spec.retry),
        keys=key_words(spec),
        throughput=charting.throughput(chart),
        heat=charting.heat(chart),
        columns=charting.THROUGHPUT,
        everybody=asked.tenant is None,
        known_code=spec.name in asked.rota.tasks,
        filter=f"task:{quoted(spec.name)}",
        command=_command(spec, fields),
        chosen=chosen,
        choices=list(RANGES),
    )


def doc(spec: TaskSpec) -> str:
    """What its code says of it, if that was published."""
    said = _schema(spec).get("description")
    return redacted_text(said) if isinstance(said, str) else ""


def retry_words(retry: Retry) -> str:
    """A retry policy as a sentence."""
    if retry.attempts == 1:
        return "One attempt, and no other."
    pauses = ", ".join(
        span(min(retry.base * 2**step, retry.cap)) for step in range(min(retry.attempts - 1, 4))
    )
    more = ", …" if retry.attempts > 5 else ""
    spread = f", {retry.jitter:.0%} either way" if retry.jitter else ""
    lost = "" if retry.lost else " Never again after a crash."
    return (
        f"{retry.attempts} attempts, with pauses of {pauses}{more}{spread}, {span(retry.cap)} at most.{lost}"
    )


def key_words(spec: TaskSpec) -> list[str]:
    """What makes two of its jobs the same, or keeps them from running together, in sentences."""
    rules, said = spec.rules, []
    if rules.key is not None:
        said.append(f"Its key is {_found(rules.key)}: a second enqueue with the same one is the first job.")
    if rules.unique is not None:
        said.append(f"One waiting job for each {_found(rules.unique)}; a second one: {rules.on_duplicate}.")
    if rules.serial is not None or spec.gate_path:
        rule = rules.serial or KeyRule(spec.gate_path)
        said.append(f"Jobs with the same {_found(rule)} run one after another.")
    if rules.policy is not None:
        said.append("The app's rules say what its jobs must carry.")
    return said


def _found(rule: KeyRule) -> str:
    return "key that its code finds" if rule.path is None else f"argument {rule.path}"


def _refused(asked: Asking, answers: Answers, options: Mapping[str, str], error: EnqueueError) -> Typed:
    """Why it was not stored, at the field that it is about where that is known."""
    message = redacted_text(str(error))
    if isinstance(error, KeyConflict | NotUnique):
        there = path_to(asked, "page.job", job_id=public_id(error.job_id))
        return Typed(answers.fields, options, message, there, 409)
    fields = marked(answers, message) if isinstance(error, PayloadInvalid) else answers.fields
    return Typed(fields, options, message, status=422)


def _options(typed: Mapping[str, str]) -> dict[str, Any]:
    """The options that were filled in, in the words of `using()`."""
    said: dict[str, Any] = {name: value for name, value in typed.items() if value}
    if "priority" in said:
        text = said["priority"]
        said["priority"] = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else text
    return said


def _schema(spec: TaskSpec) -> dict[str, Any]:
    found = json.loads(spec.schema_json)
    return found if isinstance(found, dict) else {}


async def _view(asked: Asking, name: str) -> TaskView:
    for view in await asked.admin.tasks():
        if view.spec.name == name:
            return view
    raise Problem(
        404, "task-not-found", f"No task {name!r} is published. A worker publishes its tasks when it starts."
    )


async def _series(asked: Asking, chosen: Range) -> Any:
    return await asked.admin.store.series(chosen.seconds, step_for(chosen.seconds))


def _minutes(figures: Figures | None) -> float:
    return 1.0 if figures is None else max(figures.seconds, 1.0) / 60


def _command(spec: TaskSpec, fields: Sequence[Field]) -> str:
    """The same on the command line."""
    needed = [f"{field.label}=…" for field in fields if field.required]
    return " ".join(["rota enqueue", shlex.quote(spec.name), *needed])


def _busiest(row: Row) -> tuple[bool, int, str]:
    return (not row.parked, -(row.done.attempts if row.done else 0), row.spec.name)
