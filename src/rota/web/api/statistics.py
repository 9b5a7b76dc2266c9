"""Statistics over HTTP: how many jobs there are, how fast they go, and for whom."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel, Field

from rota._core.job import State
from rota.web.api.figures import WorkShown, work_shown
from rota.web.api.spans import Since
from rota.web.asking import Asked
from rota.web.roles import Role, Routes

routes = Routes("statistics", "/statistics")
log = logging.getLogger("rota.web")


class LaneShown(BaseModel):
    """How full a lane was."""

    lane: str
    used: float | None = Field(description="The share of its slots that was busy; null: nobody looked.")


class Statistics(BaseModel):
    """How the whole stands and goes. What could not be read is null, and `unknown` names it."""

    now: datetime
    since: float = Field(description="Seconds that the numbers of work are of.")
    jobs: dict[str, int] | None = Field(description="Unfinished and dead jobs by state.")
    retrying: int | None = Field(description="Of the pending ones, how many wait for another attempt.")
    capped: bool = Field(description="There are more: counting stopped at 100,000.")
    oldest_wait: float | None = Field(description="Seconds that the job waits that is due longest.")
    work: WorkShown | None
    tasks: dict[str, WorkShown] | None
    queues: dict[str, WorkShown] | None
    lanes: list[LaneShown] | None
    unknown: dict[str, str]


class TenantShown(BaseModel):
    """What was done for one tenant."""

    tenant: str | None
    attempts: int
    failed: int
    run_seconds: float


@routes.get(verb="show", role=Role.VIEWER)
async def show(asked: Asked, since: Since = 3600.0) -> Statistics:
    """Counts, rates, waits and durations of the whole."""
    seen = await asked.admin.overview(since)
    figures = seen.figures
    return Statistics(
        now=seen.now,
        since=seen.since,
        jobs=None
        if seen.counts is None
        else {state.value: seen.jobs(state) or 0 for state in State if _counted(state)},
        retrying=None if seen.retrying is None else seen.retrying.jobs,
        capped=seen.capped,
        oldest_wait=None if seen.oldest_wait is None else seen.oldest_wait.total_seconds(),
        work=None if figures is None else work_shown(figures.whole()),
        tasks=None
        if figures is None
        else {name: work_shown(done) for name, done in figures.by_task().items()},
        queues=None
        if figures is None
        else {name: work_shown(done) for name, done in figures.by_queue().items()},
        lanes=None
        if seen.lanes is None
        else [LaneShown(lane=lane.lane, used=lane.used) for lane in seen.lanes],
        unknown=_hidden(seen.unknown),
    )


@routes.get("/tenants", verb="tenants", role=Role.VIEWER)
async def tenants(asked: Asked, since: Since = 3600.0) -> list[TenantShown]:
    """What was done for each tenant, the busiest first. Who belongs to one sees that one."""
    return [
        TenantShown(
            tenant=total.tenant or None, attempts=total.jobs, failed=total.faults, run_seconds=total.run_sum
        )
        for total in await asked.admin.tenants(since)
    ]


def _hidden(unknown: Mapping[str, str]) -> dict[str, str]:
    """What could not be read. Why is for the log: the store's own words name its address."""
    for part, why in unknown.items():
        log.warning("statistics: %s could not be read: %s", part, why)
    return dict.fromkeys(unknown, "could not be read")


def _counted(state: State) -> bool:
    return not state.terminal or state is State.DEAD
