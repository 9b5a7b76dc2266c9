"""The admin endpoints of DOC-20, at its paths and in its words: `/api/jobs/admin/dlq/` and `/api/jobs/admin/queue/`.

For managers only. A manager of one tenant sees that tenant's jobs and dead
letters, and nobody else's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Body, Query
from pydantic import BaseModel, ConfigDict, Field

from rota._core.dead_letter import DeadFilter, DeadLetter
from rota._core.job import Job, State
from rota._core.job_filter import JobFilter
from rota._core.redaction import for_people
from rota._core.review import Review
from rota._core.vocabulary import Seed, state_for, word_for, words
from rota.stores.tally_contract import Tally
from rota.web.api.shapes import JobId
from rota.web.asking import Asked
from rota.web.problems import Problem
from rota.web.roles import Role, Routes
from rota.web.searching import SEARCHES

dlq = Routes("doc20_dlq", "/api/jobs/admin/dlq")
queue = Routes("doc20_queue", "/api/jobs/admin/queue")

COUNTED = 100_000
"""So many are counted at most."""
SHOWN = tuple(state for state in State if word_for(Seed.DOC20, state) is not None)
"""DOC-20 has no word for the others, so that its queue does not have them."""


class DlqItem(BaseModel):
    """A dead letter, in DOC-20's words."""

    dlq_id: UUID
    category: str | None
    job_type: str
    status: Review
    idempotency_key: str | None
    correlation_id: str
    error_class: str | None
    error_message: str | None
    attempt_count: int
    original_created_at: datetime
    created_at: datetime


class DlqDetails(DlqItem):
    """A dead letter with its payload."""

    payload: dict[str, Any] = Field(
        description="As the job was given it; what looks like a secret is hidden."
    )


class DlqItems(BaseModel):
    """A list of dead letters."""

    dlq_items: list[DlqItem]
    total_count: int = Field(
        description="How many match, on this page and beyond; counting stops at 100,000."
    )


class Notes(BaseModel):
    """Why a dead letter is treated so."""

    model_config = ConfigDict(extra="forbid")

    notes: str | None = Field(None, max_length=2000)


class ReprocessedItem(BaseModel):
    """That the work of a dead letter is done again."""

    message: Literal["DLQ item reprocessed successfully"] = "DLQ item reprocessed successfully"
    dlq_id: UUID
    new_job_id: UUID
    new_idempotency_key: str


class DiscardedItem(BaseModel):
    """That the work of a dead letter is given up."""

    message: Literal["DLQ item discarded"] = "DLQ item discarded"
    dlq_id: UUID
    status: Review


class DlqStatistics(BaseModel):
    """How many dead letters there are of which kind."""

    total_count: int
    by_status: dict[str, int]
    by_category: dict[str, int]
    by_error_class: dict[str, int]


class QueueItem(BaseModel):
    """A job, in DOC-20's words."""

    job_id: UUID
    category: str | None
    job_type: str
    status: str
    priority: int
    idempotency_key: str | None
    correlation_id: str
    attempt_count: int
    max_attempts: int
    error_class: str | None
    error_message: str | None
    scheduled_at: datetime
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


class QueueItems(BaseModel):
    """A list of jobs."""

    jobs: list[QueueItem]
    total_count: int = Field(description="How many are on this page.")


class QueueStatistics(BaseModel):
    """How many jobs there are of which kind."""

    total_count: int
    by_status: dict[str, int]
    by_category: dict[str, int]
    by_error_class: dict[str, int]


NOTES = Notes()
Said = Annotated[Notes, Body()]
Limit = Annotated[int, Query(ge=1, le=200)]


@dlq.get("/", verb="list", role=Role.MANAGER)
async def list_dlq(
    asked: Asked,
    *,
    status: Review | None = None,
    job_type: str | None = None,
    error_class: str | None = None,
    correlation_id: str | None = None,
    limit: Limit = 50,
    before: Annotated[JobId | None, Query(description="The last `dlq_id` of the page before.")] = None,
) -> DlqItems:
    """The dead letters, newest first."""
    wanted = DeadFilter(
        () if status is None else (status,),
        task=job_type,
        error_class=error_class,
        correlation_id=correlation_id,
        limit=limit,
    )
    found = await asked.admin.dead_letters(wanted._replace(before=before))
    total = await asked.admin.store.count_dead_letters(wanted, cap=COUNTED)
    return DlqItems(dlq_items=[_item(letter) for letter in found], total_count=total)


@dlq.get("/statistics/", verb="statistics", role=Role.MANAGER, dependencies=SEARCHES)
async def dlq_statistics(asked: Asked) -> DlqStatistics:
    """How many there are by status, category and error class."""
    store = asked.admin.store
    by_status = {
        status.value: await store.count_dead_letters(DeadFilter((status,)), cap=COUNTED) for status in Review
    }
    dead = [kind for kind in await store.tally(cap=COUNTED) if kind.state is State.DEAD]
    return DlqStatistics(
        total_count=sum(by_status.values()),
        by_status=by_status,
        by_category=_counted((kind.category, kind) for kind in dead),
        by_error_class=_counted((kind.error_class, kind) for kind in dead),
    )


