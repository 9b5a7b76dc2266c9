"""Suspects: which job is to blame when a process dies, and when a whole task is.

A process that dies takes every job in it along, and nobody can tell which one
killed it. So all of them are *suspects*: each runs next alone in a child process.
The innocent end there as if nothing had happened, with the attempt they lost given
back. The guilty one kills only its own child, and its losses are counted.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from rota._core.failure import MESSAGE_LIMIT, STACK_LIMIT, ErrorClass, Failure, clip, clip_head, storable
from rota._core.job import Job

SUSPECT_AFTER = 2
"""So many lost leases in a row make a suspect; a machine or a network may be to blame for the first."""

_WORDS = {
    "SIGSEGV": "a segmentation fault",
    "SIGBUS": "a bus error",
    "SIGABRT": "it aborted itself",
    "SIGFPE": "an arithmetic fault",
    "SIGILL": "an illegal instruction",
    "SIGKILL": "killed from outside, most likely because memory ran out",
    "SIGXCPU": "it used more processor time than it may",
    "SIGTERM": "told to end from outside",
}


def suspect(job: Job) -> bool:
    """Whether a job must run alone: its process died with it, or its lease was lost again and again."""
    if not job.losses:
        return False
    return job.error_class == ErrorClass.CRASH or (
        job.error_class == ErrorClass.LOST and job.losses >= SUSPECT_AFTER
    )


class Death(NamedTuple):
    """What is known of a process that died with jobs in it."""

    pid: int
    exit_code: int | None = None
    signal: int | None = None
    seconds: float | None = None
    """How long the job had run."""
    memory: int | None = None
    """Bytes that it held, at most or when it was last seen."""
    tick_age: float | None = None
    """How long its event loop had stood still."""
    log: tuple[str, ...] = ()
    """The last lines that were logged there."""
    stack: str = ""
    """Where its threads were, as far as it could still say."""

    @property
    def cause(self) -> str:
        """In one word: `SIGSEGV`, `exit code 3`."""
        if self.signal is not None:
            return _signal_name(self.signal)
        return "an unknown end" if self.exit_code is None else f"exit code {self.exit_code}"

    def summary(self) -> str:
        """In one sentence."""
        said = _WORDS.get(self.cause)
        how = f"was ended by {self.cause}" if self.signal is not None else f"ended with {self.cause}"
        after = "" if self.seconds is None else f" after {self.seconds:.1f} s"
        return f"process {self.pid} {how}{after}" + (f" ({said})" if said else "")

    def report(self) -> str:
        """All of it, for the attempt's row."""
        lines = [self.summary()]
        if self.memory is not None:
            lines.append(f"memory: {self.memory / 1024**2:,.0f} MB")
        if self.tick_age is not None:
            lines.append(f"its event loop had stood still for {self.tick_age:.1f} s")
        if self.log:
            lines += ["last lines of its log:", *(f"  {line}" for line in self.log)]
        if self.stack:
            lines += ["its last words:", self.stack.rstrip()]
        return clip_head(storable("\n".join(lines)), STACK_LIMIT)

    def failure(self, *, alone: bool) -> Failure:
        """The death as the failure of an attempt that was alone in the process, or was not."""
        what = f"it killed its child process: {self.summary()}"
        if not alone:
            what = (
                f"its worker died with it: {self.summary()}. It runs alone next; this attempt is not counted"
            )
        return Failure(ErrorClass.CRASH, self.cause, clip(storable(what), MESSAGE_LIMIT), self.report())


class Crash(NamedTuple):
    """A job that killed its own child process: one point against its task."""

    task: str
    code_version: str
    job_id: UUID
    version: int
    """The job's version at the claim."""
    what: str
    at: datetime | None = None
    """None: now, by the store's clock."""


class ParkedTask(NamedTuple):
    """A task none of whose jobs is begun, because too many of them killed their process."""

    task: str
    code_version: str
    crashes: int
    """How many jobs it was."""
    what: str
    """The last of their deaths."""
    parked_at: datetime

    @property
    def reason(self) -> str:
        """What is written on its jobs."""
        return (
            f"the task {self.task} is parked: {self.crashes} of its jobs killed their process under code version "
            f"{self.code_version}. Deploy a repaired version, or `rota tasks release {self.task}`"
        )


def too_many(crashes: Iterable[Crash], limit: int) -> bool:
    """Whether so many different jobs of a task crashed that the task is to blame; 0 means never."""
    return limit > 0 and len({crash.job_id for crash in crashes}) >= limit


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
