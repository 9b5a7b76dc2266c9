"""All that the memory store knows. Whoever reads or writes here holds the store's lock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from rota._core.actions import Audit, kept
from rota._core.dead_letter import DeadLetter
from rota._core.depths import Depth
from rota._core.job import Job, State
from rota._core.job_log import LogTail
from rota._core.numbers import Minute
from rota._core.operation import Operation
from rota._core.queue import Queue
from rota._core.retention import ArchivedJob, Policy
from rota._core.schedule import ScheduleRecord, TickRecord
from rota._core.seal import Seal, sealed
from rota._core.suspects import Crash, ParkedTask
from rota._core.task_spec import TaskSpec
from rota._core.token import Token
from rota.stores.contract import Attempt, Hint, SessionRecord, WorkHint


class KeyName(NamedTuple):
    """What a key is called: idempotency keys are known by tenant, unique keys by tenant and task."""

    kind: str
    tenant: str | None
    task: str | None
    key: str


class Holder(NamedTuple):
    """The job that stands behind a key. Whether it still holds is read from the job."""

    job_id: UUID
    payload_hash: str | None = None
    scope: str | None = None
    until: datetime | None = None


class Plans:
    """What is known of schedules."""

    def __init__(self) -> None:
        self.records: dict[str, ScheduleRecord] = {}
        self.ticks: dict[tuple[str, datetime], TickRecord] = {}
        self.open_jobs: dict[str, list[UUID]] = {}


class Blame:
    """What is known of crashes, and of the code that ran."""

    def __init__(self) -> None:
        self.crashes: dict[tuple[UUID, int], Crash] = {}
        self.parked: dict[tuple[str, str], ParkedTask] = {}
        self.released: dict[tuple[str, str], datetime] = {}
        self.code_versions: dict[str, datetime] = {}
        """When each was first seen."""


class Book:
    """Every row, with the jobs also listed by state."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, Job] = {}
        self.attempts: dict[UUID, list[Attempt]] = {}
        self.keys: dict[KeyName, Holder] = {}
        self.sessions: dict[UUID, SessionRecord] = {}
        self.tasks: dict[str, TaskSpec] = {}
        self.audit: list[Audit] = []
        self.seals: list[Seal] = []
        self.plans = Plans()
        self.blame = Blame()
        self.minutes: dict[tuple[datetime, UUID], Minute] = {}
        self.hours: dict[datetime, Minute] = {}
        """What minutes came to that are no longer kept, by the hour."""
        self.depths: dict[datetime, dict[str, Depth]] = {}
        """How deep queues were, by minute."""
        self.queues: dict[str, Queue] = {}
        self.reviewed_at: dict[UUID, datetime] = {}
        self.letters: dict[UUID, DeadLetter] = {}
        """What is known of dead jobs besides; their `job` is as it was when they died."""
        self.operations: dict[UUID, Operation] = {}
        self.tokens: dict[str, Token] = {}
        self.logs: dict[UUID, dict[int, LogTail]] = {}
        """The newest lines of each attempt, by job and version at the claim."""
        self.policies: dict[tuple[str | None, str | None, str | None], Policy] = {}
        self.archive: dict[UUID, ArchivedJob] = {}
        self.deleted: set[UUID] = set()
        """Jobs that an operator took away for good: a repeated enqueue does not bring them back."""
        self.hints: list[Hint] = []
        """What listeners hear when the lock is let go."""
        self._by_state: dict[State, dict[UUID, Job]] = {state: {} for state in State}

    def put(self, job: Job) -> Job:
        """Store a job, new or changed."""
        before = self.jobs.get(job.id)
        if before is not None:
            del self._by_state[before.state][job.id]
        self.jobs[job.id] = job
        self._by_state[job.state][job.id] = job
        return job

    def remove(self, job_id: UUID) -> None:
        """Forget a job and its history. Its keys stay for their window."""
        job = self.jobs.pop(job_id)
        del self._by_state[job.state][job_id]
        self.attempts.pop(job_id, None)
        self.reviewed_at.pop(job_id, None)
        self.letters.pop(job_id, None)
        self.logs.pop(job_id, None)

    def in_state(self, *states: State) -> Iterator[Job]:
        for state in states:
            yield from self._by_state[state].values()

    def tell(self, audit: Audit, now: datetime) -> None:
        """Add a row to the audit; none is ever changed or removed."""
        self.audit.append(kept(audit)._replace(at=now))
        self.seals.append(sealed(self.seals[-1] if self.seals else None, len(self.audit), self.audit[-1]))

    def hint_work(self, job: Job) -> None:
        """Tell workers of a job that may be due, once for each place it could wait in."""
        hint = WorkHint(job.queue, job.priority)
        if job.state is State.PENDING and hint not in self.hints:
            self.hints.append(hint)


def turn(job: Job) -> tuple[int, datetime, UUID]:
    """A job's place in the line: priority, then age."""
    return job.priority, job.run_at, job.id