@dlq.get("/{dlq_id}/", verb="show", role=Role.MANAGER)
async def show_dlq(asked: Asked, dlq_id: JobId) -> DlqDetails:
    """One dead letter with its full payload."""
    letter = await asked.admin.dead_letter(dlq_id)
    return DlqDetails(**_item(letter).model_dump(), payload=for_people(letter.job).payload)


@dlq.post("/{dlq_id}/reprocess/", verb="reprocess", role=Role.MANAGER)
async def reprocess(asked: Asked, dlq_id: JobId, why: Said = NOTES) -> ReprocessedItem:
    """Do its work again in a new job with its payload and a key of its own."""
    admin = asked.admin
    letter = await admin.dead_letter(dlq_id)
    now = await admin.store.now()
    key = f"{letter.job.key or letter.job.id}_retry_{now.timestamp():.3f}"
    done = await admin.reprocess(dlq_id, reason=why.notes, key=key)
    assert done.new_job is not None
    # Whoever clicked first has made the job, and named it.
    made = await admin.job(done.new_job)
    return ReprocessedItem(dlq_id=dlq_id, new_job_id=made.id, new_idempotency_key=made.key or key)


@dlq.post("/{dlq_id}/discard/", verb="discard", role=Role.MANAGER)
async def discard(asked: Asked, dlq_id: JobId, why: Said = NOTES) -> DiscardedItem:
    """Give its work up."""
    done = await asked.admin.discard(dlq_id, reason=why.notes)
    return DiscardedItem(dlq_id=dlq_id, status=Review(done.after))


@queue.get("/", verb="list", role=Role.MANAGER, dependencies=SEARCHES)
async def list_queue(
    asked: Asked,
    *,
    status: Annotated[str | None, Query(description="pending, processing, completed or dlq.")] = None,
    category: str | None = None,
    job_type: str | None = None,
    error_class: str | None = None,
    correlation_id: str | None = None,
    idempotency_key: str | None = None,
    limit: Limit = 50,
    before: Annotated[JobId | None, Query(description="The last `job_id` of the page before.")] = None,
) -> QueueItems:
    """The jobs, newest first. Every filter narrows."""
    wanted = JobFilter(
        states=_states(status),
        category=category,
        task=job_type,
        error=error_class,
        correlation_id=correlation_id,
        key=idempotency_key,
        limit=limit,
        before=before,
    )
    found = [_queued(job) for job in await asked.admin.list(wanted)]
    return QueueItems(jobs=found, total_count=len(found))


@queue.get("/statistics/", verb="statistics", role=Role.MANAGER, dependencies=SEARCHES)
async def queue_statistics(asked: Asked) -> QueueStatistics:
    """How many jobs there are by status, category and error class; counting stops at 100,000 of a kind."""
    found = [kind for kind in await asked.admin.store.tally(cap=COUNTED) if kind.state in SHOWN]
    return QueueStatistics(
        total_count=sum(kind.jobs for kind in found),
        by_status=_counted((word_for(Seed.DOC20, kind.state), kind) for kind in found),
        by_category=_counted((kind.category, kind) for kind in found),
        by_error_class=_counted((kind.error_class, kind) for kind in found),
    )


def _item(letter: DeadLetter) -> DlqItem:
    job = for_people(letter.job)
    return DlqItem(
        dlq_id=job.id,
        category=job.category,
        job_type=job.task,
        status=letter.review,
        idempotency_key=job.key,
        correlation_id=job.correlation,
        error_class=job.error_class,
        error_message=job.error_message,
        attempt_count=job.attempt,
        original_created_at=job.created_at,
        created_at=job.finished_at or job.updated_at,
    )


def _queued(stored: Job) -> QueueItem:
    job = for_people(stored)
    return QueueItem(
        job_id=job.id,
        category=job.category,
        job_type=job.task,
        status=word_for(Seed.DOC20, job.state) or job.state.value,
        priority=job.priority,
        idempotency_key=job.key,
        correlation_id=job.correlation,
        attempt_count=job.attempt,
        max_attempts=job.max_attempts,
        error_class=job.error_class,
        error_message=job.error_message,
        scheduled_at=job.run_at,
        created_at=job.created_at,
        started_at=job.claimed_at,
        completed_at=job.finished_at,
    )


def _states(word: str | None) -> tuple[State, ...]:
    """The states that share a word of DOC-20."""
    if word is None:
        return SHOWN
    try:
        state_for(Seed.DOC20, word)
    except ValueError:
        known = ", ".join(sorted(words(Seed.DOC20)))
        raise Problem(422, "bad-status", f"There is no status {word!r}. There are {known}.") from None
    return tuple(state for state in SHOWN if word_for(Seed.DOC20, state) == word)


def _counted(kinds: Iterable[tuple[str | None, Tally]]) -> dict[str, int]:
    """How many of each; those without one are left out."""
    found: Counter[str] = Counter()
    for name, kind in kinds:
        if name is not None:
            found[name] += kind.jobs
    return dict(sorted(found.items()))
