"""What a worker must know of the app it works for. The app stands a layer above, so it is seen through this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from rota._core.alert import Alert
from rota._core.queue import Queue
from rota.current import RunningJob
from rota.schedule import Schedule
from rota.stores.contract import Store
from rota.task import Task

CallNext: TypeAlias = Callable[[], Awaitable[Any]]
Middleware: TypeAlias = Callable[[RunningJob, CallNext], Awaitable[Any]]
"""`async def timed(job, call_next): ...` runs around every handler and returns what `await call_next()` gave."""


class WorkerSettings(Protocol):
    """The settings that a worker reads; seconds, but for the lanes."""

    @property
    def lanes(self) -> Mapping[str, int | str]: ...
    @property
    def lease(self) -> float: ...
    @property
    def beat(self) -> float: ...
    @property
    def poll(self) -> float: ...
    @property
    def idle_poll(self) -> float: ...
    @property
    def grace(self) -> float: ...
    @property
    def stall(self) -> float: ...
    @property
    def stop_grace(self) -> float: ...
    @property
    def schedules(self) -> bool: ...
    @property
    def maintenance(self) -> tuple[str, ...]: ...
    @property
    def code_version(self) -> str | None: ...
    @property
    def crash_limit(self) -> int: ...


class Opened(Protocol):
    """A resource: opened before the first job, closed after the last."""

    name: str

    async def open(self) -> Any: ...
    async def close(self) -> None: ...


class Host(Protocol):
    """The app, as a worker sees it."""

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]: ...
    @property
    def schedules(self) -> Mapping[str, Schedule]: ...
    @property
    def queues(self) -> Mapping[str, Queue]: ...
    @property
    def store(self) -> Store: ...
    @property
    def settings(self) -> WorkerSettings: ...
    @property
    def resources(self) -> Sequence[Opened]: ...
    @property
    def middleware(self) -> Sequence[Middleware]: ...
    @property
    def code_version(self) -> str | None: ...
    @property
    def alerts(self) -> Sequence[Callable[[Alert], Any]]: ...
