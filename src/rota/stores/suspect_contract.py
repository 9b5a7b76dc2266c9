"""The promises of a store about crashes and parked tasks. Conformance tests quote the docstrings."""

from __future__ import annotations

from typing import Protocol

from rota._core.actions import Audit
from rota._core.suspects import Crash, ParkedTask


class Suspects(Protocol):
    """What every store promises of tasks whose jobs kill their process."""

    async def note_crash(self, crash: Crash, *, limit: int, within: float) -> ParkedTask | None:
        """Count a crash against its task, and park the task if it is one too many; the task, if this parked it.

        One too many: so many different jobs crashed under one code version
        within so many seconds, counted from the task's last release. Noting
        the same crash again changes nothing.
        """
        ...

    async def parked_tasks(self) -> list[ParkedTask]:
        """The tasks that are parked now, one row a code version."""
        ...

    async def release_task(self, task: str, audit: Audit, *, code_version: str | None = None) -> int | None:
        """Park a task no longer, under one code version or all; its parked jobs go back on the list.

        How many jobs that were, or None when the task was not parked. The audit
        is recorded with it.
        """
        ...
