"""What runs by itself: when, what became of it, what comes next, and what people set in place of the code's word."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from fastapi import Query
from starlette.responses import Response

from rota._core.ids import public_id
from rota._core.lengths import many, span
from rota._core.redaction import redacted
from rota._core.schedule import Fate, Misfire, Overlap, ScheduleRecord, ScheduleSpec, TickRecord
from rota._core.schedule_plan import delay
from rota.admin.schedules import Backfill, Upcoming, upcoming
from rota.admin.scope import OutOfScope
from rota.errors import ScheduleError
from rota.schedule_times import times_of
from rota.web.asking import Asked, Asking
from rota.web.pages.activity import audit_line
from rota.web.pages.forms import TYPED_FROM, Formed, back
from rota.web.pages.moments import needed_moment
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.sharing import SAMPLED, shared
from rota.web.pages.tick_days import month_of
from rota.web.pages.ticks import SHOWN, Mark, marked
from rota.web.pages.trees import tree
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

AT_ONCE = 4
"""Schedules whose ticks are asked for at once: others need connections too."""
MARKED = 200
"""Of so many schedules the ticks are drawn in the list; of more, only on their own pages."""
OVERLAPS = {
    Overlap.SKIP: "A tick is left out while the job of the last one is unfinished.",
    Overlap.ALLOW: "Every tick makes a job, whether the last one has ended or not.",
}


class Line(NamedTuple):
    """One schedule of the list."""

    record: ScheduleRecord
    status: str
    spec: ScheduleSpec
    words: str
    marks: Sequence[Mark]
    next: Upcoming | None
    trouble: str
    """Why it cannot tick here; empty: it can."""


class Edited(NamedTuple):
    """What an operator set in place of the code's word."""

    name: str
    code: str
    now: str


@routes.get("/schedules", verb="schedules", role=Role.VIEWER)
async def schedules(asked: Asked) -> Response:
    """Every schedule, with its last ticks and the next one."""
    try:
        roster = await asked.admin.schedules()
    except OutOfScope:
        return render(
            asked, "schedules.html", title="Schedules", here="schedules", lines=None, now=None, unmarked=False
        )
    records = sorted(roster.schedules, key=lambda record: record.name)
    names = tuple(record.name for record in records[:MARKED])
    ticks = await shared(asked, ("ticks", names), lambda: _ticks(asked, names))

    def line(record: ScheduleRecord) -> Line:
        spec = record.effective
        coming, trouble = _coming(spec, roster.now, 1)
        return Line(
            record,
            record.status(roster.now),
            spec,
            in_words(spec),
            marked(spec, ticks.get(record.name, ()), roster.now),
            coming[0] if coming else None,
            trouble,
        )

    return render(
        asked,
        "schedules.html",
        title="Schedules",
        here="schedules",
        topics="jobs",
        lines=[line(record) for record in records],
        now=roster.now,
        unmarked=len(records) > MARKED,
    )


