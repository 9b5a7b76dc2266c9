"""Listing and counting jobs by what people ask for."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import islice
from uuid import UUID

from rota._core.deploy import Waiting, WaitingJob
from rota._core.explanation import Standing
from rota._core.job import Job, State
from rota._core.job_filter import UNFINISHED, exact, shortened, type_fits
from rota.stores.contract import Count, JobFilter
from rota.stores.memory.book import Book, turn
from rota.stores.tally_contract import Tally


def find(book: Book, wanted: JobFilter) -> list[Job]:
    """The jobs that match, by id: ids grow with time, so that is by age. Or the most urgent first."""
    found = [job for job in book.jobs.values() if _matches(job, wanted) and _looked_into(book, job, wanted)]
    if wanted.by_priority:
        if wanted.before is not None:
            priority = wanted.before_priority
            last = None if priority is None else (priority, wanted.before)
            found = [job for job in found if last is not None and _urgency(job) > last]
        found.sort(key=_urgency)
    else:
        found.sort(key=lambda job: job.id, reverse=not wanted.oldest_first)
    page = found[: wanted.limit]
    return [shortened(job) for job in page] if wanted.brief else page


def _urgency(job: Job) -> tuple[int, UUID]:
    return job.priority, job.id


def counts(book: Book) -> list[Count]:
    """How many unfinished and dead jobs share a queue, task and state."""
    groups: dict[tuple[str, str, State], list[Job]] = {}
    for job in book.in_state(State.PENDING, State.BLOCKED, State.HELD, State.RUNNING, State.DEAD):
        groups.setdefault((job.queue, job.task, job.state), []).append(job)
    return [_counted(group, jobs) for group, jobs in sorted(groups.items())]


def _counted(group: tuple[str, str, State], jobs: list[Job]) -> Count:
    if group[-1] is not State.PENDING:
        return Count(*group, len(jobs), None)
    return Count(*group, len(jobs), min(job.run_at for job in jobs), sum(job.attempt > 0 for job in jobs))


def tally(book: Book, tenant: str | None, cap: int) -> list[Tally]:
    """How many jobs share a state, a category and the class of their last error."""
    ended = tuple(state for state in State if state.terminal and state is not State.DEAD)
    kinds: Counter[tuple[State, str | None, str | None]] = Counter()
    for states in (UNFINISHED, (State.DEAD,), ended):
        found = (job for job in book.in_state(*states) if tenant is None or job.tenant == tenant)
        kinds.update((job.state, job.category, job.error_class) for job in islice(found, cap))
    return [Tally(*kind, jobs) for kind, jobs in kinds.items()]


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
        (wanted.category, job.category),
    )
    return (
        all(asked is None or asked == found for asked, found in exact)
        and (wanted.meant_states is None or job.state in wanted.meant_states)
        and (wanted.tag is None or wanted.tag in job.tags)
        and (not wanted.ids or job.id in wanted.ids)
        and _in_ranges(job, wanted)
        and _on_page(job, wanted)
    )


def _in_ranges(job: Job, wanted: JobFilter) -> bool:
    return (
        _within(job.created_at, wanted.created_from, wanted.created_until)
        and _within(job.finished_at, wanted.finished_from, wanted.finished_until)
        and (wanted.priority_from is None or job.priority >= wanted.priority_from)
        and (wanted.priority_to is None or job.priority <= wanted.priority_to)
        and (wanted.attempt_from is None or job.attempt >= wanted.attempt_from)
        and (wanted.attempt_to is None or job.attempt <= wanted.attempt_to)
    )


def _within(moment: datetime | None, begin: datetime | None, end: datetime | None) -> bool:
    if begin is None and end is None:
        return True
    return moment is not None and (begin is None or moment >= begin) and (end is None or moment < end)


def _looked_into(book: Book, job: Job, wanted: JobFilter) -> bool:
    """What is not written in the job's own fields."""
    if wanted.worker is not None:
        seen = None if job.session_id is None else book.sessions.get(job.session_id)
        if seen is None or wanted.worker not in (seen.host, f"{seen.host}:{seen.pid}"):
            return False
    if wanted.error is not None and not _failed_so(book, job, wanted.error):
        return False
    payload = exact(job.payload_json) if wanted.args else None
    return all(argument.matches(payload) for argument in wanted.args)


def _failed_so(book: Book, job: Job, error: str) -> bool:
    if job.error_class is None:
        return False
    attempts = book.attempts.get(job.id, ())
    return job.error_class == error or any(type_fits(attempt.error_type, error) for attempt in attempts)


def _on_page(job: Job, wanted: JobFilter) -> bool:
    if wanted.before is None or wanted.by_priority:
        return True
    return job.id > wanted.before if wanted.oldest_first else job.id < wanted.before


def backlog(book: Book, queue: str, cap: int, *, by_tenant: bool) -> dict[str | None, int]:
    """How many jobs wait in a queue, by tenant or in all."""
    found = (job for job in book.in_state(State.PENDING) if job.queue == queue and job.parked is None)
    counts = Counter(job.tenant if by_tenant else None for job in islice(found, cap))
    return dict(counts) if by_tenant else {None: counts[None]}
