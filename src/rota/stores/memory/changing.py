"""What operators do: the change and its audit row in one step, or neither."""

from __future__ import annotations

from datetime import datetime

from rota._core.actions import Audit, CancelRequest, Change, Removal
from rota._core.job import Job, State
from rota._core.outcome import Transition
from rota.errors import NotUnique
from rota.stores.contract import Answer, CancelHint, Settled
from rota.stores.memory.book import Book
from rota.stores.memory.enqueueing import retake
from rota.stores.memory.settling import apply, repeats


def change(book: Book, change: Change, audit: Audit, now: datetime) -> Settled:
    """Apply an operator's change if the version still holds, with its audit row."""
    wanted = change.job
    job = book.jobs.get(wanted.id)
    if job is None:
        return Settled(wanted.id, Answer.FENCED, None)
    if job.version != wanted.version or not _allowed(job, change):
        again = isinstance(change, Transition) and not wanted.state.terminal and repeats(book, change, job)
        return Settled(job.id, Answer.ALREADY if again else Answer.FENCED, job.state)
    state = _applied(book, change, now)
    after = audit.after
    if isinstance(change, Transition) and state is not change.to:
        after = None if state is None else state.value  # superseded: the trail tells what really happened
    book.tell(audit._replace(after=after), now)
    return Settled(job.id, Answer.APPLIED, state)


def trail(book: Book, job_id: object, about: str | None, limit: int) -> list[Audit]:
    """The audit rows, newest first."""
    rows = [
        row
        for row in reversed(book.audit)
        if (job_id is None or row.job_id == job_id) and (about is None or row.about == about)
    ]
    return rows[:limit]


def _allowed(job: Job, change: Change) -> bool:
    """Only a running job has a worker to ask; only one that does not run can be removed under nobody's hands."""
    running = job.state is State.RUNNING
    match change:
        case CancelRequest():
            return running
        case Removal():
            return not running
        case _:
            return True


def _applied(book: Book, change: Change, now: datetime) -> State | None:
    job = book.jobs[change.job.id]
    match change:
        case CancelRequest(_, reason):
            # A flag, not a move: the version stays, so that the worker can still confirm.
            asked_at = job.cancel_requested_at or now
            book.put(job._replace(cancel_requested_at=asked_at, reason=reason or job.reason, updated_at=now))
            book.hints.append(CancelHint(job.id))
            return job.state
        case Removal():
            book.remove(job.id)
            book.deleted.add(job.id)
            return None
        case _:
            if job.state.terminal:
                _take_key_again(book, job, now)
            return apply(book, change, now).state


def _take_key_again(book: Book, job: Job, now: datetime) -> None:
    """An ended job that is to run again must not stand beside the one that took its place."""
    newer = retake(book, job, now)
    if newer is not None:
        raise NotUnique(str(job.unique_key), newer)
