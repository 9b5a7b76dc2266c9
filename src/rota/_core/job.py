"""What a job is: its states, its stored record, and the record of one that is about to be stored."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 100


class State(StrEnum):
    """Where a job is in its life; docs/lifecycle.md draws the arrows."""

    PENDING = "pending"  # due at run_at: a first try, a retry or a snooze alike
    BLOCKED = "blocked"  # waits for other jobs
    HELD = "held"  # set aside by a person
    RUNNING = "running"  # owned by one session
    COMPLETED = "completed"
    PARTIAL = "partial"  # completed, some of its items failed
    DEAD = "dead"  # out of attempts, or beyond help; waits for review
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({State.COMPLETED, State.PARTIAL, State.DEAD, State.CANCELLED})
UNSTARTED = frozenset({State.PENDING, State.BLOCKED, State.HELD})


class Scope(StrEnum):
    """How long a `unique` key keeps other jobs out."""

    STARTED = "started"  # until its job starts: a change made while it runs gets a job of its own
    FINISHED = "finished"  # until its job is terminal
    WINDOW = "window"  # until a moment, whatever its job does


class OnDuplicate(StrEnum):
    """What happens to the waiting job when a second one with its `unique` key arrives."""

    KEEP = "keep"  # the waiting job stays as it is
    REPLACE = "replace"  # it gets the new arguments
    RESCHEDULE = "reschedule"  # it moves to the new run_at
    MERGE = "merge"  # the new arguments are laid over the old ones
    REJECT = "reject"  # the second enqueue is an error


class NewJob(NamedTuple):
    """A job that is checked and ready to be stored. Whatever is None takes the store's default.

    Times are given as a `delay` in seconds (added to the store's clock) or as an
    absolute `run_at`; the store's clock is the only one that counts.
    """

    id: UUID
    task: str
    payload_json: str = "{}"
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    max_attempts: int = 5
    delay: float = 0.0
    run_at: datetime | None = None
    deadline_in: float | None = None
    """Seconds from now after which the job must not start any more."""
    timeout: float | None = None
    tenant: str | None = None
    subject: str | None = None
    external_id: str | None = None
    key: str | None = None
    key_window: float = 86_400.0
    """Seconds that `key` is remembered; never less than its job lives."""
    unique_key: str | None = None
    unique_scope: Scope = Scope.STARTED
    unique_window: float | None = None
    on_duplicate: OnDuplicate = OnDuplicate.KEEP
    gate: str | None = None
    correlation_id: str | None = None
    """None means that the job starts a correlation of its own, named by its id."""
    parent_id: UUID | None = None
    tags: tuple[str, ...] = ()
    created_by: str | None = None
    category: str | None = None
    payload_version: str | None = None
    headers_json: str | None = None
    held: bool = False

    @property
    def keyed(self) -> bool:
        """Whether storing it must look at other jobs first."""
        return self.key is not None or self.unique_key is not None


Row: TypeAlias = "tuple[UUID, str]"
"""The id and the payload of a job that is in all else like others."""


class Job(NamedTuple):
    """One unit of work, as the store last saw it.

    Jobs never change in place: the worker decides a `Transition`, the store
    applies it, and the next read gives a new `Job`. (A named tuple, because a
    worker builds tens of thousands a second of them.)
    """

    id: UUID
    version: int
    """The fence: grows with every transition; a write that names an older one changes nothing."""
    state: State
    task: str
    queue: str
    priority: int
    payload_json: str
    attempt: int
    """Executions begun, this one included; a snooze gives its one back."""
    max_attempts: int
    snoozes: int
    losses: int
    """Attempts that ended because their worker disappeared."""
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    claimed_at: datetime | None = None
    """When the latest attempt began."""
    finished_at: datetime | None = None
    deadline: datetime | None = None
    timeout: float | None = None
    cancel_requested_at: datetime | None = None
    session_id: UUID | None = None
    tenant: str | None = None
    subject: str | None = None
    external_id: str | None = None
    key: str | None = None
    unique_key: str | None = None
    unique_scope: str | None = None
    gate: str | None = None
    parked: str | None = None
    """Why claims pass over it for now (another job holds its gate, …)."""
    correlation_id: str | None = None
    parent_id: UUID | None = None
    tags: tuple[str, ...] = ()
    created_by: str | None = None
    category: str | None = None
    payload_version: str | None = None
    headers_json: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    reason: str | None = None
    """Why it was cancelled, held, parked or snoozed."""
    superseded_by: UUID | None = None
    result_json: str | None = None
    review: str | None = None
    """Of a dead job: where its review stands."""

    @property
    def payload(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.payload_json)
        return value

    @property
    def result(self) -> Any:
        return None if self.result_json is None else json.loads(self.result_json)

    @property
    def correlation(self) -> str:
        return self.correlation_id or str(self.id)

    @property
    def fence(self) -> int:
        """A number that grows with every attempt: pass it to outside systems that can refuse older ones."""
        return self.version

    @property
    def duration(self) -> timedelta | None:
        if self.claimed_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.claimed_at

    @property
    def schedule(self) -> str | None:
        """The schedule that made it, if one did."""
        headers: dict[str, str] = json.loads(self.headers_json or "{}")
        return headers.get("rota.schedule")

    @property
    def tick(self) -> datetime | None:
        """The moment for which its schedule made it."""
        headers: dict[str, str] = json.loads(self.headers_json or "{}")
        text = headers.get("rota.tick")
        return None if text is None else datetime.fromisoformat(text)

    def label(self, now: datetime) -> str:
        """The state in the words people use: scheduled, retrying, snoozed and parked are kinds of pending."""
        if self.state is State.RUNNING and self.cancel_requested_at is not None:
            return "cancelling"
        if self.state is not State.PENDING:
            return self.state.value
        if self.parked is not None:
            return "parked"
        if self.attempt > 0:
            return "retrying"
        if self.run_at > now:
            return "snoozed" if self.snoozes else "scheduled"
        return "pending"
