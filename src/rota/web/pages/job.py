"""One job: how it stands, its life as a strip, why it does not run, and everything that is known of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from fastapi import Query
from starlette.responses import Response

from rota._core.dead_letter import DeadLetter
from rota._core.filtering import quoted
from rota._core.ids import parse_id, public_id
from rota._core.job import Job, State
from rota._core.job_log import LogTail
from rota._core.lengths import span
from rota._core.numbers import bucket, edges
from rota._core.redaction import redacted, redacted_text
from rota._core.trace_link import trace_link
from rota.errors import JobArchived, JobNotFound, StoreError
from rota.stores.contract import Attempt
from rota.web.api.shapes import Explained, JobId, explanation_shown, shown
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import Formed
from rota.web.pages.job_edit import editable
from rota.web.pages.job_family import family
from rota.web.pages.job_list import listed, offered, ran, removable, waited, workers_by_id
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.snippets import LONGEST, Snippet, snippets
from rota.web.pages.timeline import TONES, bars, stretches
from rota.web.pages.traces import Part, Place, parts
from rota.web.pages.trees import tree
from rota.web.roles import Role

routes = PageRoutes()

TABS = ("attempts", "arguments", "result", "logs", "events", "related", "raw")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
AMONG = 86_400.0
"""The runs of so many seconds are what a run is compared with."""
WAITS = (State.PENDING, State.HELD, State.BLOCKED)
ATTEMPTS = 50
"""The newest ones, which a page shows; a job may have thousands, each with its trace."""


class Tried(NamedTuple):
    """One attempt that did not succeed, to be read."""

    seen: Attempt
    message: str
    chain: tuple[Part, ...]
    seconds: float | None
    worker: str | None

    @property
    def own(self) -> Place | None:
        """Where in the application's own code it came from."""
        return next((part.place for part in self.chain if part.place is not None), None)


class Among(NamedTuple):
    """How this run stands among others of its task."""

    columns: list[tuple[str, int, bool]]
    """(how long, how many ran so long, whether this one did)."""
    runs: int
    slower: float
    """The share of the others that took longer."""


