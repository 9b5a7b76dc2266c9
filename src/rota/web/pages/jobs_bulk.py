"""One verb on many jobs: on the rows that are ticked at once, on all that match as an operation with its own page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from fastapi import Query
from starlette.responses import RedirectResponse, Response

from rota._core.actions import Verb
from rota._core.filtering import FilterError
from rota._core.ids import parse_id
from rota._core.job import Job, State
from rota._core.job_filter import JobFilter
from rota._core.lengths import many
from rota.admin.bulk import STATES, Matched, Swept
from rota.admin.editing import Edit
from rota.errors import JobChanged, JobNotFound, MoveRefused
from rota.stores.search_contract import SearchesBusy, SearchTooWide
from rota.web.api.job_operations import begun_on_jobs
from rota.web.api.jobs import FILTER, meant
from rota.web.api.operations import SLOWEST
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import TYPED_FROM, Form, Formed, back, whole_number
from rota.web.pages.job_list import row
from rota.web.pages.jobs import BULK, command, sentence
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.problems import Problem
from rota.web.roles import Role
from rota.web.searching import SEARCHES

routes = PageRoutes()

TICKED = 200
"""So many rows may be ticked."""
UNDONE = 20
"""Of so many held jobs the notice still carries the ids that undo it."""
SAMPLE = 8
DONE = {
    Verb.RETRY: "retried",
    Verb.CANCEL: "cancelled",
    Verb.HOLD: "held",
    Verb.RELEASE: "released",
    Verb.DELETE: "deleted",
}
ABOUT = {
    Verb.RETRY: "They run again from their first attempt.",
    Verb.CANCEL: "Waiting ones are taken off the list; workers are asked to stop running ones.",
    Verb.HOLD: "They wait until somebody releases them.",
    Verb.RELEASE: "They go back on the list.",
    Verb.DELETE: "They are removed with their history. Only the audit keeps a trace of them.",
}


class Typed(NamedTuple):
    """What somebody has filled in so far."""

    reason: str = ""
    rate: str = ""
    expected: int = 0
    """How many jobs he was shown; 0: none yet."""


class LeftOut(NamedTuple):
    """Ticked rows that the verb has not met, by why."""

    unended: int = 0
    """Not deleted, because they wait or run."""
    gone: int = 0


@routes.post("/jobs/ticked", verb="jobs_ticked", role=Role.OPERATOR)
async def ticked(asked: Asked, form: Formed) -> Response:
    """Do what was chosen to the rows that were ticked, or ask about all that match."""
    to = path_to(asked, "page.jobs", query={"filter": form.text("filter", most=FILTER)})
    word = form.text("verb") or asked.request.query_params.get("verb", "")
    if form.text("every"):
        query = {"verb": _verb(asked, word).value, "filter": form.text("filter", most=FILTER)}
        return RedirectResponse(path_to(asked, "page.jobs_all", query=query), status_code=303)
    chosen = _chosen(asked, form)
    if not chosen:
        return back(
            asked, form, Notice("No row was ticked. Tick some, then choose what to do.", good=False), to=to
        )
    if word in ("priority", "queue"):
        return back(asked, form, await _edited(asked, chosen, word, form.needed(word, most=1000)), to=to)
    verb = _verb(asked, word)
    wanted = JobFilter(states=tuple(State), ids=tuple(chosen))
    swept = await asked.admin.sweep(verb, wanted, reason=form.reason)
    undo = None
    # Undo may release only what this has held: a job that was held before is somebody else's.
    if verb is Verb.HOLD and swept.done == len(chosen) <= UNDONE:
        ids = ",".join(map(str, chosen))
        undo = path_to(asked, "page.jobs_ticked", query={"verb": Verb.RELEASE.value, "ids": ids})
    said = told(verb, swept, await _left_out(asked, verb, chosen, swept))
    return back(asked, form, Notice(said, good=swept.done > 0, undo=undo), to=to)


@routes.get(
    "/jobs/all",
    verb="jobs_all",
    role=Role.OPERATOR,
    dependencies=SEARCHES,
)
async def ask(
    asked: Asked,
    verb: Annotated[str, Query(max_length=20)],
    wanted: Annotated[str, Query(alias="filter", max_length=FILTER)] = "",
) -> Response:
    """How many jobs a verb would meet, some of them, and the question whether it is meant."""
    return await _preview(asked, _verb(asked, verb), wanted.strip())


@routes.post(
    "/jobs/all",
    verb="jobs_begin",
    role=Role.OPERATOR,
    dependencies=SEARCHES,
)
async def begin(asked: Asked, form: Formed) -> Response:
    """Begin the operation; its page tells how far it is."""
    verb, words = _verb(asked, form.needed("verb")), form.text("filter", most=FILTER) or ""
    expected = whole_number(form.needed("expected", most=20))
    typed = Typed(form.reason or "", form.text("rate", most=20) or "", expected or 0)
    rate = _rate(typed.rate)
    if expected is None:
        wrong = "How many jobs you were shown is missing from the form. Look at the number, then decide."
        return await _preview(asked, verb, words, wrong=wrong, typed=typed)
    if rate == 0:
        wrong = "The pace must be a number of jobs a second, such as 50 or 0.5; leave it empty for no limit."
        return await _preview(asked, verb, words, wrong=wrong, typed=typed)
    if expected > TYPED_FROM and whole_number(form.text("number", most=20)) != expected:
        return await _preview(
            asked, verb, words, wrong="The number that was typed is another one.", typed=typed
        )
    try:
        begun = await begun_on_jobs(asked, verb, words, reason=form.reason, rate=rate, expected=expected)
    except Problem as problem:
        if problem.kind != "grown":
            raise
        return await _preview(asked, verb, words, wrong=str(problem.detail), status=409, typed=typed)
    except (FilterError, SearchTooWide, SearchesBusy) as error:
        return await _preview(asked, verb, words, wrong=sentence(error), typed=typed)
    return RedirectResponse(path_to(asked, "page.operation", operation_id=str(begun.id)), status_code=303)


async def _preview(
    asked: Asking,
    verb: Verb,
    words: str,
    *,
    wrong: str | None = None,
    status: int | None = None,
    typed: Typed = Typed(),  # noqa: B008 - a named tuple does not change
) -> Response:
    admin = asked.admin
    matched: Matched | None = None
    which: JobFilter | None = None
    jobs: Sequence[Job] = ()
    try:
        which = await meant(asked, words, limit=SAMPLE, brief=True)
        matched = await admin.match_jobs(verb, words)
        jobs = await admin.list(which._replace(states=which.states or STATES[verb]))
    except (FilterError, SearchTooWide, SearchesBusy) as error:
        wrong = sentence(error)
    now = await admin.store.now()
    [shown] = [one for one in BULK if one[0] is verb]
    return render(
        asked,
        "jobs_all.html",
        title=f"{shown[1]} all that match",
        here="jobs",
        status=status or (422 if wrong else 200),
        verb=verb,
        word=shown[1],
        icon_name=shown[2],
        about=ABOUT[verb],
        filter=words,
        implied=() if which is None or which.states else STATES[verb],
        matched=matched,
        typed_from=TYPED_FROM,
        rows=[row(job, now, {}) for job in jobs],
        now=now,
        wrong=wrong,
        typed=typed,
        command=command(verb.value, words),
    )


async def _edited(asked: Asking, chosen: Sequence[UUID], field: str, value: str) -> Notice:
    """Another priority or another queue for each of them that still waits."""
    change = Edit(queue=value)
    if field == "priority":
        number = whole_number(value)
        if number is None:
            raise Problem(
                422, "bad-priority", f"{value[:40]!r} is no priority: a whole number from 0 to 32,767."
            )
        change = Edit(priority=number)
    done = refused = 0
    for job_id in chosen:
        try:
            await asked.admin.edit(job_id, change)
            done += 1
        except (MoveRefused, JobChanged, JobNotFound):
            refused += 1
    said = f"{many(done, 'job')} now with {field} {value}."
    if refused:
        said += f" {refused:,} left as they are: only a job that waits or is held can be changed."
    return Notice(said, good=done > 0)


async def _left_out(asked: Asking, verb: Verb, chosen: Sequence[UUID], swept: Swept) -> LeftOut:
    """Which of the ticked rows the sweep has not met. Only deleting passes over any that are still there."""
    left = max(len(chosen) - swept.met, 0)
    if not left or verb is not Verb.DELETE:
        return LeftOut(gone=left)
    # What can still be cancelled is what has not ended.
    found = await asked.admin.count(Verb.CANCEL, JobFilter(ids=tuple(chosen)))
    unended = min(found.jobs, left)
    return LeftOut(unended, left - unended)


def told(verb: Verb, swept: Swept, left: LeftOut) -> str:
    """What became of the jobs, in a few sentences: as many as were ticked."""
    said = [f"{many(swept.done, 'job')} {DONE[verb]}."]
    if swept.asked:
        said.append(f"Of these, {swept.asked:,} run; their workers are asked to stop them.")
    if swept.refused:
        said.append(f"{swept.refused:,} left as they are: their state does not allow it.")
    if swept.changed:
        said.append(f"{swept.changed:,} changed meanwhile.")
    if left.unended:
        said.append(
            f"{left.unended:,} left as they are: only jobs that have ended are deleted. Cancel them first."
        )
    if left.gone:
        said.append(f"{left.gone:,} no longer there: deleted by somebody else, or by retention.")
    return " ".join(said)


def _verb(asked: Asking, word: str) -> Verb:
    """The verb that was chosen, if whoever asks may use it on many."""
    for verb, _, _, role in BULK:
        if verb.value == word:
            if not asked.may(role):
                words = f"This needs the role {role.value}, and yours is {asked.user.role.value}."
                raise Problem(403, "role-too-low", words, needed=role.value)
            return verb
    known = ", ".join(verb.value for verb, *_ in BULK)
    raise Problem(422, "no-such-verb", f"{word[:40]!r} cannot be done to many jobs. There are {known}.")


def _chosen(asked: Asking, form: Form) -> list[UUID]:
    """The jobs that were ticked, or that the address of an undo names."""
    said: list[Any] = form.all("id")
    if not said:
        listed = dict(parse_qsl(asked.request.url.query)).get("ids", "")
        said = listed.split(",") if listed else []
    if len(said) > TICKED:
        raise Problem(422, "too-many", f"{len(said):,} rows are ticked, and {TICKED} are the most at once.")
    try:
        return list(dict.fromkeys(parse_id(one) for one in said))
    except ValueError as error:
        raise Problem(422, "bad-id", str(error)) from error


def _rate(text: str) -> float | None:
    """Jobs a second; None: no limit; 0: it cannot be meant."""
    if not text:
        return None
    try:
        rate = float(text)
    except ValueError:
        return 0
    return rate if SLOWEST <= rate <= 10_000 else 0
