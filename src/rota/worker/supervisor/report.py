"""The report on a child process that ended: how it ended, and what it was doing then."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import Enum
from uuid import UUID


class Ending(Enum):
    """Why the supervisor ended a child itself."""

    OVERRUN = "overrun"  # a job was past its timeout and its grace, and the child could not stop it
    CANCEL = "cancel"  # a job was to be cancelled, and the child could not stop it
    FENCED = "fenced"  # its session is over, so its jobs are others', and it could not stop them
    FROZEN = "frozen"  # the whole process was stopped (SIGSTOP) for longer than its lease
    STOP = "stop"  # it did not end in time when it was told to


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job that had begun in the child and had not ended."""

    job_id: UUID
    version: int
    task: str
    seconds: float
    """How long it had been running."""
    on_loop: bool
    """Whether it kept the event loop in this moment; else it waited, or ran in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashReport:
    """What is known of a child that ended without a goodbye."""

    number: int
    """Which of the children it was; the first is 1."""
    pid: int
    session: UUID | None
    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None
    ended_for: Ending | None
    """None: nobody here ended it."""
    culprits: tuple[UUID, ...]
    """The jobs because of which the supervisor ended it."""
    running: tuple[Running, ...]
    begun: frozenset[tuple[UUID, int]]
    """Jobs (and their versions) that began lately, also those whose end was not written: the others never began."""
    tick_age: float | None
    """Seconds since the event loop turned last."""
    rss: int | None
    """Bytes of memory when it was last looked at."""
    stack: str
    """The Python stacks of its last moment, where there was time to write them."""
    last_lines: tuple[str, ...]
    """The last lines that it logged."""

    @property
    def how(self) -> str:
        """How it ended, in words: `was killed by SIGKILL`, `exited with code 1`."""
        if self.signal is None:
            return f"exited with code {self.exit_code}"
        try:
            name = signal.Signals(self.signal).name
        except ValueError:  # a real-time signal has no name
            name = f"signal {self.signal}"
        return f"was killed by {name}"

    def was_running(self, job_id: UUID, version: int) -> bool:
        """Whether the job had begun there and not ended."""
        return any(run.job_id == job_id and run.version == version for run in self.running)

    def had_begun(self, job_id: UUID, version: int) -> bool:
        """Whether the job's code had begun to run there, ended or not."""
        return (job_id, version) in self.begun or self.was_running(job_id, version)
