"""Storing a job, or finding the one that stands for it already."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from uuid import UUID

from rota._core.job import UNSTARTED, Job, NewJob, OnDuplicate, Scope, State
from rota.stores.contract import Enqueued, Stored
from rota.stores.memory.book import Book, Holder, KeyName


def enqueue(book: Book, new: NewJob, now: datetime) -> Enqueued:
    """Store one job by the rules of its keys."""
    if new.id in book.jobs or new.id in book.deleted or new.id in book.archive:
        return Enqueued(new.id, Stored.CREATED)  # the same enqueue again, after a lost answer
    answer = _by_key(book, new, now) or _by_unique_key(book, new, now)
    if answer is not None:
        return answer
    job = book.put(_fresh(new, now))
    _take_keys(book, new, now)
    book.hint_work(job)
    return Enqueued(new.id, Stored.CREATED)


def retake(book: Book, job: Job, now: datetime, *, besides: UUID | None = None) -> UUID | None:
    """Give a job that comes back to the list its unique key again, unless another job holds it now: that job.

    `besides`: a job that may have it, because this one follows it.
    """
    if job.unique_key is None:
        return None
    name = KeyName("unique", job.tenant, job.task, job.unique_key)
    holder = book.keys.get(name)
    if holder is not None and holder.job_id not in (job.id, besides) and _holds(book, holder, now):
        return holder.job_id
    book.keys[name] = Holder(job.id, scope=job.unique_scope, until=None if holder is None else holder.until)
    return None


def expired(book: Book, holder: Holder, now: datetime) -> bool:
    """Whether a key can be forgotten: its moment is past and its job is not waiting or running."""
    job = book.jobs.get(holder.job_id)
    return (holder.until is None or holder.until <= now) and (job is None or job.state.terminal)


def _by_key(book: Book, new: NewJob, now: datetime) -> Enqueued | None:
    if new.key is None:
        return None
    holder = book.keys.get(_idempotency(new, new.key))
    if holder is None or expired(book, holder, now):
        return None
    same = holder.payload_hash == fingerprint(new)
    return Enqueued(holder.job_id, Stored.DUPLICATE if same else Stored.CONFLICT)


def _by_unique_key(book: Book, new: NewJob, now: datetime) -> Enqueued | None:
    if new.unique_key is None:
        return None
    holder = book.keys.get(_unique(new, new.unique_key))
    if holder is None or not _holds(book, holder, now):
        return None
    job = book.jobs.get(holder.job_id)
    if new.on_duplicate is OnDuplicate.REJECT:
        return Enqueued(holder.job_id, Stored.REJECTED)
    if job is None or job.state not in UNSTARTED:
        return Enqueued(holder.job_id, Stored.DUPLICATE)
    return Enqueued(job.id, _apply_policy(book, job, new, now))


def _holds(book: Book, holder: Holder, now: datetime) -> bool:
    """Whether a unique key keeps others out now, by the scope that its holder was given."""
    job = book.jobs.get(holder.job_id)
    match holder.scope:
        case Scope.STARTED:
            return job is not None and job.state in UNSTARTED
        case Scope.FINISHED:
            return job is not None and not job.state.terminal
        case _:
            return holder.until is not None and holder.until > now


def _apply_policy(book: Book, job: Job, new: NewJob, now: datetime) -> Stored:
    """Change the waiting job as the newcomer wishes: an edit like any other, so the version grows."""
    edited = job._replace(version=job.version + 1, updated_at=now)
    match new.on_duplicate:
        case OnDuplicate.REPLACE:
            book.put(edited._replace(payload_json=new.payload_json))
            return Stored.REPLACED
        case OnDuplicate.MERGE:
            merged = {**job.payload, **json.loads(new.payload_json)}
            book.put(edited._replace(payload_json=json.dumps(merged)))
            return Stored.MERGED
        case OnDuplicate.RESCHEDULE:
            book.hint_work(book.put(edited._replace(run_at=_due(new, now))))
            return Stored.RESCHEDULED
        case _:
            return Stored.DUPLICATE


def _take_keys(book: Book, new: NewJob, now: datetime) -> None:
    if new.key is not None:
        until = now + timedelta(seconds=new.key_window)
        book.keys[_idempotency(new, new.key)] = Holder(new.id, payload_hash=fingerprint(new), until=until)
    if new.unique_key is not None:
        until_or_none = None if new.unique_window is None else now + timedelta(seconds=new.unique_window)
        book.keys[_unique(new, new.unique_key)] = Holder(new.id, scope=new.unique_scope, until=until_or_none)


def name_follower(book: Book, new: NewJob, now: datetime) -> None:
    """Give the job that does a dead one's work again an idempotency key of its own, unless somebody has it."""
    if new.key is not None:
        until = now + timedelta(seconds=new.key_window)
        holder = Holder(new.id, payload_hash=fingerprint(new), until=until)
        book.keys.setdefault(_idempotency(new, new.key), holder)


def fingerprint(new: NewJob) -> str:
    """What two enqueues with one idempotency key must have in common: task and arguments."""
    canonical = json.dumps(json.loads(new.payload_json), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{new.task}\n{canonical}".encode()).hexdigest()


def _idempotency(new: NewJob, key: str) -> KeyName:
    return KeyName("idempotency", new.tenant, None, key)


def _unique(new: NewJob, key: str) -> KeyName:
    return KeyName("unique", new.tenant, new.task, key)


def _due(new: NewJob, now: datetime) -> datetime:
    return new.run_at if new.run_at is not None else now + timedelta(seconds=new.delay)


def _fresh(new: NewJob, now: datetime) -> Job:
    return Job(
        id=new.id,
        version=1,
        state=State.HELD if new.held else State.PENDING,
        task=new.task,
        queue=new.queue,
        priority=new.priority,
        payload_json=new.payload_json,
        attempt=0,
        max_attempts=new.max_attempts,
        snoozes=0,
        losses=0,
        run_at=_due(new, now),
        created_at=now,
        updated_at=now,
        deadline=None if new.deadline_in is None else now + timedelta(seconds=new.deadline_in),
        timeout=new.timeout,
        tenant=new.tenant,
        subject=new.subject,
        external_id=new.external_id,
        key=new.key,
        unique_key=new.unique_key,
        unique_scope=None if new.unique_key is None else new.unique_scope.value,
        gate=new.gate,
        correlation_id=new.correlation_id,
        parent_id=new.parent_id,
        tags=new.tags,
        created_by=new.created_by,
        category=new.category,
        payload_version=new.payload_version,
        headers_json=new.headers_json,
    )
