"""A run: one attempt of one job in this process, from the claim's answer to the settle's."""

from __future__ import annotations

from asyncio import Future
from asyncio import Task as AioTask
from datetime import datetime, timedelta
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Any

from rota._core.job import Job
from rota._core.outcome import Transition
from rota._core.retry import Retry
from rota.current import RunningJob

if TYPE_CHECKING:
    from rota.task import Task
    from rota.worker.executors.thread import Seat
    from rota.worker.lanes import Lane


class Stop(Enum):
    """Why a handler was told to stop. What its end then means differs."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"  # somebody asked
    SHUTDOWN = "shutdown"  # this worker ends; the job goes back
    LOST = "lost"  # the job is no longer ours; its end is nobody's business


class Run(RunningJob):
    """The handler's `current_job()`, and what the worker must know besides. One object, because one is made per job."""

    __slots__ = (
        "arrived",
        "carrier",
        "due",
        "ended",
        "lane",
        "seat",
        "seated",
        "started",
        "stop",
        "task_run",
        "took",
        "transition",
        "waiter",
        "written",
    )

    def __init__(self, job: Job, lane: Lane | None, arrived: float) -> None:
        self.job = job
        self.cancel_requested = False
        self.work = None
        self.lane = lane
        """None: it was found again by the heartbeat and takes no slot."""
        self.arrived = arrived
        """When the claim's answer came, by the monotonic clock."""
        self.task_run: Task[Any, Any] | None = None
        self.stop: Stop | None = None
        self.started = False
        self.ended = False
        self.seated = False
        """Whether it takes one of its lane's slots; a handler that ends at once takes none."""
        self.carrier: AioTask[None] | None = None
        """The asyncio Task of a handler that waits."""
        self.seat: Seat | None = None
        """The thread of a handler that is no coroutine."""
        self.waiter: Future[tuple[Any, BaseException | None]] | None = None
        """What middleware waits for while the thread runs."""
        self.due = 0.0
        """When its next deadline is, by the monotonic clock; 0 when it has none."""
        self.transition: Transition | None = None
        self.took = 0.0
        """Seconds from the claim's answer to its end."""
        self.written = False
        """Whether its end is in the store already: its own transaction has brought it there."""

    @property
    def retry(self) -> Retry:
        return Retry() if self.task_run is None else self.task_run.retry

    @property
    def limit(self) -> float | None:
        """How many seconds it may run: the job's own timeout, else its task's."""
        if self.job.timeout is not None or self.task_run is None:
            return self.job.timeout
        return self.task_run.timeout

    def store_time(self) -> datetime:
        """The store's clock now: when it gave the job away, and how long ago. No wall clock of ours counts."""
        given = self.job.claimed_at or self.job.updated_at
        return given + timedelta(seconds=monotonic() - self.arrived)
