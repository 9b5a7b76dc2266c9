"""Statistics along time over HTTP: what charts draw."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from rota._core.depths import Depth
from rota._core.numbers import edges
from rota._core.series import checked, step_for
from rota.web.api.jobs import Name
from rota.web.api.spans import Since, seconds_of
from rota.web.asking import Asked
from rota.web.problems import Problem
from rota.web.roles import Role, Routes

routes = Routes("statistics", "/statistics")

Step = Annotated[
    float | None,
    BeforeValidator(seconds_of),
    WithJsonSchema({"type": "string", "examples": ["1m", "15m", "6h"]}),
    Query(
        description="How long slices are: whole minutes, or hours beyond 14 days. Without: so that it is readable."
    ),
]


class BucketShown(BaseModel):
    """Attempts that ran about equally long."""

    seconds: float = Field(description="At least so long.")
    below: float | None = Field(description="And less than this; null: no bound.")
    attempts: int


class PointShown(BaseModel):
    """What ended in one slice. Lengths of time are seconds; null where nothing ended."""

    start: datetime
    completed: int
    failed: int = Field(description="Attempts that failed and are tried again.")
    dead: int
    other: int = Field(description="Cancelled or snoozed.")
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None
    runs: list[BucketShown] = Field(description="How many ran how long, the shortest first.")


class SeriesShown(BaseModel):
    """Slices of equal length, oldest first and without gaps; the last one is still going on."""

    since: datetime
    until: datetime
    step: float
    points: list[PointShown]


class DepthShown(BaseModel):
    """The most that there was in a slice."""

    pending: int
    running: int
    dead: int
    oldest_wait: float = Field(description="Seconds that the oldest due job had waited; 0: none was due.")
    retrying: int = Field(description="Of those that waited, how many waited for another attempt.")


class DepthPoint(BaseModel):
    """How deep the queues were in one slice."""

    start: datetime
    whole: DepthShown | None = Field(description="All queues together; null: nobody looked.")
    queues: dict[str, DepthShown] = Field(description="Those that were not empty.")


class DepthsShown(BaseModel):
    """Slices of equal length, oldest first and without gaps."""

    since: datetime
    until: datetime
    step: float
    points: list[DepthPoint]


class Cut(NamedTuple):
    """A stretch of time in slices."""

    since: float
    step: float


@routes.get("/series", verb="series", role=Role.VIEWER)
async def series(
    asked: Asked,
    since: Since = 3600.0,
    step: Step = None,
    queue: Name | None = None,
    task: Name | None = None,
) -> SeriesShown:
    """What ended, how long it waited and how long it ran, along time; of all queues and tasks, or of one."""
    chart = await asked.admin.series(*_cut(since, step), queue=queue, task=task)
    points = [PointShown(**(point._asdict() | {"runs": _buckets(point.runs)})) for point in chart.points]
    return SeriesShown(since=chart.since, until=chart.until, step=chart.step, points=points)


@routes.get("/depths", verb="depths", role=Role.VIEWER)
async def depths(asked: Asked, since: Since = 3600.0, step: Step = None) -> DepthsShown:
    """How many jobs waited, ran and were dead along time, and how long the oldest one waited."""
    found = await asked.admin.depths(*_cut(since, step))
    points = [
        DepthPoint(
            start=one.start,
            whole=None if one.whole is None else _depth(one.whole),
            queues={queue: _depth(depth) for queue, depth in one.queues.items()},
        )
        for one in found.slices
    ]
    return DepthsShown(since=found.since, until=found.until, step=found.step, points=points)


def _cut(since: float, step: float | None) -> Cut:
    """The stretch as it can be cut, or a problem that says why not."""
    length = step_for(since) if step is None else step
    try:
        checked(since, length)
    except ValueError as error:
        raise Problem(422, "bad-step", str(error)) from error
    return Cut(since, length)


def _buckets(runs: Mapping[int, int]) -> list[BucketShown]:
    shown = []
    for number, attempts in sorted(runs.items()):
        low, high = edges(number)
        shown.append(
            BucketShown(seconds=low, below=None if high == float("inf") else high, attempts=attempts)
        )
    return shown


def _depth(depth: Depth) -> DepthShown:
    return DepthShown(**depth._asdict())
