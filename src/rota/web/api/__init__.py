"""The route table: every address, with its verb and the least role for it."""

from __future__ import annotations

from collections.abc import Iterator

from rota.web import doc20, docverse
from rota.web.api import (
    audit,
    charts,
    dead_letters,
    events,
    failures,
    job_actions,
    job_operations,
    job_sweeps,
    jobs,
    operations,
    queues,
    schedules,
    sessions,
    statistics,
    system,
    tasks,
    workers,
)
from rota.web.roles import Route, Routes

PREFIX = "/api/v1"

V1: tuple[Routes, ...] = (
    jobs.routes,
    job_actions.routes,
    job_sweeps.routes,
    job_operations.routes,
    events.routes,
    sessions.routes,
    system.versioned,
    queues.routes,
    tasks.routes,
    workers.routes,
    schedules.routes,
    dead_letters.routes,
    failures.routes,
    operations.routes,
    audit.routes,
    statistics.routes,
    charts.routes,
)
"""What stands under `/api/v1`."""
BESIDE: tuple[Routes, ...] = (system.routes, sessions.links, doc20.dlq, doc20.queue, docverse.routes)
"""What stands beside it, with its whole path: probes, and the addresses of other systems."""


def table() -> Iterator[Route]:
    """All routes, as they are served."""
    for routes in V1:
        for route in routes:
            yield route._replace(path=PREFIX + route.path)
    for routes in BESIDE:
        yield from routes
