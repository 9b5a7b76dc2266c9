"""The bench: an app as a worker of the test kit sees it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from rota._core.job import Job
from rota.errors import NotInJob
from rota.resource import Resource
from rota.testing.crash import SimulatedCrash, Trap, Watch, watching
from rota.testing.tracing import Scope, Silence, undisturbed

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.current import RunningJob
    from rota.stores.contract import Store
    from rota.task import Task
    from rota.testing.line import Line
    from rota.worker.host import CallNext, Middleware

MEMORY = "memory"
AGES = 1e9
"""Seconds of a lease that no test outlives, however far it moves the clock."""
STEADY = {"lease": AGES, "beat": 5.0, "poll": 0.05, "idle_poll": 0.1, "grace": 5.0, "schedules": False}


class Errors:
    """What handlers raised, by job and claim: the store only keeps the words."""

    def __init__(self) -> None:
        self._raised: dict[tuple[UUID, int], BaseException] = {}
        self.dead: list[BaseException] = []
        """The crashes, which hold the frames of the dead handlers until those are buried."""

    def of(self, job: Job) -> BaseException | None:
        return self._raised.get((job.id, job.version))

    async def keep(self, running: RunningJob, call_next: CallNext) -> Any:
        """Middleware, outermost, so that it hears of the errors of all other middleware too."""
        try:
            return await call_next()
        except SimulatedCrash as crash:
            self.dead.append(crash)
            raise
        except BaseException as error:
            self._raised[running.job.id, running.job.version] = error
            raise


class Bench:
    """What a `Worker` needs of an app: its tasks, resources and middleware, with our line to the store."""

    def __init__(
        self, app: Rota, line: Line, errors: Errors, *, trap: Trap | None = None, scope: Scope | None = None
    ) -> None:
        self._app = app
        self.store = cast("Store", line)
        self.settings = app.settings.model_copy(update=STEADY)
        self.schedules: Mapping[str, Any] = {}
        """None tick: a test enqueues what it wants to see run."""
        self.resources = [Lent(resource) for resource in app.resources]
        self.middleware: Sequence[Middleware] = [errors.keep, *app.middleware]
        self.tasks: Mapping[str, Task[..., Any]] = app.tasks
        if trap is not None:
            watched = Watched(trap, line)
            self.middleware = [errors.keep, watched.outside, *app.middleware, watched.inside]
            self.tasks = {name: _crashing(task, scope or Scope()) for name, task in app.tasks.items()}
        elif line.name == MEMORY:
            self.tasks = {name: _here(task) for name, task in app.tasks.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


class Lent:
    """A resource for one worker of the kit: what is open or replaced already is used as it is, and left so."""

    def __init__(self, resource: Resource[Any]) -> None:
        self.name = resource.name
        self._resource = resource
        self._opened = False

    async def open(self) -> Any:
        try:
            return self._resource()
        except NotInJob:
            self._opened = True
            return await self._resource.open()

    async def close(self) -> None:
        if self._opened:
            await self._resource.close()


class Watched:
    """Middleware that puts a watch over the jobs that a trap is about."""

    def __init__(self, trap: Trap, line: Line) -> None:
        self._trap, self._line = trap, line

    async def outside(self, running: RunningJob, call_next: CallNext) -> Any:
        if not self._trap.about(running.job):
            return await call_next()
        watch = Watch(self._trap, self._line.crash)
        token = watching.set(watch)
        try:
            with undisturbed():
                return await call_next()
        finally:
            watching.reset(token)

    async def inside(self, _running: RunningJob, call_next: CallNext) -> Any:
        try:
            return await call_next()
        except SimulatedCrash:
            # The middleware around it dies with the handler, also where that ran in another thread.
            watch = watching.get()
            if watch is not None:
                Silence(watch).by_call()
            raise


def _here(task: Task[..., Any]) -> Task[..., Any]:
    """The task, run in this process, where the test's doubles are, whatever executor it asks for."""
    if task.process is None:
        return task
    twin = copy.copy(task)
    twin.executor = twin.process = None
    return twin


def _crashing(task: Task[..., Any], scope: Scope) -> Task[..., Any]:
    """The same task in this process, whose function can die on any line of the scope."""
    task.spec()  # reads the function's signature, which the twin then shares
    twin = copy.copy(task)
    twin.fn = scope.traced(task.fn, is_async=task.is_async)
    twin.executor = twin.process = None
    return twin
