"""The first page: are we keeping up, does anybody wait, what breaks, what comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from starlette.responses import Response

from rota._core.dead_letter import DeadFilter, FailureGroup
from rota._core.depths import Depths
from rota._core.happening import CodeVersion
from rota._core.job import State
from rota._core.redaction import redacted_text
from rota._core.series import Chart
from rota.admin.alerts import Alert
from rota.admin.bulk import Matched
from rota.admin.numbers import Overview
from rota.admin.picture import Picture
from rota.admin.schedules import upcoming
from rota.admin.scope import LOOKED_AT
from rota.admin.store_alerts import store_alerts
from rota.errors import ScheduleError, StoreError
from rota.stores.contract import JobFilter, SessionRecord
from rota.web.asking import Asked, Asking
from rota.web.pages import charting, sharing
from rota.web.pages.charting import known
from rota.web.pages.marks import VERSIONS, code_marks
from rota.web.pages.rendering import render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.sharing import SAMPLED, shared
from rota.web.pages.spans import RANGES, Range, Ranged
from rota.web.roles import Role

routes = PageRoutes()

GROUPS = 10
TICKS = 5
OWN_JOBS = 15


class Tick(NamedTuple):
    """What a schedule does next."""

    schedule: str
    task: str
    due: datetime
    local: datetime
    note: str


@routes.get("/", verb="overview", role=Role.VIEWER)
async def overview(asked: Asked, chosen: Ranged) -> Response:
    """How it stands, how it goes, and what is not well."""
    if asked.tenant is not None:
        return await _of_tenant(asked, chosen)
    picture, chart, depths, ticks, troubles, code = await shared(
        asked, ("overview", chosen.word), lambda: _read(asked, chosen)
    )
    seen = picture.seen
    return render(
        asked,
        "overview.html",
        title="Overview",
        here="overview",
        topics="jobs",
        alerts=sorted([*picture.alerts, *troubles], key=lambda alert: not alert.bad),
        seen=seen,
        now=seen.now,
        chosen=chosen,
        choices=list(RANGES),
        ready=seen.jobs(State.PENDING),
        dead=_along(depths, "dead"),
        undecided=picture.undecided,
        decisions=_decisions(picture.undecided, seen.jobs(State.DEAD)),
        oldest=_along(depths, "oldest_wait"),
        retrying=_along(depths, "retrying"),
        drains=charting.drains(seen.jobs(State.PENDING), _pace(seen), capped=seen.capped),
        marks=code_marks(code[0], chart, code[1]),
        throughput=charting.throughput(chart),
        waits=charting.waits(chart),
        depth=charting.depth(depths),
        flow=charting.flow(chart, depths),
        columns=charting.COLUMNS,
        queues=sorted(seen.queues(), key=charting.busiest),
        groups=None if picture.groups is None else [_readable(group) for group in picture.groups[:GROUPS]],
        ticks=ticks,
        State=State,
    )


async def _read(
    asked: Asking, chosen: Range
) -> tuple[
    Picture,
    Chart | None,
    Depths | None,
    list[Tick] | None,
    list[Alert],
    tuple[Sequence[SessionRecord] | None, Sequence[CodeVersion] | None],
]:
    return await asyncio.gather(
        asked.admin.picture(chosen.seconds),
        known(sharing.series(asked, chosen)),
        known(sharing.depths(asked, chosen)),
        _next_ticks(asked),
        _troubles(asked),
        _code(asked),
    )


async def _code(asked: Asking) -> tuple[Sequence[SessionRecord] | None, Sequence[CodeVersion] | None]:
    """Who works with which code, and when each version of it was first seen."""
    store = asked.admin.store
    return await asyncio.gather(known(store.sessions()), known(store.code_versions(limit=VERSIONS)))


async def _troubles(asked: Asking) -> list[Alert]:
    """What is not well with the store itself."""
    room = await known(shared(asked, "room", asked.admin.room, lasts=SAMPLED))
    asked_at = datetime.now(UTC)
    theirs = await asked.admin.store.now()
    # Whatever the answer took is nobody's fault: only what lies outside of it is a difference of clocks.
    late, early = (theirs - datetime.now(UTC)).total_seconds(), (theirs - asked_at).total_seconds()
    return store_alerts(room, late if late > 0 else min(early, 0.0))


async def _of_tenant(asked: Asking, chosen: Range) -> Response:
    """What somebody of one tenant sees: his own work."""
    admin = asked.admin
    totals, groups, jobs, now = await asyncio.gather(
        admin.tenants(chosen.seconds),
        shared(asked, "groups", lambda: admin.failures(DeadFilter(limit=LOOKED_AT))),
        admin.list(JobFilter(limit=OWN_JOBS, brief=True)),
        admin.store.now(),
    )
    return render(
        asked,
        "overview_tenant.html",
        title="Overview",
        here="overview",
        topics="jobs",
        total=next(iter(totals), None),
        groups=[_readable(group) for group in groups[:GROUPS]],
        capped=sum(group.letters for group in groups) >= LOOKED_AT,
        jobs=jobs,
        now=now,
        chosen=chosen,
        choices=list(RANGES),
    )


def _along(depths: Depths | None, name: str) -> list[float | None]:
    """One number of all queues together, slice by slice; None: nobody looked."""
    return [
        None if one.whole is None else getattr(one.whole, name) for one in (depths.slices if depths else ())
    ]


def _decisions(undecided: Matched | None, dead: int | None) -> str:
    """How many of the dead somebody must decide about: those whose review is closed are only kept."""
    if undecided is None:
        return "how many wait for a decision is unknown"
    if undecided.jobs in (0, dead):
        return "wait for a decision" if undecided.jobs else "none waits for a decision"
    return f"{undecided} {'waits' if undecided.jobs == 1 else 'wait'} for a decision"


def _pace(seen: Overview) -> float | None:
    """Jobs a minute that were done; None: unknown."""
    figures = seen.figures
    return None if figures is None else figures.whole().done / max(figures.seconds, 1.0) * 60


def _readable(group: FailureGroup) -> FailureGroup:
    return group._replace(message=None if group.message is None else redacted_text(group.message))


async def _next_ticks(asked: Asking) -> list[Tick] | None:
    """The next tick of each schedule, the first of them; None: unknown."""
    try:
        roster = await asked.admin.schedules()
    except StoreError:
        return None
    found = []
    for record in roster.schedules:
        if record.status(roster.now) != "active":
            continue
        try:
            found += [
                Tick(record.name, record.effective.task, tick.due, tick.local, tick.note)
                for tick in upcoming(record.effective, roster.now, 1)
            ]
        except ScheduleError:  # its zone is unknown here: one such must not hide the others
            continue
    return sorted(found, key=lambda tick: tick.due)[:TICKS]