@routes.get("/jobs/{job_id}", verb="job", role=Role.VIEWER)
async def job(
    asked: Asked,
    job_id: str,
    tab: Annotated[str, Query(max_length=20)] = "",
    level: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """One job by its UUID or its Base32 id. One that retention removed says so."""
    try:
        found = await asked.admin.job(parse_id(job_id))
    except JobArchived as error:
        return _gone(asked, "It was archived", error)
    except JobNotFound:
        return _gone(asked, "No job has this id", None)
    except ValueError as error:
        return _gone(asked, "This is no job's id", None, str(error))
    return await page_of(asked, found, tab=tab, level=level.upper())


@routes.post(
    "/jobs/{job_id}/reveal",
    verb="job_reveal",
    role=Role.MANAGER,
)
async def reveal(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """The arguments and the result as they are stored, once. That somebody looked stands in the audit."""
    found = await asked.admin.reveal(job_id, reason=form.reason)
    tab = "result" if form.text("tab") == "result" else "arguments"
    return await page_of(asked, found, tab=tab, revealed=True)


async def page_of(
    asked: Asking, found: Job, *, tab: str = "", level: str = "", revealed: bool = False
) -> Response:
    """The page of a job, with one of its tabs."""
    admin = asked.admin
    now, attempts, sessions, letter = await asyncio.gather(
        admin.store.now(),
        admin.store.attempts(found.id, limit=ATTEMPTS + 1),
        admin.store.sessions(),
        _letter(asked, found),
    )
    earlier, attempts = len(attempts) > ATTEMPTS, attempts[-ATTEMPTS:]
    chosen = tab if tab in TABS else _first_tab(found, attempts)
    seen, workers = listed(found), workers_by_id(sessions)
    life = stretches(found, attempts, now, earlier=earlier)
    explained, among = await asyncio.gather(_explained(asked, found), _among(asked, found, now))
    context: dict[str, Any] = {
        "tab": chosen,
        "tabs": TABS,
        "job": seen,
        "label": found.label(now),
        "now": now,
        "waited": waited(found, now),
        "ran": ran(found, now),
        "worker": None if found.session_id is None else workers.get(found.session_id),
        "letter": letter,
        "offers": offered(found, now),
        "editable": editable(found),
        "removable": removable(found),
        "waits": found.state in WAITS,
        "life": life,
        "bars": bars(life),
        "tones": {tone: word for tone, word in TONES.items() if any(one.tone == tone for one in life)},
        "explained": explained,
        "among": among,
        "attempts": attempts,
        "earlier": earlier,
        "snippets": _snippets(asked, found),
        "revealed": revealed,
        "quoted": quoted,
        "trace": trace_link(asked.desk.trace_url, found.headers_json),
    }
    if chosen == "attempts":
        context["tries"] = await asyncio.to_thread(_tries, attempts, workers)
    context |= await _tab(asked, found, chosen, now, letter=letter, level=level, reveal=revealed)
    topics = "" if revealed else f"job:{found.id}"
    return render(
        asked,
        "job.html",
        title=f"{found.task} {public_id(found.id)[-7:]}",
        here="jobs",
        topics=topics,
        at=path_to(asked, "page.job", job_id=public_id(found.id)) if revealed else None,
        **context,
    )


async def _tab(
    asked: Asking, found: Job, tab: str, now: datetime, *, letter: DeadLetter | None, level: str, reveal: bool
) -> dict[str, Any]:
    """What only one of the tabs shows. Documents may be large: they are read beside the loop, which serves others."""
    match tab:
        case "arguments":
            return {"document": await asyncio.to_thread(tree, found.payload_json, reveal=reveal)}
        case "result":
            return {"document": await asyncio.to_thread(tree, found.result_json, reveal=reveal)}
        case "logs":
            tails = await asked.admin.logs(found.id)
            wanted = level if level in LEVELS else ""
            return {
                "tails": [_tail(one, wanted) for one in reversed(tails)],
                "levels": LEVELS,
                "level": wanted,
            }
        case "events":
            return {"audit": await asked.admin.store.audit(found.id)}
        case "related":
            return {"family": await family(asked, found, letter)}
        case "raw":
            return {"raw": await asyncio.to_thread(_raw, asked, found, now)}
    return {}


def _raw(asked: Asking, found: Job, now: datetime) -> dict[str, Any]:
    return shown(asked, found, now).model_dump(mode="json")


def _snippets(asked: Asking, found: Job) -> tuple[Snippet, ...]:
    """What is too long to be copied is not even looked into."""
    if len(found.payload_json) > LONGEST:
        return ()
    return snippets(found, redacted(found.payload), asked.url("jobs.submit"))


def _first_tab(found: Job, attempts: Sequence[Attempt]) -> str:
    """What whoever opens the page most likely looks for."""
    if attempts and found.state not in (State.COMPLETED, State.PARTIAL):
        return "attempts"
    return "arguments"


async def _letter(asked: Asking, found: Job) -> DeadLetter | None:
    if found.state is not State.DEAD:
        return None
    letter = await asked.admin.store.dead_letter(found.id)
    return (
        letter
        if letter is None or letter.notes is None
        else letter._replace(notes=redacted_text(letter.notes))
    )


async def _explained(asked: Asking, found: Job) -> Explained | None:
    """Why it does not run; None: it does, or it has ended, or the store did not say."""
    if found.state not in WAITS:
        return None
    try:
        return explanation_shown(await asked.admin.explain(found.id))
    except (StoreError, JobNotFound):
        return None


async def _among(asked: Asking, found: Job, now: datetime) -> Among | None:
    """Its latest run among those of its task; None: it has not run, or nothing is known of the others."""
    took = ran(found, now)
    if took is None or asked.tenant is not None:  # how tasks go is about all tenants
        return None
    try:
        chart = await asked.admin.series(AMONG, 3600.0, task=found.task)
    except StoreError:
        return None
    runs: dict[int, int] = {}
    for point in chart.points:
        for number, jobs in point.runs.items():
            runs[number] = runs.get(number, 0) + jobs
    return among(runs, took)


def among(runs: Mapping[int, int], took: float) -> Among | None:
    """Where a run of so many seconds stands."""
    whole = sum(runs.values())
    if not whole:
        return None
    own = bucket(took)
    first, last = min(*runs, own), max(*runs, own)
    step = max(1, -(-(last - first + 1) // 40))
    columns = []
    for start in range(first, last + 1, step):
        inside = range(start, start + step)
        low, high = edges(start)[0], edges(start + step - 1)[1]
        words = f"{span(low)} to {span(high)}" if high != float("inf") else f"from {span(low)}"
        columns.append((words, sum(runs.get(number, 0) for number in inside), own in inside))
    slower = sum(jobs for number, jobs in runs.items() if number > own) / whole
    return Among(columns, whole, slower)


def _tries(attempts: Sequence[Attempt], workers: Mapping[Any, str]) -> list[Tried]:
    """All of them, newest first."""
    return [_tried(one, workers) for one in reversed(attempts)]


def _tried(seen: Attempt, workers: Mapping[Any, str]) -> Tried:
    stack = None if seen.stack is None else redacted_text(seen.stack)
    took = None if seen.started_at is None else max((seen.ended_at - seen.started_at).total_seconds(), 0.0)
    worker = None if seen.session_id is None else workers.get(seen.session_id, "gone")
    return Tried(seen, redacted_text(seen.message), parts(stack), took, worker)


def _tail(tail: LogTail, level: str) -> LogTail:
    """The lines of this level and above, newest first."""
    least = LEVELS.index(level) if level else 0
    lines = [line for line in reversed(tail.lines) if _rank(line.level) >= least]
    return tail._replace(lines=tuple(lines))


def _rank(level: str) -> int:
    """Levels that somebody made himself are shown with any filter."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def _gone(asked: Asking, heading: str, archived: JobArchived | None, detail: str = "") -> Response:
    return render(
        asked,
        "job_gone.html",
        title="Not here",
        here="jobs",
        status=404,
        heading=heading,
        detail=detail,
        summary=None if archived is None else archived.summary,
    )
