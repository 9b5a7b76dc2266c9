"""A task as data: what the store must know of it so that nobody else needs the user's code."""

from __future__ import annotations

from typing import NamedTuple

from rota._core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE
from rota._core.retry import Retry
from rota._core.rules import TaskRules


class TaskSpec(NamedTuple):
    """The row of a task in the `tasks` table. Newest code version wins."""

    name: str
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    retry: Retry = Retry()
    timeout: float | None = None
    payload_version: str = "1.0"
    schema_json: str = "{}"
    """The JSON Schema of its arguments."""
    gate_path: str | None = None
    """The argument whose value is its serial key, if it has one."""
    category: str | None = None
    code_version: str | None = None
    rules: TaskRules = TaskRules()
    """Where its jobs get their keys from."""
