"""Listing and counting jobs by what people ask for."""

from __future__ import annotations

from rota._core.job import Job, State
from rota.stores.contract import Count, JobFilter
from rota.stores.memory.book import Book


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
