"""Wait for one job, and show where it is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from rota._core.job import Job, State
from rota.cli.records import error_of
from rota.errors import JobCancelled, JobDead, ResultTimeout

if TYPE_CHECKING:
    from uuid import UUID

    from rota.admin import Admin
    from rota.cli.output import Output

SOONEST, LATEST = 0.05, 1.0
LONELY_AFTER = 3.0
"""Seconds after which a job that nobody can run is worth a word."""


async def ended(output: Output, admin: Admin, job_id: UUID, *, limit: float | None) -> Job:
    """The job once it is completed. One that died, was cancelled or is not finished in time is an error."""
    began, pause, warned = time.monotonic(), SOONEST, False
    with output.progress("waiting", None) as advance:
        while True:
            job = await admin.job(job_id)
            passed = time.monotonic() - began
            if job.state.terminal:
                break
            label = job.label(await admin.store.now())
            if limit is not None and passed >= limit:
                raise ResultTimeout(job.id, limit, label)
            advance(0, f"{label}, attempt {job.attempt} of {job.max_attempts}")
            if not warned and passed > LONELY_AFTER and job.state is State.PENDING:
                warned = True
                await _warn_if_lonely(output, admin, job)
            await asyncio.sleep(pause if limit is None else min(pause, max(limit - passed, 0.001)))
            pause = min(pause * 1.5, LATEST)
    if job.state is State.DEAD:
        raise JobDead(job.id, job.error_class, error_of(job, await admin.store.attempts(job.id)))
    if job.state is State.CANCELLED:
        raise JobCancelled(job.id, job.reason)
    return job


async def _warn_if_lonely(output: Output, admin: Admin, job: Job) -> None:
    if job.task in await admin.unserved():
        output.words(
            f"No worker that knows {job.task!r} is running; start one with `rota worker`. Waiting on."
        )
