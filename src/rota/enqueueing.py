"""The verbs that store jobs, the same on a task and on what `using()` answers."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from rota.errors import EnqueueError, KeyConflict, NotSupported, NotUnique
from rota.handle import Handle
from rota.options import Options, terms
from rota.portal import Twin, refuse_waiting
from rota.stores.contract import Enqueued, Stored

if TYPE_CHECKING:
    from typing import Unpack
    from uuid import UUID

    from rota._core.job import Job, NewJob, Row
    from rota.handle import Home

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("rota.enqueue")

ROWS_A_BREATH = 500
"""Rows that are checked before other tasks of the event loop get their turn."""


class Prepares(Protocol):
    """What the verbs need of a task."""

    name: str
    home: Home

    def prepare(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], said: Mapping[str, Any], /
    ) -> NewJob: ...

    def prepare_many(self, rows: Iterable[Any], said: Mapping[str, Any], /) -> Iterable[NewJob]: ...

    def alike(self, said: Mapping[str, Any], /) -> NewJob | None: ...

    def rows_alike(self, rows: Iterable[Any], /) -> Iterable[Row]: ...

    def read_result(self, job: Job, /) -> Any: ...


class BulkResult(Sequence[Handle[R]]):
    """The answer to `enqueue_many`: one handle a row, in order."""

    def __init__(
        self,
        ids: Sequence[UUID],
        handle: Callable[[Enqueued], Handle[R]],
        stood: Mapping[int, Stored],
        refused: Mapping[int, EnqueueError],
    ) -> None:
        self._ids, self._handle = ids, handle
        self._stood = stood  # the rows that another job stands for
        self.refused = refused
        """Rows that were not stored, because their key belongs to other work; by number, from 0."""

    @cached_property
    def handles(self) -> list[Handle[R]]:
        """One a row. Made when they are asked for: of fifty thousand jobs few are ever awaited."""
        stored = ((id_, self._stood.get(row, Stored.CREATED)) for row, id_ in enumerate(self._ids))
        return [self._handle(Enqueued(*answer)) for answer in stored]

    @property
    def created(self) -> list[Handle[R]]:
        """The jobs that this call stored."""
        return [handle for handle in self.handles if handle.created]

    @property
    def duplicates(self) -> list[Handle[R]]:
        """The jobs that stood for a row already."""
        return [h for row, h in enumerate(self.handles) if not h.created and row not in self.refused]

    @overload
    def __getitem__(self, index: int) -> Handle[R]: ...

    @overload
    def __getitem__(self, index: slice) -> list[Handle[R]]: ...

    def __getitem__(self, index: int | slice) -> Handle[R] | list[Handle[R]]:
        return self.handles[index]

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Handle[R]]:
        return iter(self.handles)

    def __repr__(self) -> str:
        created = len(self) - len(self._stood)
        return f"<BulkResult {len(self)} rows, {created} created, {len(self.refused)} refused>"


class Verbs(Generic[P, R]):
    """enqueue, enqueue_many, using, and their sync twins."""

    def __init__(self, task: Prepares, said: Mapping[str, Any]) -> None:
        self._task, self._said = task, said

    @property
    def on_this_thread(self) -> bool:
        """Whether a sync verb must stay on the caller's thread, where the caller's connection lives."""
        return "tx" in self._said

    def using(self, **options: Unpack[Options]) -> Using[P, R]:
        """The same verbs with options for the jobs they store: `task.using(delay="5m", key="order:7").enqueue(...)`."""
        return Using(self._task, {**self._said, **terms(options)})

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job that calls the task with these arguments; once this returns, the job is durable."""
        job = self._task.prepare(args, kwargs, self._said)
        [answer] = await self._put([job])
        refused = _refusal(job, answer)
        if refused is not None:
            raise refused
        return self._handle(answer)

    async def enqueue_many(self, rows: Iterable[Any]) -> BulkResult[R]:
        """Store one job a row, all in one step of the store.

        A row is a tuple or a mapping of arguments; for a task with one parameter
        it may be the bare value. One wrong row, and none is stored.
        """
        home = self._task.home
        stream = None if home.pressure or "tx" in self._said else getattr(home.store, "enqueue_stream", None)
        like = None if stream is None else self._task.alike(self._said)
        if stream is not None and like is not None:
            return BulkResult(await stream(like, self._task.rows_alike(rows)), self._handle, {}, {})
        jobs: list[NewJob] = []
        for job in self._task.prepare_many(rows, self._said):
            jobs.append(job)
            if len(jobs) % ROWS_A_BREATH == 0 and not self.on_this_thread:
                await asyncio.sleep(0)
        answers = await self._put(jobs) if jobs else []
        stood = {row: a.stored for row, a in enumerate(answers) if a.stored is not Stored.CREATED}
        refused = {row: error for row in stood if (error := _refusal(jobs[row], answers[row])) is not None}
        if refused:
            log.warning(
                "%d of %d rows for %s were refused: %s",
                len(refused),
                len(jobs),
                self._task.name,
                _first(refused),
            )
        return BulkResult([answer.id for answer in answers], self._handle, stood, refused)

    enqueue_sync = Twin(enqueue, here=lambda verbs, _: verbs.on_this_thread)
    enqueue_many_sync = Twin(enqueue_many, here=lambda verbs, _: verbs.on_this_thread)

    async def _put(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        store, pressure = self._task.home.store, self._task.home.pressure
        tx = self._said.get("tx")
        if pressure is not None:
            await pressure.admit(jobs, may_wait=tx is None)
        if tx is None:
            return await store.enqueue(jobs)
        within = getattr(store, "enqueue_within", None)
        if within is None:
            raise NotSupported(
                store.name,
                "store jobs inside your transaction (tx=)",
                "Enqueue after your commit, or keep jobs in the PostgreSQL of your transaction.",
            )
        answers = within(tx, jobs)
        if inspect.isawaitable(answers):
            refuse_waiting(answers)
            answers = await answers
        return list(answers)

    def _handle(self, answer: Enqueued) -> Handle[R]:
        task = self._task
        return Handle(
            task.home,
            answer.id,
            task.read_result,
            created=answer.stored is Stored.CREATED,
            uncommitted=self.on_this_thread,
        )


class Using(Verbs[P, R]):
    """A task with options for its next jobs."""

    def __repr__(self) -> str:
        return f"<{self._task!r} using {', '.join(self._said)}>"


def _refusal(job: NewJob, answer: Enqueued) -> EnqueueError | None:
    if answer.stored is Stored.CONFLICT:
        return KeyConflict(job.key or "", answer.id)
    if answer.stored is Stored.REJECTED:
        return NotUnique(job.unique_key or "", answer.id)
    return None


def _first(refused: Mapping[int, EnqueueError]) -> str:
    row, error = next(iter(refused.items()))
    return f"row {row}: {error}"
