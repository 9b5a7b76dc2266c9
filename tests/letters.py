"""Builders for stories of dead letters: a_letter(store), reviewed(store, job, verb), reprocessed(store, job)."""

from __future__ import annotations

from uuid import UUID

from build import a_running_job, failed, new_id
from rota._core.actions import Audit
from rota._core.dead_letter import DeadLetter, follower, review_audit
from rota._core.failure import ErrorClass
from rota._core.job import Job, NewJob
from rota._core.review import REQUESTED, SUCCESS, ReviewChange, Reviewed, ReviewVerb, review
from rota.stores.contract import Store


async def a_letter(store: Store, task: str = "email", *, message: str = "boom", **options) -> DeadLetter:
    """A job that has just died."""
    job = await a_running_job(store, task, **options)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE, message)])
    return await the_letter(store, job.id)


async def the_letter(store: Store, job_id: UUID) -> DeadLetter:
    found = await store.dead_letter(job_id)
    assert found is not None
    return found


def change_of(job: Job, verb: ReviewVerb, *, by: str = "ann", notes: str | None = "known") -> ReviewChange:
    change = review(job, verb, by=by, notes=notes)
    assert isinstance(change, ReviewChange)
    return change


async def reviewed(store: Store, job: Job, verb: ReviewVerb, **said) -> Reviewed:
    change = change_of(job, verb, **said)
    return await store.change_review(change, review_audit(change.by, job, change, verb))


def a_pair(job: Job, new: NewJob, by: str = "ann") -> list[Audit]:
    return [Audit(by, action, job.id, after=str(new.id)) for action in (REQUESTED, SUCCESS)]


async def reprocessed(store: Store, job: Job, *, payload_json: str | None = None) -> tuple[Reviewed, NewJob]:
    new = follower(job, new_id(), by="ann", payload_json=payload_json)
    answer = await store.reprocess(change_of(job, ReviewVerb.REPROCESS), new, a_pair(job, new))
    return answer, new


async def actions(store: Store, job_id: UUID) -> list[str]:
    """What the audit says of a job, oldest first."""
    return [row.action for row in reversed(await store.audit(job_id))]
