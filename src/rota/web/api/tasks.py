"""Tasks over HTTP: what is published, what is parked, and how a parked one is released."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rota.admin.tasks import TaskView
from rota.web.asking import Asked
from rota.web.problems import Problem
from rota.web.roles import Role, Routes

routes = Routes("tasks", "/tasks")


class ParkedShown(BaseModel):
    """Why none of a task's jobs is begun."""

    model_config = ConfigDict(from_attributes=True)

    code_version: str
    crashes: int = Field(description="So many of its jobs killed their process.")
    what: str = Field(description="The last of their deaths.")
    parked_at: datetime


class TaskShown(BaseModel):
    """A task as its newest code published it."""

    name: str
    queue: str
    priority: int
    max_attempts: int
    timeout: float | None
    payload_version: str
    category: str | None
    code_version: str | None
    arguments: dict[str, Any] = Field(description="The JSON Schema of its arguments.")
    parked: list[ParkedShown]


class Releasing(BaseModel):
    """Why a task is released."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(None, max_length=2000)


class Released(BaseModel):
    """What became of a parked task."""

    task: str
    jobs: int = Field(description="So many of its jobs are back on the list.")


RELEASING = Releasing()


@routes.get(verb="list", role=Role.VIEWER)
async def list_tasks(asked: Asked) -> list[TaskShown]:
    """Every task that was ever published, by name."""
    return sorted(map(task_shown, await asked.admin.tasks()), key=lambda task: task.name)


@routes.get("/{name}", verb="show", role=Role.VIEWER)
async def show(asked: Asked, name: str) -> TaskShown:
    """One task."""
    for view in await asked.admin.tasks():
        if view.spec.name == name:
            return task_shown(view)
    raise Problem(
        404, "task-not-found", f"No task {name!r} is published. A worker publishes its tasks when it starts."
    )


@routes.post("/{name}/release", verb="release", role=Role.OPERATOR)
async def release(asked: Asked, name: str, why: Releasing = RELEASING) -> Released:
    """Let the jobs of a parked task run again."""
    return Released(task=name, jobs=await asked.admin.release_task(name, reason=why.reason))


def task_shown(view: TaskView) -> TaskShown:
    spec = view.spec
    return TaskShown(
        name=spec.name,
        queue=spec.queue,
        priority=spec.priority,
        max_attempts=spec.retry.attempts,
        timeout=spec.timeout,
        payload_version=spec.payload_version,
        category=spec.category,
        code_version=spec.code_version,
        arguments=json.loads(spec.schema_json),
        parked=[ParkedShown.model_validate(row) for row in view.parked],
    )
