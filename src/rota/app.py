"""Rota: the object users hold. It knows the tasks, the store, the settings, and what jobs share."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Self, TypeAlias, TypeVar, overload
from uuid import UUID

from rota._core.categories import Categories, Category
from rota._core.functions import is_async
from rota._core.ids import parse_id
from rota._core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, Job
from rota._core.payload_rules import PayloadRules, rules_from
from rota.current import RunningJob
from rota.errors import UnknownTask
from rota.handle import Handle
from rota.portal import Twin, running_portal
from rota.pressure import pressure_of
from rota.resource import Resource
from rota.task import AsyncTask, SyncTask, Task, refuse_twin

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Unpack

    from rota._core.alert import Alert
    from rota._core.durations import Duration
    from rota._core.process import Process
    from rota._core.queue import Queue
    from rota._core.retry import Retry
    from rota.config import Settings
    from rota.options import Options, Rule, Unique
    from rota.schedule import Schedule, Scheduling, When
    from rota.stores.contract import Store

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Middleware: TypeAlias = Callable[[RunningJob, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""What runs around every handler: `async def timed(job, call_next): ...; return await call_next()`."""


class MiddlewareList(list[Middleware]):
    """The middleware of an app, outermost first. Calling it adds one, so `@app.middleware` is a decorator."""

    def __call__(self, middleware: Middleware) -> Middleware:
        self.append(middleware)
        return middleware