@routes.get(
    "/schedules/{name:path}",
    verb="schedule",
    role=Role.VIEWER,
)
async def schedule(
    asked: Asked,
    name: str,
    begin: Annotated[str, Query(max_length=100)] = "",
    end: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """One schedule; with `begin` and `end`, what a backfill of that time would do."""
    admin = asked.admin
    record = await admin.schedule(name)
    spec = record.effective
    now, rows = await asyncio.gather(admin.store.now(), admin.store.audit(about=f"schedule:{name}"))
    folded, marks = await shared(
        asked, ("month", name), lambda: month_of(admin.store, spec, now), lasts=SAMPLED
    )
    coming, trouble = _coming(spec, now, 5)
    template = json.loads(spec.template_json)
    return render(
        asked,
        "schedule.html",
        title=name,
        here="schedules",
        topics="" if begin else "jobs",
        record=record,
        spec=spec,
        standing=record.status(now),
        words=in_words(spec),
        trouble=trouble,
        now=now,
        marks=marks,
        folded=folded,
        coming=coming,
        rules=_rules(spec),
        edited=_edited(record),
        job=template,
        arguments=tree(json.dumps(template.get("payload", {}))),
        lines=[audit_line(asked, row) for row in rows],
        begin=begin,
        end=end,
        preview=await _preview(asked, record, begin, end, now),
        shell=shlex.quote(name),
        Fate=Fate,
    )


@routes.post(
    "/schedules/pause/{name:path}",
    verb="schedule_pause",
    role=Role.OPERATOR,
)
async def pause(asked: Asked, name: str, form: Formed) -> Response:
    """Let it rest."""
    await asked.admin.pause_schedule(name, reason=form.reason)
    notice = Notice(
        f"Paused {name}. Ticks that pass meanwhile are not made good.",
        undo=path_to(asked, "page.schedule_resume", name=name),
    )
    return back(asked, form, notice, to=path_to(asked, "page.schedule", name=name))


@routes.post(
    "/schedules/resume/{name:path}",
    verb="schedule_resume",
    role=Role.OPERATOR,
)
async def resume(asked: Asked, name: str, form: Formed) -> Response:
    """Let it tick again, from now on."""
    await asked.admin.resume_schedule(name, reason=form.reason)
    notice = Notice(
        f"{name} ticks again, from now on.", undo=path_to(asked, "page.schedule_pause", name=name)
    )
    return back(asked, form, notice, to=path_to(asked, "page.schedule", name=name))


@routes.post(
    "/schedules/run/{name:path}",
    verb="schedule_run",
    role=Role.OPERATOR,
)
async def run(asked: Asked, name: str, form: Formed) -> Response:
    """Enqueue its job now, and go there."""
    job_id = await asked.admin.run_schedule(name, reason=form.reason)
    notice = Notice(f"{name} runs now, beside its ticks. This is its job.")
    return back(asked, form, notice, to=path_to(asked, "page.job", job_id=public_id(job_id)))


@routes.post(
    "/schedules/reset/{name:path}",
    verb="schedule_reset",
    role=Role.MANAGER,
)
async def reset(asked: Asked, name: str, form: Formed) -> Response:
    """Let the code's word hold again."""
    await asked.admin.reset_schedule(name, reason=form.reason)
    notice = Notice(f"What the code says of {name} holds again. A pause stays.")
    return back(asked, form, notice, to=path_to(asked, "page.schedule", name=name))


@routes.post(
    "/schedules/backfill/{name:path}",
    verb="schedule_backfill",
    role=Role.MANAGER,
)
async def backfill(asked: Asked, name: str, form: Formed) -> Response:
    """Make good what a preview showed."""
    now = await asked.admin.store.now()
    begin = needed_moment(form.text("begin"), now, "from")
    end = needed_moment(form.text("end"), now, "until")
    try:
        would = (await asked.admin.backfill(name, begin, end, dry_run=True)).count(Fate.ENQUEUED)
        if would > TYPED_FROM and form.text("number") != str(would):
            raise Problem(
                422,
                "number-needed",
                f"This would enqueue {would:,} jobs. Go back, and type {would} to go on.",
            )
        done = await asked.admin.backfill(name, begin, end, reason=form.reason)
    except ScheduleError as error:
        raise Problem(422, "bad-backfill", str(error)) from error
    made = done.count(Fate.ENQUEUED)
    said = f"{many(made, 'tick')} of {name} made good; {len(done.ticks) - made:,} needed nothing."
    return back(asked, form, Notice(said), to=path_to(asked, "page.schedule", name=name))


async def _ticks(asked: Asking, names: Sequence[str]) -> dict[str, Sequence[TickRecord]]:
    """The last ticks of each of these schedules."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def of(name: str) -> Sequence[TickRecord]:
        async with turns:
            return await asked.admin.store.ticks(name, limit=SHOWN)

    return dict(zip(names, await asyncio.gather(*map(of, names)), strict=True))


def in_words(spec: ScheduleSpec) -> str:
    """When it ticks, in plain English; what cannot be said stands as it was written."""
    try:
        said = times_of(spec.timing, spec.tz).words()
    except ScheduleError:
        return spec.timing
    said = said[:1].upper() + said[1:]
    return said if spec.timing.lower().startswith("every ") else f"{said}, {spec.tz}"


def _coming(spec: ScheduleSpec, now: datetime, count: int) -> tuple[list[Upcoming], str]:
    """The next ticks; and why there are none, if its times cannot be read here."""
    try:
        return upcoming(spec, now, count), ""
    except ScheduleError as error:
        return [], str(error)


def _rules(spec: ScheduleSpec) -> list[tuple[str, str]]:
    """Its policies, in words."""
    misfires = {
        Misfire.SKIP: "Ticks that nobody could take in time are left out.",
        Misfire.LAST: "Of ticks that nobody could take in time the newest runs, once.",
        Misfire.ALL: f"Ticks that nobody could take in time all run, the newest {spec.cap:,} of them.",
    }
    shift = delay(spec)
    jitter = "None: it ticks exactly at its time."
    if spec.jitter:
        jitter = (
            f"Always {span(shift)} after its time, chosen within {span(spec.jitter)}: not all tick at once."
        )
    return [
        ("Overlap", OVERLAPS[spec.overlap]),
        ("Missed ticks", misfires[spec.misfire]),
        ("Grace", f"A tick that is up to {span(spec.grace)} late still counts as on time."),
        ("Jitter", jitter),
        (
            "Windows",
            "; ".join(f"not during {window}" for window in spec.windows) or "None: it may always tick.",
        ),
    ]


def _edited(record: ScheduleRecord) -> list[Edited]:
    """What operators set, beside what the code says."""
    code = record.spec._asdict()
    template = json.loads(record.spec.template_json)
    found = []
    for name, value in record.edits.said.items():
        if name == "payload_json":
            theirs, ours = redacted(template.get("payload", {})), redacted(json.loads(value))
            found.append(Edited("arguments", _told(theirs), _told(ours)))
        else:
            found.append(Edited(name, _told(code.get(name, template.get(name))), _told(value)))
    return found


def _told(value: Any) -> str:
    if value is None or value in ((), ""):
        return "nothing"
    if isinstance(value, tuple | list):
        return "; ".join(str(one) for one in value)
    return str(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


async def _preview(
    asked: Asking, record: ScheduleRecord, begin: str, end: str, now: datetime
) -> Backfill | None:
    """What a backfill would do; None: it was not asked."""
    if not begin or not asked.may(Role.MANAGER):
        return None
    first, last = needed_moment(begin, now, "from"), needed_moment(end or now.isoformat(), now, "until")
    try:
        return await asked.admin.backfill(record.name, first, last, dry_run=True)
    except ScheduleError as error:
        raise Problem(422, "bad-backfill", str(error)) from error
