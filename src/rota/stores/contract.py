"""The promises of a store, in small protocols of job verbs. Conformance tests quote the docstrings.

Every method is one atomic step for each job it touches, and safe to repeat
after a lost answer. Time is the store's own clock, in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from rota._core.actions import Audit, Change
from rota._core.job import Job, NewJob, Row, State
from rota._core.job_filter import JobFilter as JobFilter  # noqa: PLC0414 - asked of stores, so known here too
from rota._core.outcome import Transition
from rota._core.task_spec import TaskSpec
from rota.stores.dead_letter_contract import Account
from rota.stores.explain_contract import Standings
from rota.stores.numbers_contract import Numbers
from rota.stores.pressure_contract import Beside
from rota.stores.retention_contract import Retention, Tidied
from rota.stores.schedule_contract import Schedules
from rota.stores.session_contract import Beat as Beat  # noqa: PLC0414 - what follows is asked for here as before
from rota.stores.session_contract import SessionRecord as SessionRecord  # noqa: PLC0414
from rota.stores.session_contract import Sessions
from rota.stores.session_contract import SessionStart as SessionStart  # noqa: PLC0414
from rota.stores.suspect_contract import Suspects
from rota.stores.tally_contract import Tallies
from rota.stores.transaction_contract import OwnTransaction


class Stored(StrEnum):
    """What became of one enqueue."""

    CREATED = "created"
    DUPLICATE = "duplicate"  # a job with its key is there; `id` names it
    CONFLICT = "conflict"  # a job with its key but other arguments is there
    REPLACED = "replaced"
    RESCHEDULED = "rescheduled"
    MERGED = "merged"
    REJECTED = "rejected"  # a job with its unique key is there, and the policy says no


class Enqueued(NamedTuple):
    """The answer for one new job: which job stands for it now."""

    id: UUID
    stored: Stored

    @property
    def created(self) -> bool:
        return self.stored is Stored.CREATED


class Answer(StrEnum):
    """What became of one conditional write."""

    APPLIED = "applied"
    ALREADY = "already"  # this very claim was settled before: a lost answer, repeated
    FENCED = "fenced"  # the job has moved on; nothing was changed
    BUSY = "busy"  # an open transaction of somebody holds its unique key; nothing was changed: settle it again later


class Settled(NamedTuple):
    """The answer for one transition. `state` is the job's now (None: the job is gone)."""

    id: UUID
    answer: Answer
    state: State | None


class Wanted(NamedTuple):
    """What a claim asks for."""

    limit: int
    queues: tuple[str, ...] | None = None
    """None: every queue."""
    tasks: tuple[str, ...] | None = None
    """None: every task."""
    tenant: str | None = None
    """None: every tenant."""


class Attempt(NamedTuple):
    """One attempt that did not succeed."""

    job_id: UUID
    version: int
    """The job's version at the claim."""
    attempt: int
    outcome: str
    error_class: str
    error_type: str
    message: str
    stack: str | None
    session_id: UUID | None
    started_at: datetime | None
    ended_at: datetime


class Count(NamedTuple):
    """How many unfinished or dead jobs share a queue, task and state."""

    queue: str
    task: str
    state: State
    jobs: int
    oldest: datetime | None
    """When the first of them was due, if they are pending."""
    retrying: int = 0
    """Of those that are pending, how many wait for another attempt."""


class Finding(NamedTuple):
    """One line of `rota doctor`."""

    level: str
    """ok, warn or bad."""
    what: str
    fix: str = ""


class PrivateFinding(Finding):
    """One that tells where the store is, which concerns those who look after it."""

    __slots__ = ()


class WorkHint(NamedTuple):
    """Something may be due in this queue."""

    queue: str
    priority: int


class CancelHint(NamedTuple):
    """Somebody asked to cancel this job."""

    job_id: UUID


class ResyncHint(NamedTuple):
    """Hints may have been missed: look at everything."""


class DeafHint(NamedTuple):
    """No hints arrive for now: poll oftener until a `ResyncHint` comes."""


Hint: TypeAlias = WorkHint | CancelHint | ResyncHint | DeafHint


