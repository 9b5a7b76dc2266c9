"""A rehearsal: a stored job run here by a real worker, with nobody in the audience. The job itself stays as it is."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID

from rota._core.job import Job, NewJob, State
from rota._core.outcome import Transition
from rota.stores.contract import Answer, Beat, Enqueued, Settled, Store, Stored, Wanted
from rota.stores.opening import open_store
from rota.stores.watched_transaction import WatchedTransaction

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.stores.transaction_contract import OwnTransaction
    from rota.task import Task

QUIET = {"lease": 1e9, "beat": 5.0, "poll": 0.05, "idle_poll": 0.1, "grace": 0.0, "schedules": False}


class Rehearsed(NamedTuple):
    """How it went, and what would have been written."""

    transition: Transition
    took: float
    enqueued: Sequence[NewJob]
    undone: bool
    """Whether it worked in a transaction of its own, which was undone."""


class Stage:
    """A store with one job to give, as the real store has it. What the worker writes goes no further than here."""

    def __init__(self, store: Store, job: Job, real: Store) -> None:
        self.name = real.name
        self.ended: asyncio.Future[Transition] = asyncio.get_running_loop().create_future()
        self.undone = False
        """Whether the handler had a transaction of its own, which was undone."""
        self._store, self._job, self._real = store, job, real

    def __getattr__(self, verb: str) -> Any:
        if verb == "own_transaction":
            make = getattr(self._real, verb)  # AttributeError where the store has no such ability
            return lambda job: WatchedTransaction(make(job, rehearsal=True), self._undo)
        return getattr(self._store, verb)

    async def claim(self, wanted: Wanted, *, session: UUID) -> list[Job]:
        return [self._costumed(given) for given in await self._store.claim(wanted, session=session)]

    async def settle(self, transitions: Sequence[Transition]) -> list[Settled]:
        for transition in transitions:
            if not self.ended.done():
                self.ended.set_result(transition)
        return [Settled(move.job.id, Answer.APPLIED, move.to) for move in transitions]

    async def exchange(
        self, transitions: Sequence[Transition], wanted: Wanted, *, session: UUID
    ) -> tuple[list[Settled], list[Job]]:
        return await self.settle(transitions), await self.claim(wanted, session=session)

    async def _undo(self, own: OwnTransaction, transition: Transition) -> Settled:
        """A handler's own transaction works as any other, and is undone at its end."""
        await own.undo()
        self.undone = True
        [settled] = await self.settle([transition])
        return settled

    async def beat(self, session: UUID, **_: Any) -> Beat:  # noqa: ARG002 - the contract's signature
        return Beat(alive=True)

    def _costumed(self, given: Job) -> Job:
        """The job as it is stored, but running, and free of what would keep it from being run at all."""
        job = self._job
        begun = job.attempt + 1 if job.state in (State.PENDING, State.HELD, State.BLOCKED) else job.attempt
        return job._replace(
            state=State.RUNNING,
            attempt=max(1, begun),
            claimed_at=given.claimed_at,
            session_id=given.session_id,
            finished_at=None,
            deadline=None,
            cancel_requested_at=None,
            parked=None,
            result_json=None,
        )


class Audience:
    """The app's own store while it rehearses: what is enqueued is noted, and stored only if that was asked for."""

    def __init__(self, store: Store, *, keep: bool) -> None:
        self.name = store.name
        self.enqueued: list[NewJob] = []
        self._store, self._keep = store, keep

    def __getattr__(self, verb: str) -> Any:
        if verb == "enqueue_stream":
            raise AttributeError(verb)  # so that bulk comes by here as well
        found = getattr(self._store, verb)  # AttributeError where the store has no such ability
        return self._within if verb == "enqueue_within" else found

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        self.enqueued += jobs
        return await self._store.enqueue(jobs) if self._keep else _as_if(jobs)

    def _within(self, tx: Any, jobs: Sequence[NewJob]) -> Any:
        self.enqueued += jobs
        return cast("Any", self._store).enqueue_within(tx, jobs) if self._keep else _as_if(jobs)


class Host:
    """The app as the worker of a rehearsal sees it."""

    def __init__(self, app: Rota, stage: Stage, task: Task[..., Any], *, patient: bool) -> None:
        self._app = app
        self.store = cast("Store", stage)
        self.tasks = {task.name: task}
        self.schedules: Mapping[str, Any] = {}
        changes = {**QUIET, "stall": 1e9} if patient else QUIET
        self.settings = app.settings.model_copy(update=changes)
        self.resources, self.middleware = app.resources, app.middleware

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


async def rehearse(
    app: Rota,
    job: Job,
    *,
    keep: bool,
    wrap: Callable[[Callable[..., Any], bool], Callable[..., Any]] | None = None,
) -> Rehearsed:
    """Run a job's task here with its stored arguments; nothing is claimed and nothing of it is settled.

    `wrap` puts something (a debugger) around the function; nothing is timed out then.
    """
    from rota.worker.worker import Worker

    memory = open_store("memory://", app.settings)
    await memory.enqueue([NewJob(job.id, job.task, job.payload_json)])
    stage = Stage(memory, job if wrap is None else job._replace(timeout=None), app.store)
    task = _here(app.tasks[job.task], wrap)
    with _watched(app, keep=keep) as audience, _silent():
        worker = Worker(Host(app, stage, task, patient=wrap is not None), lanes={"debug": "1:*"})
        began = monotonic()
        life = asyncio.create_task(worker.run())
        try:
            ends: list[asyncio.Future[Any]] = [life, stage.ended]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            took = monotonic() - began
            worker.stop(now=True)
            await asyncio.wait([life])
        life.result()  # a resource that could not be opened, for one
        return Rehearsed(stage.ended.result(), took, audience.enqueued, undone=stage.undone)


@contextmanager
def _watched(app: Rota, *, keep: bool) -> Iterator[Audience]:
    store = app.store
    audience = Audience(store, keep=keep)
    app._store = cast("Store", audience)  # noqa: SLF001 - only here and in the test kit does an app change its store
    try:
        yield audience
    finally:
        app._store = store  # noqa: SLF001


@contextmanager
def _silent() -> Iterator[None]:
    """The worker's own words would say that the job failed and is tried again, and it is not."""
    log = logging.getLogger("rota.worker")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _here(
    task: Task[..., Any], wrap: Callable[[Callable[..., Any], bool], Callable[..., Any]] | None
) -> Task[..., Any]:
    """The task, to be run in this process whatever executor it asks for: a debugger cannot follow it elsewhere."""
    task.spec()  # reads the function's signature, which the twin then shares
    twin = copy.copy(task)
    if wrap is not None:
        twin.timeout = None
        twin.fn = wrap(task.fn, task.is_async)
    twin.executor = twin.process = None
    return twin


def _as_if(jobs: Sequence[NewJob]) -> list[Enqueued]:
    return [Enqueued(job.id, Stored.CREATED) for job in jobs]
