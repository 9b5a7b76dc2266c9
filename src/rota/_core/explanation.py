"""What an explanation rests on and what it says: facts, obstacles, and the causes that scripts may rely on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from rota._core.actions import Audit
from rota._core.job import Job, State
from rota._core.suspects import ParkedTask
from rota._core.task_spec import TaskSpec


class Cause(StrEnum):
    """What keeps a job, in one word; scripts and pages may rely on it."""

    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    SNOOZED = "snoozed"
    HELD = "held"
    BLOCKED = "blocked"
    GATE = "gate"  # another job runs that may not run at the same time
    TASK_PARKED = "task_parked"
    PARKED = "parked"
    EXPIRED = "expired"  # its deadline is past
    NO_WORKER = "no_worker"
    TASK_UNKNOWN = "task_unknown"  # no living worker knows its task
    QUEUE_UNSERVED = "queue_unserved"
    TENANT_UNSERVED = "tenant_unserved"
    PAYLOAD_TOO_NEW = "payload_too_new"
    SUSPECT = "suspect"  # waits to run alone
    BEHIND = "behind"  # others are before it
    DUE = "due"  # nothing is in its way
    RUNNING = "running"
    CANCELLING = "cancelling"
    LOST = "lost"  # its worker is gone, and nobody has noticed yet
    ENDED = "ended"


class WorkerSeen(NamedTuple):
    """A living worker, as far as it says what it serves."""

    id: UUID
    host: str
    pid: int
    tasks: tuple[str, ...]
    queues: tuple[str, ...] | None = None
    """The queues that any of its lanes serves; None: every queue, or it does not say."""
    tenant: str | None = None
    """The only tenant that it works for; None: all."""
    slots: int = 0
    lanes: tuple[tuple[int, tuple[str, ...] | None], ...] = ()
    """The slots of each lane, and the queues it serves."""
    leaving: bool = False
    """Somebody asked it to go, so that it takes no more jobs."""
    memory: int | None = None
    """Bytes that its process uses; None: unknown."""

    def slots_for(self, queue: str) -> int:
        """How many of its slots may run jobs of this queue."""
        if self.leaving:
            return 0
        if not self.lanes:
            return self.slots if self.queues is None or queue in self.queues else 0
        return sum(slots for slots, queues in self.lanes if queues is None or queue in queues)

    def __str__(self) -> str:
        return f"{self.host} (process {self.pid})"

    def serves(self, job: Job) -> bool:
        return (
            not self.leaving
            and job.task in self.tasks
            and (self.queues is None or job.queue in self.queues)
            and self.tenant in (None, job.tenant)
        )


class Standing(NamedTuple):
    """Where a waiting job stands in its line."""

    ahead: int = 0
    """Due jobs of its queue that a claim takes first."""
    capped: bool = False
    """True: there are more; counting stopped."""
    inside: UUID | None = None
    """The running job that holds its gate."""


class Facts(NamedTuple):
    """All that the explanation of one job rests on."""

    job: Job
    now: datetime
    workers: tuple[WorkerSeen, ...] = ()
    standing: Standing = Standing()
    inside: Job | None = None
    """The running job that holds its gate."""
    owner: WorkerSeen | None = None
    """The living worker that runs it."""
    audit: tuple[Audit, ...] = ()
    """What people did to it, newest first."""
    parked: tuple[ParkedTask, ...] = ()
    """The code versions under which its task is parked."""
    task: TaskSpec | None = None
    """The task as the newest code published it."""
    target: float | None = None
    """How many seconds a due job of its queue should wait at most."""


class Obstacle(NamedTuple):
    """One thing that keeps a job from running."""

    cause: Cause
    why: str
    fix: str
    """What would unblock it."""
    command: str | None = None
    """What to type for that."""


class Explanation(NamedTuple):
    """Why a job is not running (or that it is), and what would unblock it."""

    job_id: UUID
    state: State
    cause: Cause
    why: str
    fix: str
    command: str | None = None
    also: tuple[Obstacle, ...] = ()
    """What would still be in its way after that."""

    def __str__(self) -> str:
        lines = [f"{self.why} {self.fix}".strip()]
        if self.command is not None:
            lines.append(f"  {self.command}")
        for other in self.also:
            lines.append(f"Also: {other.why} {other.fix}".strip())
            if other.command is not None:
                lines.append(f"  {other.command}")
        return "\n".join(lines)


def queues_of(lanes: Mapping[str, tuple[str, ...] | None] | None) -> tuple[str, ...] | None:
    """All queues that some lane serves; None: every queue, or nothing is said."""
    if lanes is None or None in lanes.values():
        return None
    return tuple(dict.fromkeys(queue for queues in lanes.values() for queue in queues or ()))
