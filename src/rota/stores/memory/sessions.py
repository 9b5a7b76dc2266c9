"""The lives of worker processes: leases, beats, orders, and the jobs that outlive their owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from rota._core.actions import Audit, kept
from rota._core.job import Job, State
from rota._core.worker_order import OrderVerb, WorkerOrder
from rota.stores.contract import Beat, SessionRecord, SessionStart
from rota.stores.memory.book import Book

STRAY_AFTER = timedelta(seconds=3)
LATELY = timedelta(hours=1)


def living(session: SessionRecord | None, now: datetime) -> bool:
    """Whether a session may own jobs: known, not ended, and its lease not past."""
    return session is not None and session.ended_at is None and session.lease_until > now


def begin(book: Book, start: SessionStart, lease: float, now: datetime) -> None:
    """Note a new session; one that is known already stays as it is."""
    until = now + timedelta(seconds=lease)
    record = SessionRecord(
        start.id,
        start.host,
        start.pid,
        dict(start.lanes),
        now,
        until,
        None,
        start.tasks,
        start.code_version,
        start.queues,
        start.tenant,
        start.memory,
        start.hears,
    )
    book.sessions.setdefault(start.id, record)


def beat(
    book: Book,
    session: UUID,
    lease: float,
    holding: Mapping[UUID, int],
    now: datetime,
    *,
    strays: bool,
    memory: int | None,
) -> Beat:
    """Prolong a living session; say what became of the jobs it holds."""
    record = book.sessions.get(session)
    if record is None or not living(record, now):
        return Beat(alive=False)
    known = record.memory if memory is None else memory
    book.sessions[session] = record._replace(lease_until=now + timedelta(seconds=lease), memory=known)
    mine = {job.id: job for job in book.in_state(State.RUNNING) if job.session_id == session}
    kept = [
        job_id for job_id, version in holding.items() if job_id in mine and mine[job_id].version == version
    ]
    return Beat(
        alive=True,
        cancel=tuple(job_id for job_id in kept if mine[job_id].cancel_requested_at is not None),
        lost=tuple(job_id for job_id in holding if job_id not in kept),
        strays=tuple(_strays(mine, holding, now)) if strays else (),
        order=None if record.order is None else record.order.verb,
    )


def _strays(mine: Mapping[UUID, Job], holding: Mapping[UUID, int], now: datetime) -> Iterator[Job]:
    """Jobs that the owner does not know of, but for those whose claim's answer may still be on its way."""
    for job in mine.values():
        if job.id not in holding and job.claimed_at is not None and job.claimed_at < now - STRAY_AFTER:
            yield job


def order(book: Book, session: UUID, verb: OrderVerb, audit: Audit, now: datetime) -> bool:
    """Leave an order with a living session that hears them; whether it was left."""
    record = book.sessions.get(session)
    if record is None or not living(record, now) or not record.hears:
        return False
    if not verb.follows(None if record.order is None else record.order.verb):
        return False
    told = kept(audit)
    book.sessions[session] = record._replace(order=WorkerOrder(verb, told.actor, now, told.reason))
    book.tell(audit, now)
    return True


def end(book: Book, session: UUID, now: datetime) -> None:
    """End one session; the first end counts."""
    record = book.sessions.get(session)
    if record is not None and record.ended_at is None:
        book.sessions[session] = record._replace(ended_at=now)


def end_expired(book: Book, now: datetime) -> float | None:
    """End every session whose lease is past; seconds until the next one could be."""
    for record in list(book.sessions.values()):
        if not living(record, now):
            end(book, record.id, now)
    leases = [record.lease_until for record in book.sessions.values() if record.ended_at is None]
    return (min(leases) - now).total_seconds() if leases else None


def recent(book: Book, now: datetime) -> list[SessionRecord]:
    """The living, and those that ended lately; newest first."""
    shown = [
        record
        for record in book.sessions.values()
        if record.ended_at is None or record.ended_at > now - LATELY
    ]
    return sorted(shown, key=lambda record: (record.started_at, record.id), reverse=True)


def lost(book: Book, limit: int) -> list[Job]:
    """Running jobs that nobody owns. Only a session marked ended counts, so that a late beat cannot disagree."""
    alone = [job for job in book.in_state(State.RUNNING) if _ownerless(book, job)]
    return sorted(alone, key=lambda job: job.id)[:limit]


def _ownerless(book: Book, job: Job) -> bool:
    record = book.sessions.get(job.session_id) if job.session_id is not None else None
    return record is None or record.ended_at is not None
