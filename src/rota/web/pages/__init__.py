"""The dashboard: pages over the same admin service that the API and the command line use. Rules stay there."""

from __future__ import annotations

from collections.abc import Iterator

from rota.web.pages import (
    activity,
    entering,
    failures,
    job,
    job_actions,
    job_edit,
    jobs,
    jobs_bulk,
    jobs_export,
    overview,
    queue_purge,
    queues,
    schedule_edit,
    schedules,
    statics,
    system,
    tasks,
    views,
    workers,
)
from rota.web.roles import Route, Routes

PAGES: tuple[Routes, ...] = (
    statics.routes,
    entering.routes,
    overview.routes,
    failures.routes,
    queues.routes,
    queue_purge.routes,
    tasks.routes,
    jobs.routes,
    jobs_bulk.routes,
    jobs_export.routes,
    views.routes,
    job.routes,
    job_actions.routes,
    job_edit.routes,
    activity.routes,
    schedules.routes,
    schedule_edit.routes,
    workers.routes,
    system.routes,
)
"""What stands beside the API, with its whole path."""


def page_table() -> Iterator[Route]:
    """All routes of pages, as they are served."""
    for routes in PAGES:
        yield from routes
