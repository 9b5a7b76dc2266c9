"""What people ask about the logs of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from rota._core.job_log import LogTail
from rota.admin.reads import Reads


class JobLogs(Reads):
    """The newest lines of each attempt."""

    async def logs(self, job_id: UUID) -> Sequence[LogTail]:
        """What the attempts of a job logged, oldest first, or `JobNotFound`. Attempts without a line are left out."""
        tails = await self.store.logs(job_id)
        if not tails:
            await self.job(job_id)
        return tails
