"""What to say of an id that no job has."""

from __future__ import annotations

from uuid import UUID

from rota.errors import JobArchived, JobNotFound
from rota.stores.contract import Store


async def missing(store: Store, job_id: UUID) -> JobNotFound:
    """The error: the job is archived, or not known at all."""
    rows = await store.archived([job_id])
    return JobArchived(rows[0]) if rows else JobNotFound(job_id)
