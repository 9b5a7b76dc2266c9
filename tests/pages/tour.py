"""Every page of the dashboard on the shop's store, by the verb of its route: walked over, measured and pictured."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

import psycopg

NOT_PAGES = {"page.static", "page.jobs_csv", "page.jobs_json"}
"""Routes of the dashboard that answer files."""


class Stop(NamedTuple):
    """One page, or one view of it."""

    name: str
    verb: str
    path: str


ONE_JOB = "SELECT id FROM rota.all_jobs WHERE {} ORDER BY id DESC LIMIT 1"


def tour(url: str) -> list[Stop]:
    """All pages, about things that are in this database."""
    with psycopg.connect(url) as connection:

        def one(query: str) -> str:
            row = connection.execute(query).fetchone()  # type: ignore[call-overload]
            assert row is not None, query
            return str(row[0])

        def job(which: str) -> str:
            return f"/jobs/{one(ONE_JOB.format(which))}"

        group = one(
            "SELECT fingerprint FROM rota.dead_jobs WHERE task = 'charge_card' AND error_type = 'ConnectionError'"
        )
        worker = one("SELECT id FROM rota.sessions WHERE ended_at IS NULL ORDER BY host")
        operation = one("SELECT id FROM rota.operations WHERE state = 'stopped'")
        dead = job("state = 'dead' AND error_class = 'transient' AND task = 'charge_card'")
        return [
            Stop("overview", "page.overview", "/"),
            Stop("overview-day", "page.overview", "/?range=24h"),
            Stop("jobs", "page.jobs", "/jobs"),
            Stop("jobs-filtered", "page.jobs", f"/jobs?filter={quote('state:dead task:charge_card')}"),
            Stop("jobs-none", "page.jobs", f"/jobs?filter={quote('task:nothing_like_it')}"),
            Stop("jobs-all", "page.jobs_all", f"/jobs/all?verb=retry&filter={quote('state:dead')}"),
            Stop("job-running", "page.job", job("state = 'running' AND task = 'export_orders'")),
            Stop("job-dead", "page.job", dead),
            Stop("job-pending", "page.job", job("state = 'pending' AND parked = 'gate'")),
            Stop("job-family", "page.job", job("task = 'charge_card' AND subject = 'order:41998'")),
            Stop("job-arguments", "page.job", f"{dead}?tab=arguments"),
            Stop("job-related", "page.job", f"{dead}?tab=related"),
            Stop("job-raw", "page.job", f"{dead}?tab=raw"),
            Stop("job-edit", "page.job_form", f"{dead}/edit"),
            Stop("failures", "page.failures", "/failures"),
            Stop("failure", "page.failure", f"/failures/{group}"),
            Stop("queues", "page.queues", "/queues"),
            Stop("queue", "page.queue", "/queues/images"),
            Stop("queue-purge", "page.queue_purge_form", "/purge/queues/images"),
            Stop("tasks", "page.tasks", "/tasks"),
            Stop("task", "page.task", "/tasks/render_invoice"),
            Stop("workers", "page.workers", "/workers"),
            Stop("worker", "page.worker", f"/workers/{worker}"),
            Stop("schedules", "page.schedules", "/schedules"),
            Stop("schedule", "page.schedule", "/schedules/stock"),
            Stop("schedule-edit", "page.schedule_form", "/edit/schedules/nightly-export"),
            Stop("activity", "page.activity", "/activity"),
            Stop("operation", "page.operation", f"/activity/operations/{operation}"),
            Stop("system", "page.system", "/system"),
            Stop("enter", "page.door", "/enter"),
        ]