class Jobs(Protocol):
    """What every store promises of jobs."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store each job durably, or say which job stands for it already; answers in order.

        Repeating an enqueue with the same ids changes nothing, even when a job
        has meanwhile finished or was deleted: its answer is again `created`.
        """
        ...

    async def claim(self, wanted: Wanted, *, session: UUID) -> list[Job]:
        """Give up to `wanted.limit` due jobs to `session`, by priority, then by age.

        A job has one owner at a time. Never waits for work, and may answer
        with fewer jobs than are due. An ended session gets none.
        """
        ...

    async def settle(self, transitions: Sequence[Transition]) -> list[Settled]:
        """Apply each transition whose version still holds; say what became of each, in order.

        `applied`; `already` when this very claim was settled before (a lost
        answer, repeated); `fenced` when the job has moved on; `busy` when it
        goes back to waiting and somebody's open transaction holds its unique
        key, so that it must be settled again. None of the four is an error, and
        one bad or busy transition never stops the others.
        """
        ...

    async def exchange(
        self, transitions: Sequence[Transition], wanted: Wanted, *, session: UUID
    ) -> tuple[list[Settled], list[Job]]:
        """Settle, then claim, in one round trip where the store can."""
        ...

    async def next_due(self, queues: tuple[str, ...] | None = None) -> float | None:
        """Seconds until the next waiting job is due (0: now), or None when nothing waits."""
        ...

    async def get(self, job_ids: Sequence[UUID]) -> list[Job]:
        """The jobs with these ids that exist, in any state, history included. Strongly consistent."""
        ...

    async def find(self, wanted: JobFilter) -> list[Job]:
        """The jobs that match, newest first (or oldest first, or most urgent first), at most `limit`.

        What no index answers is looked for job by job: `SearchTooWide` when that takes too long,
        `SearchesBusy` when too many others look.
        """
        ...

    async def attempts(self, job_id: UUID, *, limit: int | None = None) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first; with a limit only the newest of them."""
        ...

    async def counts(self) -> list[Count]:
        """How many unfinished and dead jobs there are; of those that wait, and of the dead, up to 100,000."""
        ...

    async def change(self, change: Change, audit: Audit) -> Settled:
        """Apply an operator's change if the version still holds, and record it in the audit: both or neither."""
        ...

    async def audit(
        self, job_id: UUID | None = None, *, about: str | None = None, limit: int = 50
    ) -> list[Audit]:
        """The audit trail, newest first: of a job, of something else (`about`), or of all."""
        ...


class Tasks(Protocol):
    """What every store promises of the registry."""

    async def publish(self, tasks: Sequence[TaskSpec], audit: Audit | None = None) -> None:
        """Make these tasks known; what is known of others stays. Of a task, the newest code that is at work wins.

        Where a person does it, the audit is recorded with it, once.
        """
        ...

    async def tasks(self) -> list[TaskSpec]:
        """Every task that was ever published."""
        ...


class Upkeep(Protocol):
    """What keeps a store healthy."""

    async def tidy(self, retention: Retention) -> Tidied:
        """Remove what retention lets go and prepare room for what comes. Safe to run twice at once."""
        ...

    async def unpark(self) -> int:
        """Put parked jobs whose obstacle is gone back on the list; how many."""
        ...


class Store(
    Jobs, Sessions, Tasks, Upkeep, Schedules, Suspects, Standings, Numbers, Account, Beside, Tallies, Protocol
):
    """A whole store."""

    name: str

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    async def open(self) -> None:
        """Make sure that the store can be reached and fits this code. Idempotent; other verbs open it by themselves."""
        ...

    async def migrate(self, *, to: int | None = None) -> list[str]:
        """Bring the schema up to date, or up to version `to`; the names of what was applied. Never goes back."""
        ...

    async def close(self) -> None:
        """Let go of every connection of the calling event loop."""
        ...


class Wakeable(Protocol):
    """The ability to tell workers of new work before they ask."""

    async def listen(self, on_hint: Callable[[Hint], None]) -> None:
        """Call `on_hint` for whatever happens, until cancelled. Hints may be lost; polling finds what they missed."""
        ...


class Streaming(Protocol):
    """The ability to store many jobs while they are still being made."""

    async def enqueue_stream(self, like: NewJob, rows: Iterable[Row]) -> list[UUID]:
        """Store a job like `like` (which has no keys) for each of `rows`, as they come; answers their ids.

        All of them or none, also when `rows` raises.
        """
        ...


class Transactional(Protocol):
    """The ability to store jobs inside a transaction of the caller's, and to end them inside one of its own."""

    def enqueue_within(self, tx: Any, jobs: Sequence[NewJob]) -> Any:
        """Store jobs on the caller's connection: the answers, or an awaitable of them where the connection is async."""
        ...

    def own_transaction(self, job: Job, *, rehearsal: bool = False) -> OwnTransaction:
        """A transaction for the handler of this claimed job; nothing is opened before its first block.

        In a `rehearsal` nobody has claimed the job, so it is not asked for.
        """
        ...
