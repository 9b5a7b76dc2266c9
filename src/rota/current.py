"""What runs now: the job a handler belongs to, and what the jobs enqueued from here inherit."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from rota._core.effects import effect_key
from rota._core.ids import public_id
from rota._core.job import Job
from rota.errors import Cancel, NotInJob, NotSupported

if TYPE_CHECKING:
    from rota.stores.contract import Store
    from rota.stores.transaction_contract import OwnTransaction


class RunningJob:
    """The job that the calling handler runs for. Made by the worker, one for each attempt."""

    __slots__ = ("cancel_requested", "job", "work")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.work: OwnTransaction | None = None
        """Its transaction, once it asked for one."""
        self.cancel_requested = False
        """Somebody asked to stop this job. A handler in a thread looks here, or calls `stop_if_cancelled()`."""

    @property
    def id(self) -> UUID:
        return self.job.id

    @property
    def public_id(self) -> str:
        """The id as people read it aloud."""
        return public_id(self.job.id)

    @property
    def task(self) -> str:
        return self.job.task

    @property
    def queue(self) -> str:
        return self.job.queue

    @property
    def priority(self) -> int:
        return self.job.priority

    @property
    def payload(self) -> dict[str, Any]:
        """The stored arguments, as plain JSON values."""
        return self.job.payload

    @property
    def attempt(self) -> int:
        """1 for the first execution."""
        return self.job.attempt

    @property
    def max_attempts(self) -> int:
        return self.job.max_attempts

    @property
    def last_attempt(self) -> bool:
        """Whether a failure now is the end of this job."""
        return self.job.attempt >= self.job.max_attempts

    @property
    def tenant(self) -> str | None:
        return self.job.tenant

    @property
    def subject(self) -> str | None:
        return self.job.subject

    @property
    def external_id(self) -> str | None:
        return self.job.external_id

    @property
    def key(self) -> str | None:
        return self.job.key

    @property
    def correlation_id(self) -> str:
        """The correlation this job belongs to; one that started its own is named by its id."""
        return self.job.correlation

    @property
    def parent_id(self) -> UUID | None:
        return self.job.parent_id

    @property
    def tags(self) -> tuple[str, ...]:
        return self.job.tags

    @property
    def created_by(self) -> str | None:
        return self.job.created_by

    @property
    def category(self) -> str | None:
        return self.job.category

    @property
    def created_at(self) -> datetime:
        return self.job.created_at

    @property
    def run_at(self) -> datetime:
        return self.job.run_at

    @property
    def deadline(self) -> datetime | None:
        return self.job.deadline

    @property
    def timeout(self) -> float | None:
        return self.job.timeout

    @property
    def fence(self) -> int:
        """A number that grows with every attempt: pass it to outside systems that can refuse older ones."""
        return self.job.fence

    @property
    def effect_key(self) -> str:
        """The idempotency key for what this job does outside: the same at every attempt and when it is reprocessed.

        36 characters, a UUID. For a job with several effects, `effect_key_for()` gives each its own.
        """
        return effect_key(self.job)

    def effect_key_for(self, part: str) -> str:
        """The key of one of several effects, such as `effect_key_for("charge")`; a UUID as stable as `effect_key`."""
        return effect_key(self.job, part)

    @property
    def schedule(self) -> str | None:
        """The schedule that made this job, if one did."""
        return self.job.schedule

    @property
    def tick(self) -> datetime | None:
        """The time for which its schedule made this job. Work by it, not by the clock, and a backfill is right."""
        return self.job.tick

    @property
    def log(self) -> JobLog:
        """The log of this job: `current_job().log.info("fetched %d rows", n)`. `rota jobs logs` shows it."""
        return JobLog(self)

    def transaction(self) -> OwnTransaction:
        """A connection to the database of the jobs, whose work is committed together with this job's end.

        `async with` gives a coroutine a psycopg `AsyncConnection`, `with` gives a
        plain function a psycopg `Connection`. Nothing is committed before the
        handler has returned; then its rows and the completion of the job are one
        commit. If it raises, crashes or loses its job, none of it ever was. Every
        block works in the same transaction, and is undone by itself if it raises.
        """
        if self.work is None:
            store = home.get()
            if store is None:
                raise NotInJob("current_job().transaction() works in a task that a worker runs.")
            make: Callable[[Job], OwnTransaction] | None = getattr(store, "own_transaction", None)
            if make is None:
                raise NotSupported(
                    store.name,
                    "commit your rows together with the end of a job",
                    "Keep jobs in the PostgreSQL of your rows, or write a handler that can be repeated.",
                )
            self.work = make(self.job)
        return self.work

    def stop_if_cancelled(self) -> None:
        """End this attempt as cancelled if somebody asked for that; for handlers that run in threads."""
        if self.cancel_requested:
            raise Cancel(self.job.reason)

    def __repr__(self) -> str:
        return f"<RunningJob {self.task} {self.id} attempt {self.attempt} of {self.max_attempts}>"


class JobLog:
    """Says something of a job: to its own log, whatever logging is set to, and to the logger `rota.job`."""

    __slots__ = ("_job",)

    def __init__(self, job: RunningJob) -> None:
        self._job = job

    def log(self, level: int, message: object, *args: object) -> None:
        """Say it at a level of `logging`; `args` are put into the message as `logging` does."""
        text = str(message) % args if args else str(message)
        keep = keeper.get()
        if keep is not None:
            keep(self._job, level, text)
        own.log(level, "%s", text, stacklevel=3)

    def debug(self, message: object, *args: object) -> None:
        self.log(logging.DEBUG, message, *args)

    def info(self, message: object, *args: object) -> None:
        self.log(logging.INFO, message, *args)

    def warning(self, message: object, *args: object) -> None:
        self.log(logging.WARNING, message, *args)

    def error(self, message: object, *args: object) -> None:
        self.log(logging.ERROR, message, *args)

    def exception(self, message: object, *args: object) -> None:
        """An error, with the stack of the exception that is being handled."""
        text = str(message) % args if args else str(message)
        self.log(logging.ERROR, f"{text}\n{traceback.format_exc().rstrip()}")

    __call__ = info


own = logging.getLogger("rota.job")
"""What jobs say by `current_job().log`; it is not captured a second time."""

running: ContextVar[RunningJob | None] = ContextVar("rota_running_job", default=None)
keeper: ContextVar[Callable[[RunningJob, int, str], None] | None] = ContextVar(
    "rota_log_keeper", default=None
)
"""Who keeps the lines of jobs that run here. The worker says so, for all that it runs."""

home: ContextVar[Store | None] = ContextVar("rota_home", default=None)
"""Where the jobs that run here are kept. The worker says so, for all that it runs."""


def current_job() -> RunningJob:
    """The job that this code runs for."""
    job = running.get()
    if job is None:
        raise NotInJob(
            "current_job() was asked for outside a running job. It works inside a task that a worker runs, "
            "and in what that task calls; a plain call of the function is no job."
        )
    return job


class Inherited(NamedTuple):
    """What an enqueue made here gets unless it says otherwise."""

    correlation_id: str | None = None
    tenant: str | None = None
    created_by: str | None = None
    parent_id: UUID | None = None


class _Ambient(NamedTuple):
    values: Inherited
    inside: RunningJob | None
    """The job in which the context was opened: a context opened around a worker does not reach into its jobs."""


NOTHING = Inherited()
_ambient: ContextVar[_Ambient | None] = ContextVar("rota_context", default=None)


def inherited() -> Inherited:
    """What the surrounding `context()` and the running job hand on; the nearer one wins."""
    job, ambient = running.get(), _ambient.get()
    if ambient is not None and ambient.inside is job:
        return ambient.values
    return NOTHING if job is None else _of(job.job)


def _of(job: Job) -> Inherited:
    return Inherited(job.correlation, job.tenant, job.created_by, job.id)


@contextmanager
def context(
    *, correlation_id: str | None = None, tenant: str | None = None, created_by: str | None = None
) -> Iterator[None]:
    """Give every job enqueued inside this block a correlation, a tenant or an author.

    What is not given is taken from the block or the job around it; an empty
    text takes it away. Options given to `using()` win.
    """
    around = inherited()
    values = Inherited(
        around.correlation_id if correlation_id is None else correlation_id,
        around.tenant if tenant is None else tenant,
        around.created_by if created_by is None else created_by,
        around.parent_id,
    )
    token = _ambient.set(_Ambient(values, running.get()))
    try:
        yield
    finally:
        _ambient.reset(token)
