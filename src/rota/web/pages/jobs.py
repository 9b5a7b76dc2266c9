"""All jobs: found by the filter language, in columns of one's choice, with what can be done to them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import Query
from starlette.responses import RedirectResponse, Response

from rota._core.actions import Verb
from rota._core.filtering import EXAMPLES, FilterError, quoted
from rota._core.ids import public_id
from rota._core.job import Job, State
from rota._core.job_filter import JobFilter
from rota._core.task_spec import TaskSpec
from rota.admin.numbers import capped
from rota.admin.reads import Stats
from rota.errors import StoreError
from rota.stores.search_contract import SearchesBusy, SearchTooWide
from rota.web.api.jobs import FILTER, meant
from rota.web.asking import Asked, Asking
from rota.web.pages.job_list import (
    COLUMNS,
    NUMBERS,
    Place,
    about_all,
    columns,
    narrowed,
    only_id,
    place_of,
    row,
    with_word,
    words_of,
    workers_by_id,
)
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.views import LONGEST, saved
from rota.web.roles import Role
from rota.web.searching import SEARCHES

routes = PageRoutes()

SHOWN = 50
SUGGESTED = 200
CHIPS = (
    State.PENDING,
    State.RUNNING,
    State.HELD,
    State.BLOCKED,
    State.DEAD,
    State.COMPLETED,
    State.PARTIAL,
    State.CANCELLED,
)
COUNTED_STATES = frozenset({State.PENDING, State.RUNNING, State.HELD, State.BLOCKED, State.DEAD})
"""Those of which counts are kept; how many ended is in the numbers of workers, not among jobs."""
BULK = (
    (Verb.RETRY, "Retry", "retry", Role.OPERATOR),
    (Verb.CANCEL, "Cancel", "stop", Role.OPERATOR),
    (Verb.HOLD, "Hold", "hold", Role.OPERATOR),
    (Verb.RELEASE, "Release", "play", Role.OPERATOR),
    (Verb.DELETE, "Delete", "trash", Role.MANAGER),
)
"""The verbs on many, and who may use them."""
HELP = (
    ("state:dead created>1h", "died, and made within the last hour"),
    ("queue:mail state:pending order:priority", "waits in one queue, most urgent first"),
    ("state:pending attempt>0", "waits for another attempt"),
    ("args.user.id:7", "an argument has this value"),
    ("error:TimeoutError", "failed with this exception or class"),
    ("tag:import tenant:acme", "a tag, of one tenant"),
    ("worker:web-1", "ran on this host"),
    ('subject:"order 7"', "about something; quotes keep spaces"),
    ("finished:2026-11-01..2026-11-02", "ended within these days"),
    ("priority:<50 order:oldest", "urgent ones, oldest first"),
)


class Chip(NamedTuple):
    """A state that the list can be narrowed to with one click."""

    word: str
    filter: str
    chosen: bool
    jobs: int | None
    capped: bool = False


class Found(NamedTuple):
    """One page of the list."""

    jobs: Sequence[Job] = ()
    below: str | None = None
    """Where the next page goes on; None: there is none."""
    above: str | None = None
    """Where the page before ends; None: this is the first."""


@routes.get(
    "/jobs",
    verb="jobs",
    role=Role.VIEWER,
    dependencies=SEARCHES,
)
async def jobs(
    asked: Asked,
    wanted: Annotated[str, Query(alias="filter")] = "",
    cols: Annotated[list[str] | None, Query()] = None,
    below: Annotated[str | None, Query(max_length=100)] = None,
    above: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """The jobs that match. An id alone leads to its job."""
    one = only_id(wanted)
    if one is not None:
        return RedirectResponse(path_to(asked, "page.job", job_id=public_id(one)), status_code=303)
    wanted = wanted.strip()
    admin, which, wrong = asked.admin, JobFilter(limit=SHOWN), None
    found = Found()
    try:
        which = await _meant(asked, wanted)
        found = await _found(asked, which, Place(below, above))
    except (FilterError, SearchTooWide, SearchesBusy) as error:
        wrong = sentence(error)
    now, stats, sessions, specs = await asyncio.gather(
        admin.store.now(), _stats(asked), admin.store.sessions(), _specs(asked)
    )
    workers = workers_by_id(sessions)
    chosen = columns(cols or ())
    return render(
        asked,
        "jobs.html",
        title="Jobs",
        here="jobs",
        topics="" if wrong else "jobs",
        status=422 if wrong else 200,
        now=now,
        filter=wanted,
        wrong=wrong,
        which=which,
        chips=_chips(wanted, which, stats),
        rows=[row(job, now, workers) for job in found.jobs],
        found=found,
        columns=COLUMNS,
        chosen=chosen,
        numbers=NUMBERS,
        kept=_kept(wanted, cols or ()),
        views=saved(asked),
        name_length=LONGEST,
        suggestions=_suggestions(wanted, specs),
        help=HELP,
        bulk=[one for one in BULK if asked.may(one[3])],
        command=command("list", wanted),
        link=str(asked.request.url),
    )


def sentence(error: Exception) -> str:
    """What is wrong, as it stands beside a field."""
    said = str(error)
    return said[:1].upper() + said[1:]


def command(verb: str, wanted: str) -> str:
    """The same on the command line."""
    return " ".join(["rota", "jobs", verb, *([shlex.quote(wanted)] if wanted else [])])


async def _meant(asked: Asking, wanted: str) -> JobFilter:
    if len(wanted) > FILTER:
        raise FilterError(
            f"{wanted[:20]}…", f"the filter has {len(wanted):,} characters, and {FILTER:,} are the most."
        )
    return await meant(asked, wanted, limit=SHOWN, brief=True)


async def _found(asked: Asking, which: JobFilter, place: Place) -> Found:
    """One page, and whether there are more on either side."""
    page = narrowed(which, place)._replace(limit=SHOWN + 1)
    jobs = list(await asked.admin.list(page))
    backwards = place.above is not None and not which.by_priority
    more = len(jobs) > SHOWN
    jobs = jobs[:SHOWN]
    if backwards:
        if not more:  # this is the top: show it whole, and with what came meanwhile
            return await _found(asked, which, Place())
        jobs.reverse()
        return Found(jobs, place_of(jobs[-1], which), place_of(jobs[0], which))
    first = None if place.below is None or not jobs or which.by_priority else place_of(jobs[0], which)
    return Found(jobs, place_of(jobs[-1], which) if more else None, first)


async def _stats(asked: Asking) -> Stats | None:
    """Counts of all tenants; None: not for him, or unknown."""
    if asked.tenant is not None:
        return None
    try:
        return await asked.desk.recently.get("stats", asked.admin.stats)
    except StoreError:
        return None


async def _specs(asked: Asking) -> Sequence[TaskSpec]:
    """What may be suggested; nothing where it is unknown."""
    try:
        return await asked.admin.store.tasks()
    except StoreError:
        return ()


def _chips(wanted: str, which: JobFilter, stats: Stats | None) -> list[Chip]:
    chips = [Chip("all", with_word(wanted, "state", None), not which.states, None)]
    counts: dict[State, int] | None = None
    if stats is not None and about_all(which):
        counts = dict.fromkeys(COUNTED_STATES, 0)
        for count in stats.counts:
            if which.queue in (None, count.queue) and which.task in (None, count.task):
                counts[count.state] = counts.get(count.state, 0) + count.jobs
    stopped = stats is not None and capped(stats.counts)
    for state in CHIPS:
        jobs = None if counts is None else counts.get(state)
        filtered = with_word(wanted, "state", state.value)
        most = stopped and jobs is not None and state is not State.RUNNING
        chips.append(Chip(state.value, filtered, which.states == (state,), jobs, most))
    return chips


def _kept(wanted: str, cols: Sequence[str]) -> dict[str, Any]:
    """What every link of the page keeps."""
    return {"filter": wanted or None, "cols": list(cols) or None}


def _suggestions(wanted: str, specs: Sequence[TaskSpec]) -> list[str]:
    """Filters that begin with what is there: a browser offers those that go on with what is typed."""
    said = {word.partition(":")[0] for word in words_of(wanted)}
    begun = f"{wanted} " if words_of(wanted) else ""
    words = [f"state:{state.value}" for state in CHIPS if "state" not in said]
    for field, names in (("queue", {spec.queue for spec in specs}), ("task", {spec.name for spec in specs})):
        words += [f"{field}:{quoted(name)}" for name in sorted(names) if field not in said]
    named = said | {"state", "task", "queue"}
    words += [example for field, example in EXAMPLES.items() if field.strip(".") not in named]
    return [begun + word for word in words[:SUGGESTED]]
