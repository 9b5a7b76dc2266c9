"""Giving due jobs to a session, one owner a job, one running job a gate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import heapify, heappop
from uuid import UUID

from rota._core.job import Job, State
from rota.stores.contract import Wanted
from rota.stores.memory.book import Book, turn
from rota.stores.memory.sessions import living

AT_GATE = "gate"


def claim(book: Book, wanted: Wanted, session: UUID, now: datetime) -> list[Job]:
    """Give up to `wanted.limit` due jobs to a living session, first in line first."""
    if not living(book.sessions.get(session), now):
        return []
    line = [turn(job) for job in book.in_state(State.PENDING) if fits(job, wanted, now)]
    heapify(line)
    busy = {job.gate for job in book.in_state(State.RUNNING)}
    claimed: list[Job] = []
    while line and len(claimed) < wanted.limit:
        job = book.jobs[heappop(line)[-1]]
        if job.gate is not None and job.gate in busy:
            book.put(job._replace(parked=AT_GATE, updated_at=now))
            continue
        busy.add(job.gate)
        claimed.append(book.put(begun(job, session, now)))
    return claimed


def next_due(book: Book, queues: tuple[str, ...] | None, now: datetime) -> float | None:
    """Seconds until the first waiting job is due; parked jobs wait for something else than time."""
    waiting = [
        job.run_at
        for job in book.in_state(State.PENDING)
        if job.parked is None and (queues is None or job.queue in queues)
    ]
    return max(0.0, (min(waiting) - now).total_seconds()) if waiting else None


def let_next_in(book: Book, gate: str, now: datetime) -> None:
    """Put the first job that is parked at a gate back on the list: the gate is free."""
    first = min(_parked_at(book, gate), key=turn, default=None)
    if first is not None:
        book.hint_work(book.put(first._replace(parked=None, updated_at=now)))


def unpark(book: Book, now: datetime) -> int:
    """Put back every job whose gate is free, whatever became of the event that should have done it."""
    busy = {job.gate for job in book.in_state(State.RUNNING)}
    free = [job for job in book.in_state(State.PENDING) if job.parked == AT_GATE and job.gate not in busy]
    for job in free:
        book.hint_work(book.put(job._replace(parked=None, updated_at=now)))
    return len(free)


def _parked_at(book: Book, gate: str) -> Iterator[Job]:
    return (job for job in book.in_state(State.PENDING) if job.parked == AT_GATE and job.gate == gate)


def fits(job: Job, wanted: Wanted, now: datetime) -> bool:
    """Whether a claim may take the job, but for its gate."""
    return (
        job.run_at <= now
        and job.parked is None
        and (wanted.queues is None or job.queue in wanted.queues)
        and (wanted.tasks is None or job.task in wanted.tasks)
        and (wanted.tenant is None or job.tenant == wanted.tenant)
    )


def begun(job: Job, session: UUID, now: datetime) -> Job:
    """The job as it is once its next attempt belongs to a session."""
    return job._replace(
        state=State.RUNNING,
        version=job.version + 1,
        attempt=job.attempt + 1,
        session_id=session,
        claimed_at=now,
        updated_at=now,
        reason=None,
    )
