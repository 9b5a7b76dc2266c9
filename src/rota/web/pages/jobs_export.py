"""What a filter finds, as a file: rows come from the store page by page, and nothing sensitive is in them."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from rota._core.ids import public_id
from rota._core.job import Job
from rota._core.job_filter import JobFilter
from rota._core.redaction import for_people
from rota.errors import RotaError
from rota.stores.search_contract import SearchesBusy, SearchTooWide
from rota.web.api.jobs import FILTER, meant
from rota.web.asking import Asked, Asking
from rota.web.pages.job_list import Place, narrowed, place_of
from rota.web.pages.routing import PageRoutes
from rota.web.problems import Problem
from rota.web.roles import Role
from rota.web.searching import turn

routes = PageRoutes()

MOST = 10_000
"""Rows of a file."""
PAGE = 50
"""Rows that are read and written at once: payloads may be large."""
CUT = f"cut: only the first {MOST:,} jobs are here. Narrow the filter, or split it by time."
BROKEN = "broken off: the store did not answer. Ask again."
UNSURE = "broken off: nothing says any more that you may see the rest. Log in, and ask again."
FIELDS = (
    "id", "public_id", "state", "task", "queue", "priority", "attempt", "max_attempts", "tenant", "subject", "key",
    "external_id", "correlation_id", "parent_id", "tags", "category", "created_by", "created_at", "run_at",
    "claimed_at", "finished_at", "error_class", "error_message", "reason", "payload", "result",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so would be computed by a spreadsheet."""

Wanted = Annotated[str, Query(alias="filter", max_length=FILTER)]


@routes.get("/jobs/export.csv", verb="jobs_csv", role=Role.VIEWER)
async def as_csv(asked: Asked, wanted: Wanted = "") -> Response:
    """The jobs that match, as CSV; a last line says it when there are more."""
    return await _file(asked, wanted, "text/csv; charset=utf-8", "jobs.csv", _lines)


@routes.get("/jobs/export.json", verb="jobs_json", role=Role.VIEWER)
async def as_json(asked: Asked, wanted: Wanted = "") -> Response:
    """The jobs that match, as JSON; `note` says it when there are more."""
    return await _file(asked, wanted, "application/json", "jobs.json", _document)


Rows = AsyncIterator["Sequence[Job] | str"]


async def _file(
    asked: Asking, wanted: str, kind: str, name: str, written: Callable[[Rows], AsyncIterator[str]]
) -> Response:
    which = await meant(asked, wanted.strip(), limit=PAGE)
    first = await _found(asked, which)  # what is wrong with the filter is said before the file begins
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(written(_pages(asked, which, first)), media_type=kind, headers=headers)


async def _pages(asked: Asking, which: JobFilter, page: Sequence[Job]) -> Rows:
    """All pages; then, if that is not all, why."""
    found = len(page)
    yield page
    while len(page) == PAGE:
        if not await asked.still_known():
            yield UNSURE
            return
        try:
            page = await _found(asked, narrowed(which, Place(place_of(page[-1], which))))
        except (SearchTooWide, SearchesBusy, Problem) as error:
            yield f"broken off: {error.detail if isinstance(error, Problem) else error}"
            return
        except RotaError:
            yield BROKEN
            return
        if found >= MOST:
            if page:
                yield CUT
            return
        found += len(page)
        yield page


async def _found(asked: Asking, which: JobFilter) -> Sequence[Job]:
    async with turn(asked):
        return await asked.admin.list(which)


async def _lines(rows: Rows) -> AsyncIterator[str]:
    yield _line(FIELDS)
    async for page in rows:
        if isinstance(page, str):
            yield _line([f"# {page}"])
        else:
            yield await asyncio.to_thread(_table, page)


async def _document(rows: Rows) -> AsyncIterator[str]:
    note, between = None, ""
    yield '{"jobs": ['
    async for page in rows:
        if isinstance(page, str):
            note = page
        elif page:
            yield between + await asyncio.to_thread(_objects, page)
            between = ",\n"
    yield f'], "note": {json.dumps(note)}}}\n'


def _table(jobs: Sequence[Job]) -> str:
    return "".join(_line([_cell(value) for value in record(job).values()]) for job in jobs)


def _objects(jobs: Sequence[Job]) -> str:
    return ",\n".join(json.dumps(record(job), ensure_ascii=False, default=_text) for job in jobs)


def record(job: Job) -> dict[str, Any]:
    """A job as a row, without what is sensitive."""
    seen = for_people(job)
    fields = seen._asdict() | {
        "public_id": public_id(job.id),
        "correlation_id": job.correlation,
        "payload": seen.payload,
        "result": seen.result,
    }
    return {name: fields[name] for name in FIELDS}


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _text(value: Any) -> str:
    """The same in both files: moments as ISO 8601 has them."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list | bool):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, tuple):
        text = " ".join(value)
    else:
        text = _text(value)
    return f"'{text}" if text.startswith(FORMULA) and not isinstance(value, int | float) else text
