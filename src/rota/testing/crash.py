"""A crash, simulated: where it can happen, and what a worker's process looks like to others once it has happened."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from rota._core.job import Job


class SimulatedCrash(BaseException):
    """Ends a handler where its process would have died. No `except Exception` stops it; nor should any other."""


class Point(NamedTuple):
    """A moment at which a process may die."""

    kind: str
    """begun, line, before, after, returned or settled."""
    what: str = ""
    """The line `file:number`, or the name of what was about to be called, or had been."""
    detail: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "begun":
                return "before the first line of the task"
            case "returned":
                return "after the function had ended, before Rota wrote that down"
            case "settled":
                return "after Rota had written down how it ended"
            case "line":
                return f"before {self.what}" + (f": {self.detail}" if self.detail else "")
            case _:
                return f"{self.kind} {self.what}"


class Trap(Protocol):
    """Decides where the crash happens."""

    def about(self, job: Job) -> bool:
        """Whether the points of this job count."""
        ...

    def reach(self, point: Point) -> bool:
        """A point was reached. True: crash here, and nowhere after that."""
        ...


class Watch:
    """One attempt under a trap, in the worker that runs it."""

    def __init__(self, trap: Trap, crash: Callable[[], None]) -> None:
        self._trap, self._crash = trap, crash
        self.crashed = False

    def reach(self, point: Point) -> None:
        """Say that the handler is here now; raises SimulatedCrash if this is where its process dies."""
        if not self.crashed:
            if not self._trap.reach(point):
                return
            self.crashed = True
            self._crash()
        raise SimulatedCrash(str(point))


watching: ContextVar[Watch | None] = ContextVar("rota_crash_watch", default=None)
"""The watch over the job that this code runs for, if a crash is wanted in it."""


def reach(kind: str, what: str) -> None:
    """Say that the current job, if it is watched, is at this point."""
    watch = watching.get()
    if watch is not None:
        watch.reach(Point(kind, what))
