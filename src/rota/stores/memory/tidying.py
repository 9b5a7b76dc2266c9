"""Retention: letting go of what has ended, once its time is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from rota._core.job import State
from rota.stores.contract import Retention, Tidied
from rota.stores.memory import operations, schedules, suspects
from rota.stores.memory.book import Book
from rota.stores.memory.enqueueing import expired
from rota.stores.memory.settling import REVIEW_CLOSED


def tidy(book: Book, retention: Retention, now: datetime) -> Tidied:
    """Remove what retention lets go. A dead job that nobody reviewed stays for ever."""
    suspects.forget(book, now - timedelta(seconds=retention.finished))
    operations.forget(book, now - timedelta(seconds=retention.dead_after_review))
    return Tidied(
        finished=_finished(book, now - timedelta(seconds=retention.finished)),
        dead=_dead(book, now - timedelta(seconds=retention.dead_after_review)),
        keys=_keys(book, now),
        sessions=_sessions(book, now - timedelta(seconds=retention.sessions)),
        ticks=schedules.forget(book, now - timedelta(seconds=retention.ticks), retention.ticks_kept),
    )


def _finished(book: Book, before: datetime) -> int:
    ended = book.in_state(State.COMPLETED, State.PARTIAL, State.CANCELLED)
    gone = [job.id for job in ended if job.finished_at is not None and job.finished_at <= before]
    for job_id in gone:
        book.remove(job_id)
    return len(gone)


def _dead(book: Book, before: datetime) -> int:
    closed = [job.id for job in book.in_state(State.DEAD) if job.review in REVIEW_CLOSED]
    gone = [job_id for job_id in closed if book.reviewed_at[job_id] <= before]
    for job_id in gone:
        book.remove(job_id)
    return len(gone)


def _keys(book: Book, now: datetime) -> int:
    gone = [name for name, holder in book.keys.items() if expired(book, holder, now)]
    for name in gone:
        del book.keys[name]
    return len(gone)


def _sessions(book: Book, before: datetime) -> int:
    owners = {job.session_id for job in book.in_state(State.RUNNING)}
    gone = [
        record.id
        for record in book.sessions.values()
        if record.ended_at is not None and record.ended_at <= before and record.id not in owners
    ]
    for session_id in gone:
        del book.sessions[session_id]
    return len(gone)
