"""The promise of a store about how much waits. Conformance tests quote the docstring."""

from __future__ import annotations

from typing import Protocol

from rota.stores.happening_contract import Happenings
from rota.stores.log_contract import JobLogs
from rota.stores.retention_contract import Retained


class Backlogs(Protocol):
    """What every store promises of the length of its lines."""

    async def backlog(self, queue: str, /, *, cap: int, by_tenant: bool) -> dict[str | None, int]:
        """How many jobs wait in a queue, by tenant; or all under None, where tenants do not matter.

        Counts at most about `cap` jobs, so that it costs the same whatever waits.
        Parked jobs are not counted: nothing that is done here lets them run.
        """
        ...


class Beside(JobLogs, Backlogs, Retained, Happenings, Protocol):
    """What a store keeps and tells beside its jobs."""
