"""The promises of a store about the logs of jobs. Conformance tests quote the docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from rota._core.job_log import LogTail


class JobLogs(Protocol):
    """What every store promises of the lines that jobs log."""

    async def keep_logs(self, tails: Sequence[LogTail], /) -> None:
        """Keep the newest lines of these attempts in place of what was kept of each before.

        An attempt is named by its job and the version at its claim, so a stale
        attempt's lines never show as another's. An older tail of the same
        attempt changes nothing. They go when their job goes.
        """
        ...

    async def logs(self, job_id: UUID, /) -> list[LogTail]:
        """What the attempts of a job logged, oldest attempt first; attempts that logged nothing are left out."""
        ...
