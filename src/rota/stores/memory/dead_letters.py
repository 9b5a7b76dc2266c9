"""Dead letters: their review, the new job of a reprocessed one, and groups of like failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from rota._core import review as reviewing
from rota._core.actions import Audit
from rota._core.dead_letter import (
    DeadFilter,
    DeadLetter,
    Death,
    FailureGroup,
    back_in_review,
    by_engine,
    death_of,
    hourly,
    how_it_went,
    losses_of_follower,
)
from rota._core.failure import storable
from rota._core.fingerprint import fingerprint
from rota._core.job import Job, NewJob, State
from rota._core.review import CLOSED, Landed, Review, ReviewChange, Reviewed, ReviewVerb
from rota.errors import NotUnique
from rota.stores.memory.enqueueing import enqueue, name_follower, retake

if TYPE_CHECKING:
    from rota.stores.memory.book import Book

HOUR = timedelta(hours=1)


def one(book: Book, job_id: UUID) -> DeadLetter | None:
    job = book.jobs.get(job_id)
    return None if job is None or job.state is not State.DEAD else _letter(book, job)


def find(book: Book, wanted: DeadFilter) -> list[DeadLetter]:
    """The dead jobs that match, by id: ids grow with time."""
    found = sorted(_matching(book, wanted), key=lambda job: job.id, reverse=True)
    return [_letter(book, job) for job in found[: wanted.limit]]


def deaths(book: Book, wanted: DeadFilter) -> list[Death]:
    return [death_of(letter) for letter in find(book, wanted)]


def count(book: Book, wanted: DeadFilter, cap: int) -> int:
    return min(cap, sum(1 for _ in _matching(book, wanted)))


def groups(book: Book, wanted: DeadFilter, now: datetime) -> list[FailureGroup]:
    """Like failures together, the group that was seen last first."""
    meant = DeadFilter(wanted.reviews or (Review.PENDING,), wanted.group, wanted.task)
    by_kind: dict[str, list[Job]] = {}
    for job in _matching(book, meant):
        kind = _letter(book, job).fingerprint
        if kind is not None:
            by_kind.setdefault(kind, []).append(job)
    found = [_group(book, kind, jobs, now) for kind, jobs in by_kind.items()]
    found.sort(key=lambda group: (group.last_seen, group.fingerprint), reverse=True)
    return found[: wanted.limit]


def hours(book: Book, fingerprints: Sequence[str], last: int, now: datetime) -> dict[str, list[int]]:
    """How many of each group died in each of the last hours."""
    return {
        name: hourly(
            (job.finished_at for job in _matching(book, DeadFilter(group=name)) if job.finished_at), now, last
        )
        for name in fingerprints
    }


def change(book: Book, change: ReviewChange, audit: Audit, now: datetime) -> Reviewed:
    """Apply a review if the version still holds, with its audit row."""
    job = book.jobs.get(change.job_id)
    if job is None or job.state is not State.DEAD:
        return Reviewed(Landed.FENCED, None)
    if job.version != change.version or job.review != change.origin:
        same = job.version == change.version + 1 and job.review == change.target
        said = (book.letters[job.id].reviewed_by, book.letters[job.id].notes)
        again = same and said == (storable(change.by), _storable(change.notes))
        return _stands(book, job, Landed.ALREADY if again else Landed.FENCED)
    _write(book, job, change, now)
    book.tell(audit, now)
    return _stands(book, book.jobs[job.id], Landed.APPLIED)


def reprocess(
    book: Book, change: ReviewChange, new: NewJob, audits: Sequence[Audit], now: datetime
) -> Reviewed:
    """The new job of a dead one, with the review and the audits."""
    job = book.jobs.get(change.job_id)
    if job is None or job.state is not State.DEAD:
        return Reviewed(Landed.FENCED, None)
    if job.version != change.version or job.review != change.origin:
        again = job.review == Review.REPROCESSING
        return _stands(book, job, Landed.ALREADY if again else Landed.FENCED)
    # The dead job's keys pass to the new one, which is stored without asking them again.
    enqueue(book, new._replace(key=None, unique_key=None), now)
    stored = book.jobs[new.id]._replace(
        key=new.key, unique_key=new.unique_key, unique_scope=job.unique_scope, losses=losses_of_follower(job)
    )
    rival = retake(book, stored, now, besides=job.id)
    if rival is not None:
        book.remove(new.id)
        raise NotUnique(str(new.unique_key), rival)
    for name, holder in book.keys.items():
        if holder.job_id == job.id:
            book.keys[name] = holder._replace(job_id=new.id)
    if new.key != job.key:
        name_follower(book, new, now)
    book.put(stored)
    _write(book, job, change, now)
    book.letters[job.id] = book.letters[job.id]._replace(reprocessed_as=new.id)
    for audit in audits:
        book.tell(audit, now)
    return _stands(book, book.jobs[job.id], Landed.APPLIED)


def settle(book: Book, now: datetime) -> tuple[int, int]:
    """What the ends of new jobs mean for the dead ones."""
    waiting = [job for job in book.in_state(State.DEAD) if job.review == Review.REPROCESSING]
    moved = 0
    for job in waiting:
        new_id = book.letters[job.id].reprocessed_as
        new = None if new_id is None else book.jobs.get(new_id)
        state = None if new is None else new.state
        verb = reviewing.ended(state)
        if verb is None:
            continue
        moved += 1
        _by_engine(book, job, verb, how_it_went(new_id, state), now)
        if new is not None and new.review == Review.PENDING:
            _by_engine(book, new, ReviewVerb.ACKNOWLEDGE, back_in_review(job.id), now)
    return moved, len(waiting) - moved


def buried(book: Book, job: Job) -> None:
    """Note what kind of failure it was, when a job has died."""
    last = book.attempts.get(job.id, [])[-1:]
    error_type = last[0].error_type if last else job.error_class or "unknown"
    stack = last[0].stack if last else None
    kind = fingerprint(job.task, error_type, job.error_message or "", stack)
    book.letters[job.id] = DeadLetter(job, *kind, None, None, None, None)


def _by_engine(book: Book, job: Job, verb: ReviewVerb, why: str, now: datetime) -> None:
    change, audit = by_engine(job, verb, why)
    _write(book, job, change, now)
    book.tell(audit, now)


def _write(book: Book, job: Job, change: ReviewChange, now: datetime) -> None:
    book.put(job._replace(review=change.target.value, version=job.version + 1))
    notes = _storable(change.notes)
    book.letters[job.id] = book.letters[job.id]._replace(
        reviewed_by=storable(change.by), reviewed_at=now, notes=notes
    )
    if change.target in CLOSED:
        book.reviewed_at[job.id] = now
    else:
        book.reviewed_at.pop(job.id, None)


def _stands(book: Book, job: Job, landed: Landed) -> Reviewed:
    return Reviewed(landed, Review(job.review or Review.PENDING), book.letters[job.id].reprocessed_as)


def _letter(book: Book, job: Job) -> DeadLetter:
    if job.id not in book.letters:
        buried(book, job)
    return book.letters[job.id]._replace(job=job, newer_success=_newer_success(book, job))


def _newer_success(book: Book, dead: Job) -> UUID | None:
    later = [
        job
        for job in book.in_state(State.COMPLETED)
        if (job.task, job.tenant) == (dead.task, dead.tenant)
        and job.finished_at is not None
        and dead.finished_at is not None
        and job.finished_at > dead.finished_at
        and (
            (dead.subject is not None and job.subject == dead.subject)
            or (dead.key is not None and job.key == dead.key)
        )
    ]
    return max(later, key=lambda job: (job.finished_at, job.id)).id if later else None


def _matching(book: Book, wanted: DeadFilter) -> Iterator[Job]:
    for job in book.in_state(State.DEAD):
        exact = (
            (wanted.task, job.task),
            (wanted.queue, job.queue),
            (wanted.tenant, job.tenant),
            (wanted.error_class, job.error_class),
            (wanted.subject, job.subject),
            (wanted.correlation_id, job.correlation),
        )
        died = job.finished_at
        if (
            all(asked is None or asked == found for asked, found in exact)
            and (not wanted.reviews or job.review in wanted.reviews)
            and (wanted.group is None or _letter(book, job).fingerprint == wanted.group)
            and died is not None
            and (wanted.since is None or died >= wanted.since)
            and (wanted.until is None or died <= wanted.until)
            and (wanted.before is None or job.id < wanted.before)
        ):
            yield job


def _group(book: Book, kind: str, jobs: list[Job], now: datetime) -> FailureGroup:
    newest = max(jobs, key=lambda job: (job.finished_at, job.id))
    died = [job.finished_at for job in jobs if job.finished_at is not None]
    letter = _letter(book, newest)
    return FailureGroup(
        kind,
        newest.task,
        newest.error_class,
        letter.error_type,
        letter.frame,
        newest.error_message,
        len(jobs),
        min(died),
        max(died),
        sum(at > now - HOUR for at in died),
        sum(now - 2 * HOUR < at <= now - HOUR for at in died),
        newest.id,
    )


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)
