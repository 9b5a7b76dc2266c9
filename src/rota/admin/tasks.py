"""What people ask about tasks, and how a parked one is released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota._core.actions import Audit
from rota._core.suspects import ParkedTask
from rota._core.task_spec import TaskSpec
from rota.admin.reads import Reads
from rota.admin.scope import OutOfScope
from rota.errors import TaskNotParked


class TaskView(NamedTuple):
    """A published task, and the code versions under which it is parked."""

    spec: TaskSpec
    parked: Sequence[ParkedTask]


class Tasks(Reads):
    """The registry, and what is parked of it."""

    async def tasks(self) -> Sequence[TaskView]:
        """Every task that was ever published."""
        parked = await self.store.parked_tasks()
        return [
            TaskView(spec, [row for row in parked if row.task == spec.name])
            for spec in await self.store.tasks()
        ]

    async def parked_tasks(self) -> Sequence[ParkedTask]:
        """The tasks whose jobs wait, because too many of them killed their process."""
        return await self.store.parked_tasks()

    async def release_task(self, name: str, *, reason: str | None = None) -> int:
        """Let the jobs of a parked task run again; how many go back on the list."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "releasing a task")
        parked = [row for row in await self.store.parked_tasks() if row.task == name]
        before = ", ".join(row.code_version for row in parked)
        audit = Audit(
            self.actor,
            "release",
            None,
            reason,
            before=f"parked ({before})",
            after="released",
            about=f"task:{name}",
        )
        freed = await self.store.release_task(name, audit) if parked else None
        if freed is None:
            raise TaskNotParked(name, {row.task for row in await self.store.parked_tasks()})
        return freed
