"""Retention: letting go of what has ended, once its time is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from rota._core.job import State
from rota._core.retention import EVERYTHING
from rota.stores.memory import operations, retention, schedules, suspects
from rota.stores.memory.book import Book
from rota.stores.memory.enqueueing import expired
from rota.stores.retention_contract import Retention, Tidied


def tidy(book: Book, keep: Retention, now: datetime) -> Tidied:
    """Remove what retention lets go. A dead job that nobody reviewed stays for ever."""
    suspects.forget(book, now - timedelta(seconds=keep.finished))
    operations.forget(book, now - timedelta(seconds=keep.dead_after_review))
    pruned = retention.prune(book, EVERYTHING, keep, now)
    return Tidied(
        finished=pruned.finished,
        dead=pruned.dead,
        keys=_keys(book, now),
        sessions=_sessions(book, now - timedelta(seconds=keep.sessions)),
        ticks=schedules.forget(book, now - timedelta(seconds=keep.ticks), keep.ticks_kept),
        archive=retention.forget(book, keep.archive, now),
    )


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
