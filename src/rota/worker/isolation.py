"""Isolation: which runs belong into a child process of their own, and their way there and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rota._core.failure import ErrorClass, Failure
from rota._core.outcome import Crashed, Outcome, Raised
from rota._core.process import Process
from rota._core.suspects import suspect
from rota.task import Task
from rota.worker.execution import Run
from rota.worker.host import Host

if TYPE_CHECKING:
    from rota.worker.executors.process.children import Children

FOR_SUSPECTS = Process(env=["*"])
"""Where a suspect runs whose task did not ask for a child process: it must find all that it finds in the worker."""


class Isolation:
    """Tasks that ask for it run in child processes, and so does every suspect. Costs nothing until one comes."""

    def __init__(
        self, seat: Callable[[Run], None], limit: Callable[[Run], None], end: Callable[[Run, Outcome], None]
    ) -> None:
        self.host: Host | None = None
        """The app, which the children must import."""
        self.children: Children | None = None
        self.on_crash: Callable[[Run, Failure], None] = _unheard
        """Hears of runs that killed a child process in which they were alone."""
        self._seat, self._limit, self._end = seat, limit, end

    def takes(self, run: Run, task: Task[..., Any]) -> bool:
        """Begin a run in a child process, if it belongs there. False: it runs in the worker."""
        if task.process is None and not suspect(run.job):
            return False
        children = self._make()
        place = None if children is None else children.place_for(task)
        if children is None or place is None:
            if task.process is None:
                return False
            message = f"{task.name} must run in a child process, and none can import it from {task.place}."
            self._end(run, Raised(Failure.because(ErrorClass.NON_RETRYABLE, message)))
            return True
        run.started = True
        self._seat(run)
        children.start(run, task.process or FOR_SUSPECTS, place)
        return True

    def stop(self, run: Run) -> None:
        """Tell a run's child that it should stop, if it has one."""
        if self.children is not None and run.started:
            self.children.stop(run)

    def kill(self, run: Run) -> bool:
        """End a run with its child and all that it started. False: it has none."""
        return self.children is not None and self.children.kill(run)

    async def close(self) -> None:
        if self.children is not None:
            await self.children.close()

    def _make(self) -> Children | None:
        if self.children is None and self.host is not None:
            from rota.worker.executors.process.children import Children

            self.children = Children(self.host, self._limit, self._ended)
        return self.children

    def _ended(self, run: Run, outcome: Outcome) -> None:
        self._end(run, outcome)
        if isinstance(outcome, Crashed):
            self.on_crash(run, outcome.failure)


def _unheard(run: Run, failure: Failure) -> None:
    """Nobody counts crashes here."""