class TaskDecorator(Protocol):
    """What `@app.task(...)` answers."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, fn: Callable[P, R], /) -> SyncTask[P, R]: ...


class Rota:
    """One list of work: tasks are registered on it, jobs are enqueued through it, workers run it.

    Without a `url` the settings decide (ROTA_URL, DATABASE_URL, rota.toml), and
    where nothing is said, an embedded PostgreSQL under `.rota/` is used. Nothing
    is opened before the first use.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        settings: Settings | None = None,
        store: Store | None = None,
        code_version: str | None = None,
        rules: Literal["strict", "warn", "off"] | PayloadRules = "warn",
        queues: Iterable[Queue] = (),
    ) -> None:
        self._url = url
        self._settings = settings
        self._store = store
        self._entered = 0
        self._opening = threading.Lock()
        self.tasks: dict[str, Task[..., Any]] = {}
        self.schedules: dict[str, Schedule] = {}
        self.resources: list[Resource[Any]] = []
        """In the order in which workers open them."""
        self.middleware = MiddlewareList()
        self.code_version = code_version
        self.rules = rules_from(rules)
        """What every job must carry, and must not."""
        self.categories = Categories()
        self.queues = {queue.name: queue for queue in queues}
        """What is expected of some of its queues."""
        self.pressure = pressure_of(self.queues.values(), lambda: self.store)
        """Their limits, if any has one."""
        self.alerts: list[Callable[[Alert], Any]] = []
        """What is called when something needs a person, such as a task that is parked."""

    @property
    def settings(self) -> Settings:
        """The settings, read once at first use."""
        if self._settings is None:
            from rota.config import Settings

            self._settings = Settings.load(url=self._url)
        return self._settings

    @property
    def store(self) -> Store:
        """The store, made at first use; it connects when it is first asked something."""
        if self._store is None:
            from rota.stores.observed import observed
            from rota.stores.opening import open_store

            with self._opening:  # two threads must not get a store each
                if self._store is None:
                    self._store = observed(open_store(self._url, self.settings))
        return self._store

    @overload
    def task(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]

    @overload
    def task(self, fn: Callable[P, R], /) -> SyncTask[P, R]: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        key: Rule | None = None,
        unique: Rule | Unique | None = None,
        serial: Rule | None = None,
        payload_version: str = "1.0",
        category: str | None = None,
        tags: Iterable[str] = (),
        executor: Literal["aio", "thread", "process"] | Process | None = None,
    ) -> TaskDecorator: ...

    def task(self, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as a task: `@app.task`, or `@app.task(queue="fast", retry=Retry(attempts=3))`.

        `key`, `unique` and `serial` name the parameter whose value is the key,
        or are functions of the task's arguments.
        """

        def register(function: Callable[..., Any]) -> Task[..., Any]:
            return self._register(function, options, sys._getframe(1).f_locals)  # noqa: SLF001 - hints of local types

        return register if fn is None else self._register(fn, options, sys._getframe(1).f_locals)  # noqa: SLF001

    def _register(
        self, fn: Callable[..., Any], options: Mapping[str, Any], around: Mapping[str, Any]
    ) -> Task[..., Any]:
        local = "<locals>" in getattr(fn, "__qualname__", "")
        kind = AsyncTask if is_async(fn) else SyncTask
        task: Task[..., Any] = kind(self, fn, **options, names=dict(around) if local else None)
        if task.name in self.tasks:
            refuse_twin(self.tasks[task.name], task)
        self.tasks[task.name] = task
        return task

    def schedule(
        self,
        when: When,
        /,
        *,
        name: str | None = None,
        tz: str = "UTC",
        jitter: Duration = 0,
        overlap: Literal["skip", "allow"] | None = None,
        misfire: Literal["skip", "last", "all"] = "last",
        cap: int = 100,
        grace: Duration = "1m",
        windows: Iterable[str] = (),
    ) -> Scheduling:
        """Run a task by itself: `@app.schedule("30 2 * * *", tz="Europe/Berlin")` over it, or `every("5m")`.

        With arguments: `app.schedule("0 6 * * MON", name="report-eu")(report, region="eu")`.
        `overlap` says what a tick does while the last one's job is unfinished,
        `misfire` what becomes of ticks that nobody took within `grace`.
        """
        from rota.schedule import Scheduling, declared

        caller = sys._getframe(1)  # noqa: SLF001 - two schedules of one name are told apart by their place
        given = declared(
            when,
            name=name,
            tz=tz,
            jitter=jitter,
            overlap=overlap,
            misfire=misfire,
            cap=cap,
            grace=grace,
            windows=windows,
        )
        place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        return Scheduling(
            lambda fn: self._register(fn, {}, caller.f_locals), self._add_schedule, given, place
        )

    def category(self, name: str, purpose: str = "", *, refs: Iterable[str | Iterable[str]] = ()) -> Category:
        """Make a category of your own known: `app.category("billing", refs=["invoice_id"])`.

        Where the rules ask for references, its jobs carry these; of a tuple of
        names one is enough.
        """
        return self.categories.add(name, purpose, refs)

    def _add_schedule(self, schedule: Schedule) -> None:
        from rota.schedule import refuse_twin

        if schedule.name in self.schedules:
            refuse_twin(self.schedules[schedule.name], schedule)
        self.schedules[schedule.name] = schedule

    def alert(self, hear: Callable[[Alert], T], /) -> Callable[[Alert], T]:
        """Call this function, async or not, in the worker that finds something a person should know: `@app.alert`."""
        self.alerts.append(hear)
        return hear

    @overload
    def resource(self, make: Callable[[], AsyncIterator[T]], /) -> Resource[T]: ...

    @overload
    def resource(self, make: Callable[[], Coroutine[Any, Any, T]], /) -> Resource[T]: ...

    def resource(self, make: Callable[[], Any], /) -> Resource[Any]:
        """Register what handlers share: an async generator that yields it once, or an async function returning it."""
        resource: Resource[Any] = Resource(make)
        self.resources.append(resource)
        return resource

    async def enqueue(
        self, task: str, payload: Mapping[str, Any] | None = None, **options: Unpack[Options]
    ) -> Handle[Any]:
        """Enqueue by the task's name; `payload` holds its arguments and is checked like a call."""
        found = self.tasks.get(task)
        if found is None:
            raise UnknownTask(task, self.tasks)
        return await found.using(**options).enqueue(**(payload or {}))

    def job(self, job_id: UUID | str) -> Handle[Any]:
        """The handle of a stored job, by its id in either form."""
        return Handle(
            self, job_id if isinstance(job_id, UUID) else parse_id(job_id), self._read_result, created=False
        )

    def _read_result(self, job: Job) -> Any:
        task = self.tasks.get(job.task)
        return job.result if task is None else task.read_result(job)

    async def open(self) -> None:
        """Make sure that the store can be reached and fits this code."""
        await self.store.open()

    async def migrate(self) -> list[str]:
        """Bring the store's schema up to date; the names of what was applied."""
        return await self.store.migrate()

    async def close(self) -> None:
        """Let go of every connection that this event loop and the sync verbs hold. The app can be used again."""
        if self._store is None:
            return
        await self._store.close()
        portal = running_portal()
        if portal is not None and portal.loop is not asyncio.get_running_loop():
            await asyncio.wrap_future(portal.submit(_closing(self._store)))

    enqueue_sync = Twin(enqueue, here=lambda _, options: options.get("tx") is not None)
    open_sync = Twin(open)  # noqa: A003 - the method above
    migrate_sync = Twin(migrate)
    close_sync = Twin(close)

    async def __aenter__(self) -> Self:
        await self.open()
        self._entered += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered -= 1
        if self._entered == 0:
            await self.close()

    @asynccontextmanager
    async def lifespan(self, _web: object = None) -> AsyncIterator[None]:
        """Open the app while a web application runs: `FastAPI(lifespan=app.lifespan)`, Starlette likewise."""
        async with self:
            yield

    def __repr__(self) -> str:
        where = self._store.name if self._store is not None else "not opened"
        return f"<Rota {len(self.tasks)} tasks, store {where}>"


async def _closing(store: Store) -> None:
    await store.close()
