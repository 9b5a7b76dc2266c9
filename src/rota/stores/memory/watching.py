"""What runs, what happened and what takes room, for those who watch."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import islice
from uuid import UUID

from rota._core.happening import (
    OVERLAP,
    CodeVersion,
    Ended,
    Happened,
    Happening,
    HappeningFilter,
    Mark,
    PayloadSize,
    Share,
    Stint,
    Stints,
    Work,
    acted,
    life_of,
    stints_of,
)
from rota._core.job import Job, State
from rota.stores.memory.book import Book

WELL = (State.COMPLETED, State.PARTIAL, State.CANCELLED)
UNFINISHED = (State.PENDING, State.BLOCKED, State.HELD, State.RUNNING)


def code_versions(book: Book, limit: int) -> list[CodeVersion]:
    found = [CodeVersion(*pair) for pair in sorted(book.blame.code_versions.items())]
    return sorted(found, key=lambda one: one.first_seen, reverse=True)[:limit]


def running_by_tenant(book: Book) -> list[Share]:
    found = Counter((job.queue, job.tenant) for job in book.in_state(State.RUNNING))
    shares = [Share(queue, tenant, jobs) for (queue, tenant), jobs in found.items()]
    return sorted(shares, key=lambda share: (-share.jobs, share.queue, share.tenant or ""))


def running(book: Book, limit: int) -> list[Work]:
    found = [
        Work(
            job.id,
            job.task,
            job.queue,
            job.tenant,
            job.attempt,
            job.max_attempts,
            job.claimed_at,
            job.session_id,
            job.timeout,
            job.cancel_requested_at is not None,
        )
        for job in book.in_state(State.RUNNING)
        if job.claimed_at is not None
    ]
    return sorted(found, key=lambda work: (work.claimed_at, work.id))[:limit]


def happened(book: Book, mark: Mark, wanted: HappeningFilter, limit: int, now: datetime) -> Happened:
    """Everything since the mark: this store is small enough to look at all of it."""
    since = mark.since - OVERLAP
    news: list[Happening] = []
    for job in book.jobs.values():
        if wanted.matches(job):
            news += life_of(job, _ended(book, job))
    for row in book.audit:
        whose = None if row.job_id is None else book.jobs.get(row.job_id)
        done = acted(row, whose)
        if done is not None and (
            wanted == HappeningFilter() or (whose is not None and wanted.matches(whose))
        ):
            news.append(done)
    news = sorted((one for one in news if one.at >= since), key=lambda one: one.at)
    return Happened(news[-limit:], Mark(now), more=len(news) > limit)


def _ended(book: Book, job: Job) -> list[Ended]:
    return [
        Ended(
            seen.ended_at, seen.version, seen.attempt, seen.started_at, f"{seen.error_type}: {seen.message}"
        )
        for seen in book.attempts.get(job.id, ())
    ]


def stints(book: Book, session_id: UUID, since: datetime, limit: int) -> Stints:
    """What one session's slots did: this store is small enough to look at all of it."""
    found = [
        Stint(job.id, job.task, job.queue, job.tenant, one.attempt, one.started_at, one.ended_at, one.outcome)
        for job in book.jobs.values()
        for one in book.attempts.get(job.id, ())
        if one.session_id == session_id and one.started_at is not None and one.ended_at >= since
    ]
    for job in book.jobs.values():
        goes_on = job.state is State.RUNNING
        ended = job.state in WELL and job.finished_at is not None and job.finished_at >= since
        if job.session_id == session_id and job.claimed_at is not None and (goes_on or ended):
            what = (job.id, job.task, job.queue, job.tenant, job.attempt, job.claimed_at)
            found.append(Stint(*what, job.finished_at if ended else None, job.state.value))
    return stints_of(found, limit)


def payload_sizes(book: Book, cap: int) -> list[PayloadSize]:
    groups: dict[str, list[tuple[int, Job]]] = {}
    for job in islice(book.in_state(*UNFINISHED), cap):
        groups.setdefault(job.task, []).append((len(job.payload_json.encode()), job))
    found = [
        PayloadSize(
            task,
            len(sizes),
            round(sum(size for size, _ in sizes) / len(sizes)),
            *max((size, job.id) for size, job in sizes),
        )
        for task, sizes in groups.items()
    ]
    return sorted(found, key=lambda one: (-one.largest, one.task))
