"""The kit: what a test holds while its app runs on a store of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from rota._core.actions import Audit, Refusal, Verb, act
from rota._core.durations import Duration, seconds
from rota._core.job import Job, State
from rota._core.retry import Retry
from rota.errors import JobNotFound, RotaError
from rota.portal import Twin, run_here
from rota.stores.contract import Enqueued, JobFilter, Store
from rota.testing import matching
from rota.testing.drained import Drained, Ran
from rota.testing.front import Front
from rota.testing.running import MANY, Shift, TooManyRuns, waiting
from rota.testing.traps import CrashAt

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.handle import Handle
    from rota.task import Task

LIMIT = 1000
"""Attempts after which a drain asks whether a task enqueues itself for ever."""
DEEPEST = 20
PATIENCE = 30.0

_depth: ContextVar[int] = ContextVar("rota_inline_depth", default=0)


class Clock(Protocol):
    """Time that can be moved."""

    def __call__(self) -> datetime: ...
    def move(self, seconds: float) -> None: ...


class Kit:
    """Jobs under test: what was enqueued, running it, moving time, and crashing.

    Made by `manual()`, `inline()` and `real()`.
    """

    mode = "manual"

    def __init__(
        self, app: Rota, store: Store, clock: Clock, *, slots: int = 1, timeout: Duration = PATIENCE
    ) -> None:
        self.app, self.store = app, store
        self.front = Front(store)
        self.slots, self.patience = slots, seconds(timeout, "timeout")
        self.ran: list[Ran] = []
        self._told = 0
        """Every attempt that ended since the kit was opened."""
        self._clock = clock
        self._trap: CrashAt | None = None
        self._lost: set[UUID] = set()

    # Running

    async def drain(
        self,
        *,
        retries: bool = False,
        scheduled: bool = False,
        raises: bool = False,
        limit: int = LIMIT,
    ) -> Drained:
        """Run what is due until nothing is; what happened.

        With `retries`, time is moved on to the jobs that wait for another attempt
        (or snooze), until none does; with `scheduled`, to those that were enqueued
        for later as well. With `raises`, what the first failed handler raised is
        raised here. `limit` is the most attempts that are allowed.
        """
        before = self._untold()
        await self._release()
        while True:
            await self._work(before + limit)
            if not (retries or scheduled) or not await self._move_on(scheduled=scheduled):
                break
        drained = Drained(self.ran[before:])
        self._told = len(self.ran)
        if raises:
            drained.raise_failures()
        return drained

    drain_sync = Twin(drain)

    def _untold(self) -> int:
        """Where that begins which the next drain tells of."""
        return len(self.ran)

    async def _work(self, most: int, ids: Sequence[UUID] = ()) -> None:
        """Let workers run what is due, one after the other as long as they crash."""
        while not await self._shift(lambda: self._check(most)).work(ids):
            pass  # it crashed where it was told to: the next one finds what it left

    def _check(self, most: int) -> None:
        """Raise if this has become more than a test would want."""
        if len(self.ran) > most:
            raise TooManyRuns(
                f"{len(self.ran)} attempts were run, and more are due; the last was {self.ran[-1]}. Does a task "
                "enqueue itself, or is it retried without a pause? A drain that needs more takes limit=."
            )

    def _shift(self, check: Callable[[], None], **watched: Any) -> Shift:
        return Shift(
            self.app,
            self.store,
            hear=self.ran.append,
            check=check,
            slots=self.slots,
            patience=self.patience,
            lost=self._lost,
            **({"trap": self._trap} | watched),
        )

    async def _move_on(self, *, scheduled: bool) -> bool:
        """Move time to the next job that waits; False when none does."""
        now = await self.store.now()
        times = [
            job.run_at
            for job in await waiting(self.store, State.PENDING)
            if job.parked is None and job.run_at > now and job.task in self.app.tasks
            if scheduled or job.attempt > 0 or job.snoozes > 0
        ]
        if not times:
            return False
        self.advance(min(times) - now)
        return True

    async def _release(self) -> None:
        """Let the jobs of `tx=` go: whoever drains has committed."""
        held, self.front.held = self.front.held, []
        for job in await self.store.get([answer.id for answer in held]):
            change = act(job, Verb.RELEASE, retry=Retry(), now=await self.store.now())
            if not isinstance(change, Refusal):
                await self.store.change(change, Audit("rota.testing", Verb.RELEASE, job.id))

    # Time

    @property
    def now(self) -> datetime:
        """The time by which jobs are due."""
        return self._clock()

    def advance(self, by: Duration) -> datetime:
        """Move time on by `"5m"`, a number of seconds or a timedelta; the time it is then. Runs nothing by itself."""
        self._clock.move(seconds(by, "advance"))
        return self._clock()

    # Looking

    def enqueued(
        self,
        task: Task[..., Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        *,
        queue: str | None = None,
        state: State | str | None = None,
        tenant: str | None = None,
        subject: str | None = None,
        key: str | None = None,
        unique_key: str | None = None,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
    ) -> list[Job]:
        """The jobs that were enqueued since the kit was opened, in any state, the oldest first.

        `args` is part of a call: a job fits when these arguments are equal, of a
        mapping the given part; a function is asked with the value.
        """
        fields = {
            "queue": queue,
            "state": None if state is None else matching.state_of(state),
            "tenant": tenant,
            "subject": subject,
            "key": key,
            "unique_key": unique_key,
            "priority": priority,
            "tags": None if tags is None else tuple(tags),
        }
        wish = matching.Wish.of(self.app, task, args, fields)
        return [job for job in self._jobs() if wish.fits(job)]

    def assert_enqueued(
        self,
        task: Task[..., Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        *,
        times: int | None = None,
        **terms: Any,
    ) -> Job:
        """Fail unless a job like this was enqueued, `times` often if given; the newest such job.

        The terms are those of `enqueued()`.
        """
        found = self.enqueued(task, args, **terms)
        if times == 0:
            raise TypeError("times=0 is what assert_not_enqueued() is for.")
        if len(found) == times or (times is None and found):
            return found[-1]
        wanted = "expected a job" if times is None else f"expected {times} job{'s' if times > 1 else ''}"
        raise AssertionError(self._complaint(task, args, terms, wanted))

    def assert_not_enqueued(
        self,
        task: Task[..., Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        **terms: Any,
    ) -> None:
        """Fail if a job like this was enqueued. Without a task: if anything was."""
        if self.enqueued(task, args, **terms):
            raise AssertionError(self._complaint(task, args, terms, "expected no job"))

    def job(self, job: Handle[Any] | Job | UUID) -> Job:
        """A job as it is stored now."""
        job_id = job if isinstance(job, UUID) else job.id
        found: list[Job] = self._ask(lambda store: store.get([job_id]))
        if not found:
            raise JobNotFound(job_id)
        return found[0]

    def _complaint(
        self, task: Any, args: Mapping[str, Any] | None, terms: Mapping[str, Any], wanted: str
    ) -> str:
        fields = {name: State(value) if name == "state" and value else value for name, value in terms.items()}
        wish = matching.Wish.of(self.app, task, args, fields)
        return matching.complaint(wish, wanted, self._jobs(), self.now)

    def _jobs(self) -> list[Job]:
        found: list[Job] = self._ask(lambda store: store.find(JobFilter(oldest_first=True, limit=MANY)))
        return found

    def _ask(self, question: Callable[[Store], Any]) -> Any:
        """Ask the store without waiting: an assertion that must be awaited is one that can be forgotten."""
        return run_here(question(self.store), "ask")

    # Crashing

    @contextmanager
    def crash_at(
        self,
        point: str | Callable[..., Any],
        *,
        when: str = "after",
        task: Task[..., Any] | str | None = None,
        times: int = 1,
    ) -> Iterator[CrashAt]:
        """Let workers die at this point, `times` often, while the block runs.

        `point` is "begun" (claimed, and not a line was run), "returned" (the function
        has ended, and nothing is written), "settled" (that is written, and nobody
        heard), or a function such as `Bank.charge`, itself or by its dotted name:
        the worker dies `when` its call is about to be made ("before") or has been
        ("after"). What is lost so is run again by the rules of `Retry`, as after
        a real crash. It is an error if the point is never reached.
        """
        if self._trap is not None:
            raise RotaError("one crash_at() is open already; one at a time.")
        name = task if isinstance(task, str) or task is None else task.name
        self._trap = trap = CrashAt(point, when=when, task=name, times=times)
        try:
            with trap.set():
                yield trap
        finally:
            self._trap = None
        trap.check()

    def __repr__(self) -> str:
        return f"<Kit {self.mode}, {self.app!r}>"


class InlineKit(Kit):
    """Runs every job where it is enqueued, before `enqueue()` returns."""

    mode = "inline"

    def __init__(self, app: Rota, store: Store, clock: Clock, *, raises: bool = True, **options: Any) -> None:
        super().__init__(app, store, clock, **options)
        self._raises = raises
        self.front = Front(store, before=self._refuse_depth, after=self._run_now, hold_tx=True)

    def _refuse_depth(self) -> None:
        """Before anything is stored, else what is stored would go on."""
        if _depth.get() >= DEEPEST:
            raise RotaError(
                f"jobs enqueue jobs, {DEEPEST} deep. Does a task enqueue itself? Test it with manual(app) instead."
            )

    async def _run_now(self, answers: Sequence[Enqueued]) -> None:
        depth = _depth.get()
        token = _depth.set(depth + 1)
        before = len(self.ran)
        try:
            await self._work(before + LIMIT, [answer.id for answer in answers])
        finally:
            _depth.reset(token)
        if depth == 0 and self._raises:
            Drained(self.ran[before:]).raise_failures()
