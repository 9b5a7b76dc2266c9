"""Listing and counting jobs by what people ask for."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import islice

from rota._core.deploy import Waiting, WaitingJob
from rota._core.explanation import Standing
from rota._core.job import Job, State
from rota.stores.contract import Count, JobFilter
from rota.stores.memory.book import Book, turn


def find(book: Book, wanted: JobFilter) -> list[Job]:
    """The jobs that match, by id: ids grow with time, so that is by age."""
    found = [job for job in book.jobs.values() if _matches(job, wanted)]
    found.sort(key=lambda job: job.id, reverse=not wanted.oldest_first)
    return found[: wanted.limit]


def counts(book: Book) -> list[Count]:
    """How many unfinished and dead jobs share a queue, task and state."""
    groups: dict[tuple[str, str, State], list[Job]] = {}
    for job in book.in_state(State.PENDING, State.BLOCKED, State.HELD, State.RUNNING, State.DEAD):
        groups.setdefault((job.queue, job.task, job.state), []).append(job)
    return [
        Count(*group, len(jobs), min(job.run_at for job in jobs) if group[-1] is State.PENDING else None)
        for group, jobs in sorted(groups.items())
    ]


def standing(book: Book, job: Job, cap: int, now: datetime) -> Standing:
    """Who comes before a waiting job, and who is inside its gate."""
    before = sum(
        other.queue == job.queue and other.parked is None and other.run_at <= now and turn(other) < turn(job)
        for other in book.in_state(State.PENDING)
    )
    inside = None
    if job.gate is not None:
        running = (other for other in book.in_state(State.RUNNING) if other.gate == job.gate)
        inside = next((other.id for other in running if other.id != job.id), None)
    return Standing(min(before, cap), before > cap, inside)


def waiting(book: Book, sample: int) -> list[Waiting]:
    """The unfinished jobs by task and payload version, with a few payloads of each."""
    groups: dict[tuple[str, str | None], list[Job]] = {}
    for job in book.in_state(State.PENDING, State.BLOCKED, State.HELD, State.RUNNING):
        groups.setdefault((job.task, job.payload_version), []).append(job)
    return [
        Waiting(*group, len(jobs), tuple(WaitingJob(job.id, job.payload_json) for job in jobs[:sample]))
        for group, jobs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def _matches(job: Job, wanted: JobFilter) -> bool:
    exact = (
        (wanted.queue, job.queue),
        (wanted.task, job.task),
        (wanted.tenant, job.tenant),
        (wanted.subject, job.subject),
        (wanted.external_id, job.external_id),
        (wanted.key, job.key),
        (wanted.correlation_id, job.correlation),
        (wanted.parent_id, job.parent_id),
        (wanted.session_id, job.session_id),
    )
    return (
        all(asked is None or asked == found for asked, found in exact)
        and (not wanted.states or job.state in wanted.states)
        and (wanted.tag is None or wanted.tag in job.tags)
        and _on_page(job, wanted)
    )


def _on_page(job: Job, wanted: JobFilter) -> bool:
    if wanted.before is None:
        return True
    return job.id > wanted.before if wanted.oldest_first else job.id < wanted.before


def backlog(book: Book, queue: str, cap: int, *, by_tenant: bool) -> dict[str | None, int]:
    """How many jobs wait in a queue, by tenant or in all."""
    found = (job for job in book.in_state(State.PENDING) if job.queue == queue and job.parked is None)
    counts = Counter(job.tenant if by_tenant else None for job in islice(found, cap))
    return dict(counts) if by_tenant else {None: counts[None]}
