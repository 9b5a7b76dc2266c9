"""One verb on every dead letter that matches: counted first, then done as a tracked operation, paced and stoppable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from rota._core.actions import Audit
from rota._core.dead_letter import DeadFilter, DeadLetter
from rota._core.operation import JobsWanted, Operation, OperationState, Progress
from rota._core.review import Review, ReviewVerb, origins
from rota.admin.bulk import Matched
from rota.admin.dead_letters import DeadLetters
from rota.errors import (
    JobNotFound,
    MoveRefused,
    NotUnique,
    OperationNotFound,
    OperationOver,
    RotaError,
    UnknownTask,
)

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rota._core.actions import Verb
    from rota._core.task_spec import TaskSpec

PAGE = 100
AT_ONCE = 10
IN_TURN = 4
"""So many dead letters at once where operations take turns: others need connections too."""
LOOK_EVERY = 5.0
"""Seconds after which an operation that waits for its pace looks whether it was stopped."""
COUNT_CAP = 1_000_000
BULK = (ReviewVerb.ACKNOWLEDGE, ReviewVerb.DISCARD, ReviewVerb.REPROCESS)


class Work(NamedTuple):
    """How one kind of operation goes."""

    page: Callable[[UUID | None], Awaitable[Sequence[Any]]]
    """Those that come next, newest first; fewer than `PAGE`: these are the last."""
    act: Callable[[Any], Awaitable[str]]
    """Do it to one; what became of it, as `Progress` counts it."""
    id_of: Callable[[Any], UUID]


class Operations(DeadLetters):
    """Bulk work on dead letters. A filter without reviews means those that nobody has looked at."""

    async def match(self, verb: ReviewVerb, wanted: DeadFilter) -> Matched:
        """How many dead letters an operation would meet now; nothing is changed."""
        found = await self.store.count_dead_letters(_meant(verb, wanted), cap=COUNT_CAP)
        return Matched(found, capped=found == COUNT_CAP)

    async def begin_operation(
        self,
        verb: ReviewVerb,
        wanted: DeadFilter,
        *,
        reason: str | None = None,
        rate: float | None = None,
    ) -> Operation:
        """Record that `verb` is to be done to every dead letter that matches now; `drive` does it.

        What dies later is not touched, however long it takes.
        """
        now = await self.store.now()
        meant = _meant(verb, wanted)
        until = now if meant.until is None else min(now, meant.until)
        meant = meant._replace(until=until, before=None)
        return await self._begun(verb, meant, await self.match(verb, meant), now, reason=reason, rate=rate)

    async def _begun(
        self,
        verb: ReviewVerb | Verb,
        wanted: DeadFilter | JobsWanted,
        matched: Matched,
        now: datetime,
        *,
        reason: str | None,
        rate: float | None,
    ) -> Operation:
        """Store a new operation, with who wants it and why."""
        from rota.new_ids import new_id

        operation = Operation(
            new_id(),
            verb,
            wanted,
            self.actor,
            reason,
            rate,
            matched.jobs,
            Progress(),
            OperationState.RUNNING,
            new_id(),
            now,
            now,
            matched.capped,
        )
        await self.store.begin_operation(
            operation, self._told(operation, "operation_begun", reason, after=words(operation))
        )
        return operation

    async def drive(
        self,
        operation: Operation,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        turns: asyncio.Semaphore | None = None,
    ) -> Operation:
        """Do what is left of it, newest first, each job or dead letter with its own fence and audit row.

        Ends early when somebody stops it or drives it elsewhere. When this
        process is interrupted it is stopped, and can be resumed. With `turns`
        it takes one for every few of them, so that many operations go on
        side by side and take no more of the store than one.
        """
        try:
            await self._drive(operation, on_progress, turns)
        except BaseException:
            # Not left behind as running. What was done is noted.
            with suppress(RotaError):
                await asyncio.shield(self.stop_operation(operation.id, reason="interrupted", quietly=True))
            raise
        return await self.operation(operation.id)

    async def _drive(
        self,
        operation: Operation,
        on_progress: Callable[[Progress], None] | None,
        turns: asyncio.Semaphore | None,
    ) -> None:
        work = await self._work(operation)
        progress = operation.progress
        pace = Pace(operation.rate)
        at_once = 1 if operation.rate is not None else AT_ONCE if turns is None else IN_TURN

        async def noted() -> bool:
            """Whether it is still ours to drive."""
            return await self.store.advance_operation(operation.id, operation.driver, progress)

        while True:
            page = await work.page(progress.cursor)
            for start in range(0, len(page), at_once):
                batch = page[start : start + at_once]
                while not await pace.wait(at_most=LOOK_EVERY):
                    if not await noted():
                        return
                async with turns or nullcontext():
                    if not await noted():  # it may have been stopped while it waited
                        return
                    progress = await _batch(work, batch, progress)
                if not await noted():
                    return
                if on_progress is not None:
                    on_progress(progress)
            if len(page) < PAGE:
                await self.store.advance_operation(operation.id, operation.driver, progress, finished=True)
                return

    async def _work(self, operation: Operation) -> Work:
        """How an operation of this kind goes."""
        wanted = operation.wanted
        assert isinstance(wanted, DeadFilter)
        specs = await self._specs()

        async def page(before: UUID | None) -> Sequence[DeadLetter]:
            return await self.store.dead_letters(wanted._replace(before=before, limit=PAGE))

        async def act(letter: DeadLetter) -> str:
            return await self._act(operation, letter, specs)

        return Work(page, act, lambda letter: letter.job.id)

    async def _act(self, operation: Operation, letter: DeadLetter, specs: Mapping[str, TaskSpec]) -> str:
        """What became of one dead letter, as the name of what is counted."""
        try:
            assert isinstance(operation.verb, ReviewVerb)
            done, _ = await self._once(operation.verb, letter, operation.reason, specs, about=operation.about)
        except (MoveRefused, UnknownTask, NotUnique):
            return "refused"
        except JobNotFound:
            return "changed"
        return "changed" if done is None or done.already else "done"

    async def operations(self, *, limit: int = 20) -> Sequence[Operation]:
        """The operations, newest first."""
        return await self.store.operations(limit=limit)

    async def operation(self, operation_id: UUID) -> Operation:
        """One of them, or `OperationNotFound`."""
        found = await self.store.operations(operation_id=operation_id, limit=1)
        if not found:
            raise OperationNotFound(operation_id)
        return found[0]

    async def stop_operation(
        self, operation_id: UUID, *, reason: str | None = None, quietly: bool = False
    ) -> Operation:
        """Let it rest: its driver stops before the next one. `quietly`: no matter if it does not run."""
        return await self._steer(operation_id, OperationState.STOPPED, reason, None, quietly=quietly)

    async def resume_operation(self, operation_id: UUID, *, reason: str | None = None) -> Operation:
        """Take an unfinished operation over, from where it is; `drive` goes on with it."""
        from rota.new_ids import new_id

        return await self._steer(operation_id, OperationState.RUNNING, reason, new_id())

    async def _steer(
        self,
        operation_id: UUID,
        to: OperationState,
        reason: str | None,
        driver: UUID | None,
        *,
        quietly: bool = False,
    ) -> Operation:
        before = await self.operation(operation_id)
        action = "operation_stopped" if to is OperationState.STOPPED else "operation_resumed"
        audit = self._told(before, action, reason, before=before.state.value, after=to.value)
        after = await self.store.steer_operation(operation_id, to, audit, driver=driver)
        if after is None and not quietly:
            raise OperationOver(operation_id, (await self.operation(operation_id)).state.value)
        return after or await self.operation(operation_id)

    def _told(self, operation: Operation, action: str, reason: str | None, **said: Any) -> Audit:
        return Audit(self.actor, action, None, reason, about=operation.about, **said)


async def _batch(work: Work, batch: Sequence[Any], progress: Progress) -> Progress:
    """Do a few at once; how far it is then."""
    answers = await asyncio.gather(*(work.act(one) for one in batch), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        progress = progress._replace(**{answer: getattr(progress, answer) + 1})
    return progress._replace(cursor=work.id_of(batch[-1]))


class Pace:
    """Lets through so many a second, evenly; None: all at once."""

    def __init__(self, rate: float | None) -> None:
        self._step = 0.0 if rate is None else 1.0 / rate
        self._next = monotonic()

    async def wait(self, *, at_most: float = inf) -> bool:
        """Wait for the next one to be let through; False: not yet, after `at_most` seconds."""
        if not self._step:
            return True
        ahead = self._next - monotonic()
        if ahead > 0:
            await asyncio.sleep(min(ahead, at_most))
        if ahead > at_most:
            return False
        self._next = max(self._next, monotonic() - self._step) + self._step
        return True


def words(operation: Operation) -> str:
    """What an operation does, for people and for the audit."""
    what = operation.noun if operation.total == 1 and not operation.capped else f"{operation.noun}s"
    done = f"{operation.verb.value} {operation.of_how_many} {what}"
    if isinstance(operation.wanted, JobsWanted):
        whose = operation.wanted.tenant
        which = operation.wanted.filter.strip() or ("all it is for" if whose is None else f"all of {whose}")
        return f"{done} ({which})"
    asked = operation.wanted.as_json()
    asked.pop("until", None)
    reviews = asked.pop("reviews", ())
    narrowed = [f"{name}={value}" for name, value in asked.items()]
    if isinstance(reviews, list | tuple) and tuple(reviews) != (Review.PENDING,):
        narrowed.append(f"review={','.join(str(one) for one in reviews)}")
    return f"{done} ({', '.join(narrowed) or 'all in review'})"


def _meant(verb: ReviewVerb, wanted: DeadFilter) -> DeadFilter:
    """The filter with the reviews that the verb can be done to."""
    if verb not in BULK:
        raise ValueError(f"{verb.value} is not done by hand; by filter: {', '.join(BULK)}.")
    asked = wanted.reviews or (Review.PENDING,)
    possible = tuple(one for one in asked if one in origins(verb))
    if not possible:
        raise ValueError(
            f"cannot {verb.value} what is {' or '.join(asked)}; it is for {' or '.join(origins(verb))}."
        )
    return wanted._replace(reviews=possible)
