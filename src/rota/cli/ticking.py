"""`rota enqueue --tick`: cron jobs outside may call as often as they like; a tick is one job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rota._core.schedule import tick_headers
from rota.cli.params import Moment

if TYPE_CHECKING:
    from rota._core.job import NewJob

REMEMBERED = 90 * 86_400.0
"""Seconds for which a tick stays one job after it was enqueued."""
CURRENT: dict[str, Callable[[datetime], datetime]] = {
    "minute": lambda now: now.replace(second=0, microsecond=0),
    "hour": lambda now: now.replace(minute=0, second=0, microsecond=0),
    "day": lambda now: now.replace(hour=0, minute=0, second=0, microsecond=0),
}


class Tick(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A moment, or the current minute, hour or day (in UTC, by the store's clock)."""

    name = "tick"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in CURRENT:
            return str(value)
        if "=" in str(value):
            self.fail(
                f"{value!r} looks like an argument of the task. Write --tick=minute, or put a bare --tick last.",
                param,
                ctx,
            )
        moment = Moment().convert(value, param, ctx)
        return moment.astimezone(UTC).isoformat()


def for_tick(job: NewJob, wanted: str, now: datetime) -> NewJob:
    """The job with its tick for a key: another call for the same tick, task, tenant and arguments is this job.

    It is not due before its tick, whatever the caller's clock says.
    """
    tick = CURRENT[wanted](now) if wanted in CURRENT else datetime.fromisoformat(wanted)
    canonical = json.dumps(json.loads(job.payload_json), sort_keys=True)
    mark = "" if canonical == "{}" else f":{hashlib.sha256(canonical.encode()).hexdigest()[:16]}"
    ahead = tick > now and not job.delay and job.run_at is None
    return job._replace(
        run_at=tick if ahead else job.run_at,
        key=f"tick:{job.task}{mark}:{tick.isoformat()}",
        key_window=REMEMBERED,
        headers_json=tick_headers(None, tick),
    )
