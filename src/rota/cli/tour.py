"""The tour of `rota demo`: tasks of every temper, the jobs that show them, and how far they are."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from rota._core.job import Job, State
from rota._core.job_filter import JobFilter
from rota.current import current_job

if TYPE_CHECKING:
    from datetime import datetime

    from rota.admin import Admin
    from rota.app import Rota
    from rota.enqueueing import Verbs

THUMBNAILS = 60
REPORTS = 6
PAYMENTS = 6
TRICKLE = 2.0
"""Seconds between two small loads after the tour."""
TASKS = (
    "make_thumbnail",
    "render_report",
    "charge_card",
    "import_feed",
    "send_reminder",
    "place_order",
    "crunch_numbers",
)


FEED_TRIES = 3


def define_tasks(app: Rota) -> None:
    """Seven tasks: fast, slow, failing at first, failing for good, later, only once, and one that is cancelled.

    And two schedules: one for every minute, one for the night.
    """
    from rota import Retry, every

    @app.task
    async def make_thumbnail(photo: str) -> str:
        await asyncio.sleep(random.uniform(0.02, 0.15))  # noqa: S311 - only to look alive
        return f"{photo}.small.jpg"

    @app.task
    def render_report(month: str) -> dict[str, str]:
        time.sleep(random.uniform(0.8, 1.6))  # noqa: S311
        return {"month": month, "pages": "12"}

    @app.task(retry=Retry(attempts=5, base=0.5))
    async def charge_card(order: int) -> str:
        if current_job().attempt <= 1 + order % 2:
            raise ConnectionError("the payment service did not answer")
        return "paid"

    @app.task(retry=Retry(attempts=FEED_TRIES, base=0.4))
    async def import_feed(url: str) -> str:
        # Every claim and every end is one version more. Who looks, and clicks Retry, finds the feed mended.
        if current_job().fence <= 2 * FEED_TRIES:
            raise ValueError(f"{url} is not a feed: no <rss> element")
        return "3 new entries"

    @app.task
    async def send_reminder(to: str) -> str:
        return f"reminded {to}"

    @app.task
    async def place_order(number: int) -> str:
        await asyncio.sleep(0.1)
        return f"order {number} placed"

    @app.task
    async def crunch_numbers(size: int) -> int:
        await asyncio.sleep(3600)
        return size

    @app.schedule(every("1m"))
    async def refresh_rates() -> str:
        return "rates are fresh"

    @app.schedule("30 2 * * *", tz="Europe/Berlin")
    async def nightly_totals() -> str:
        return "added up"


class Progress(NamedTuple):
    """How far one task's jobs are."""

    task: str
    jobs: int
    done: int
    retried: int
    dead: int
    cancelled: int
    running: int
    retrying: int
    scheduled: int
    wait: float | None
    """Half of the jobs waited at most so long, in seconds, between being due and their last start."""
    run: float | None
    """Half of the jobs ran at most so long."""

    @property
    def ended(self) -> int:
        return self.done + self.dead + self.cancelled


@dataclass
class Tour:
    """One run of the tour, told apart from earlier ones by its correlation."""

    app: Rota
    admin: Admin
    name: str
    duplicates: int = 0
    started: float = field(default_factory=time.monotonic)

    async def enqueue(self) -> int:
        """Store the mix; how many jobs it has."""
        make = self._task
        await make("make_thumbnail").enqueue_many([f"photo-{number:03}" for number in range(THUMBNAILS)])
        await make("render_report").enqueue_many([f"2026-{month:02}" for month in range(1, REPORTS + 1)])
        await make("charge_card").enqueue_many(list(range(1, PAYMENTS + 1)))
        await make("import_feed").enqueue("https://example.org/feed")
        await make("send_reminder", delay=3).enqueue("ann@example.org")
        await make("crunch_numbers").enqueue(1_000_000)
        for _ in range(3):  # a browser that sends its form three times
            handle = await make("place_order", key=f"order-7 {self.name}").enqueue(7)
            self.duplicates += not handle.created
        return len(await self.jobs())

    def _task(self, name: str, **options: object) -> Verbs[..., object]:
        told = {"correlation_id": self.name, "created_by": "rota demo"} | options
        return self.app.tasks[name].using(**told)  # type: ignore[arg-type]

    async def jobs(self) -> Sequence[Job]:
        return await self.admin.list(JobFilter(correlation_id=self.name, limit=1000))

    async def cancel_the_long_one(self) -> bool:
        """Cancel the job that would run for an hour, once it has run for a second; whether that was done now."""
        running = JobFilter(states=(State.RUNNING,), task="crunch_numbers", correlation_id=self.name)
        now = await self.admin.store.now()
        for job in await self.admin.list(running):
            if job.cancel_requested_at is None and now - (job.claimed_at or now) > timedelta(seconds=1):
                await self.admin.cancel(job.id, reason="the tour needs only its first second")
                return True
        return False

    async def trickle(self, stop: asyncio.Event) -> None:
        """A little work again and again, so that the dashboard shows a system at work, until `stop`."""
        number = 0
        while not stop.is_set():
            number += 1
            its = f"{self.name}-{number}"
            photos = [f"photo-{number:03}-{each}" for each in range(random.randint(2, 12))]  # noqa: S311 - only to look alive
            await self._task("make_thumbnail", correlation_id=its).enqueue_many(photos)
            if number % 2 == 0:
                await self._task("charge_card", correlation_id=its).enqueue(number)
            if number % 5 == 0:
                await self._task("render_report", correlation_id=its).enqueue("2026-07")
            if number % 20 == 0:
                await self._task("import_feed", correlation_id=its).enqueue("https://example.org/feed")
            with suppress(TimeoutError):
                async with asyncio.timeout(TRICKLE):
                    await stop.wait()

    async def look(self) -> list[Progress]:
        """How far each task is now."""
        jobs, now = await self.jobs(), await self.admin.store.now()
        return [progress(task, [job for job in jobs if job.task == task], now) for task in TASKS]


def progress(task: str, jobs: Sequence[Job], now: datetime) -> Progress:
    """Sum up the jobs of one task."""
    labels = [job.label(now) for job in jobs]
    waits = [
        max((job.claimed_at - job.run_at).total_seconds(), 0.0)
        for job in jobs
        if job.claimed_at is not None and job.finished_at is not None
    ]
    runs = [job.duration.total_seconds() for job in jobs if job.duration is not None]
    return Progress(
        task,
        jobs=len(jobs),
        done=sum(job.state in (State.COMPLETED, State.PARTIAL) for job in jobs),
        retried=sum(job.attempt > 1 for job in jobs),
        dead=labels.count("dead"),
        cancelled=labels.count("cancelled"),
        running=labels.count("running") + labels.count("cancelling"),
        retrying=labels.count("retrying"),
        scheduled=labels.count("scheduled"),
        wait=statistics.median(waits) if waits else None,
        run=statistics.median(runs) if runs else None,
    )


def line(seen: Sequence[Progress], seconds: float) -> str:
    """The whole tour in one line, for pipes."""
    parts = [f"{sum(one.ended for one in seen)} of {sum(one.jobs for one in seen)} ended"]
    for word in ("running", "retrying", "scheduled", "dead", "cancelled"):
        number = sum(getattr(one, word) for one in seen)
        if number:
            parts.append(f"{number} {word}")
    return f"{seconds:5.1f}s  " + ", ".join(parts)
