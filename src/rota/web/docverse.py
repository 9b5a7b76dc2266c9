"""Docverse's view of one job: `GET /queue/jobs/{id}`, where every answer that starts work points by `queue_url`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from rota._core.ids import public_id
from rota._core.job import Job, State
from rota._core.redaction import for_people
from rota._core.vocabulary import Seed, word_for
from rota.web.api.shapes import JobId
from rota.web.asking import Asked
from rota.web.roles import Role, Routes

routes = Routes("docverse", "/queue/jobs")


class QueueJob(BaseModel):
    """One job, in Docverse's words."""

    id: UUID
    public_id: str = Field(description="Crockford Base32 with a check symbol.")
    backend_job_id: str | None = Field(description="Its id in another system, if it has one.")
    kind: str
    status: str = Field(
        description="queued, in_progress, completed, completed_with_errors, failed or cancelled."
    )
    phase: str | None = Field(description="Null: the job does not tell phases.")
    org_id: str | None
    project_id: Any = None
    build_id: Any = None
    progress: dict[str, Any] | None = Field(description="Null: the job does not tell its progress.")
    errors: list[dict[str, str | None]]
    date_created: datetime
    date_started: datetime | None
    date_completed: datetime | None


@routes.get("/{job_id}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, job_id: JobId) -> QueueJob:
    """How a job goes, by its Base32 id. What retention has removed is 404."""
    return queue_job(await asked.admin.job(job_id))


def queue_job(stored: Job) -> QueueJob:
    job = for_people(stored)
    payload = job.payload
    failed = (
        [{"class": job.error_class, "message": job.error_message}] if job.error_message is not None else []
    )
    return QueueJob(
        id=job.id,
        public_id=public_id(job.id),
        backend_job_id=job.external_id,
        kind=job.task,
        # A held job has no word of its own there: it waits.
        status=word_for(Seed.DOCVERSE, job.state) or str(word_for(Seed.DOCVERSE, State.PENDING)),
        phase=None,
        org_id=job.tenant,
        project_id=payload.get("project_id"),
        build_id=payload.get("build_id"),
        progress=None,
        errors=failed,
        date_created=job.created_at,
        date_started=job.claimed_at,
        date_completed=job.finished_at,
    )
