"""Looking at what is hidden from most: allowed to few, and never unseen."""

from __future__ import annotations

from uuid import UUID

from rota._core.actions import Audit
from rota._core.job import Job
from rota.admin.reads import Reads


class Revealing(Reads):
    """A job with its secrets."""

    async def reveal(self, job_id: UUID, *, reason: str | None = None) -> Job:
        """The job as it is stored; that somebody looked at it is in the audit before he sees it."""
        job = await self.job(job_id)
        await self.store.note(Audit(self.actor, "reveal", job.id, reason, correlation_id=job.correlation))
        return job
