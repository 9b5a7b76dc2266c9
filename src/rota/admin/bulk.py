"""One verb on all jobs that match a filter: counted first, then done in bounded batches."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from rota._core.actions import Verb
from rota._core.filtering import FilterError
from rota._core.job import TERMINAL, Job, State
from rota._core.retry import Retry
from rota._core.review import CLOSED
from rota.admin.actions import TRIES, Actions, decided
from rota.errors import JobNotFound, MoveRefused, RotaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from rota.stores.contract import JobFilter

PAGE = 500
AT_ONCE = 10
COUNT_CAP = 10_000

STATES: dict[Verb, tuple[State, ...]] = {
    # Cancelled jobs are retried only when the filter asks for them: somebody wanted them stopped.
    Verb.RETRY: (State.DEAD,),
    Verb.CANCEL: (State.PENDING, State.BLOCKED, State.HELD, State.RUNNING),
    Verb.HOLD: (State.PENDING,),
    Verb.RELEASE: (State.HELD,),
    Verb.DELETE: tuple(state for state in State if state in TERMINAL),
}
"""The verbs that work by filter, and the states they mean when the filter names none."""


class NotEnded(FilterError):
    """Somebody would delete many jobs of which not one has ended."""

    def __init__(self, states: Sequence[State]) -> None:
        self.word = f"state:{','.join(states)}"
        RotaError.__init__(
            self,
            f"what is {' or '.join(states)} is not deleted by filter: only jobs that have ended are. Cancel them "
            "first (`rota jobs cancel`), then delete those that are cancelled.",
        )


class Matched(NamedTuple):
    """How many jobs an action would meet."""

    jobs: int
    capped: bool = False
    """True: there are more; counting stopped at `COUNT_CAP`."""

    def __str__(self) -> str:
        return f"{self.jobs:,}+" if self.capped else f"{self.jobs:,}"


class Swept(NamedTuple):
    """What became of the jobs that a bulk action met."""

    done: int = 0
    asked: int = 0
    """Of those done: running jobs whose workers have yet to confirm."""
    refused: int = 0
    """Their state did not allow it."""
    changed: int = 0
    """Somebody else changed or removed them at the same time, again and again."""
    last: UUID | None = None
    """The last job that was met, if its limit ended the sweep: `before` of the filter goes on below it."""

    @property
    def counts(self) -> dict[str, int]:
        """What became of how many, by name."""
        return {name: getattr(self, name) for name in ("done", "asked", "refused", "changed")}

    @property
    def met(self) -> int:
        return self.done + self.refused + self.changed


class Bulk(Actions):
    """The verbs by filter. A filter without states means those that the verb is for."""

    async def count(self, verb: Verb, wanted: JobFilter, *, limit: int | None = None) -> Matched:
        """How many jobs `sweep` would meet now; nothing is changed."""
        most = COUNT_CAP if limit is None else min(limit, COUNT_CAP)
        jobs = await self.store.count_found(swept(verb, wanted), cap=most + 1)
        if limit is not None and jobs >= limit:
            return Matched(limit)
        return Matched(min(jobs, most), capped=jobs > most)

    async def sweep(
        self,
        verb: Verb,
        wanted: JobFilter,
        *,
        reason: str | None = None,
        limit: int | None = None,
        seconds: float | None = None,
        on_progress: Callable[[Swept], None] | None = None,
    ) -> Swept:
        """Do `verb` to every job that matches, newest first, each with its own fence and audit row.

        Jobs that arrive meanwhile are not touched. What was done stays done
        when it is interrupted, or ended by `limit` or `seconds`. Repeating it
        meets again what was refused; `last` is where it goes on below that.
        """
        total = Swept()
        began = monotonic()
        states = _meant(verb, wanted)
        async for page in self._pages(verb, wanted, limit):
            now = await self.store.now()
            for start in range(0, len(page), AT_ONCE):
                batch = page[start : start + AT_ONCE]
                answers = await asyncio.gather(
                    *(self._one(verb, job, states, now, reason=reason) for job in batch),
                    return_exceptions=True,
                )
                total = _totalled(total, answers)
                if on_progress is not None:
                    on_progress(total)
                if total.met == limit or (seconds is not None and monotonic() - began > seconds):
                    return total._replace(last=batch[-1].id)
        return total

    async def _one(
        self,
        verb: Verb,
        job: Job,
        states: Sequence[State],
        now: datetime,
        *,
        reason: str | None,
        about: str | None = None,
    ) -> Swept:
        try:
            for _ in range(TRIES):
                # Whoever was faster may have moved it out of the filter: then it is not ours to touch.
                if job.state not in states:
                    break
                if verb is Verb.RETRY and job.review in CLOSED:
                    return Swept(
                        refused=1
                    )  # somebody has decided about it; one by one it can still be retried
                change = decided(job, verb, retry=Retry(), now=now, reason=reason)
                done, _state = await self._write(job, verb, change, reason, about=about)
                if done is not None:
                    return Swept(done=1, asked=int(done.asked))
                job = await self.job(job.id)
        except MoveRefused:
            return Swept(refused=1)
        except JobNotFound:
            pass
        return Swept(changed=1)

    async def _pages(self, verb: Verb, wanted: JobFilter, limit: int | None) -> AsyncIterator[Sequence[Job]]:
        wanted = swept(verb, wanted)
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = await self.store.find(wanted._replace(limit=size))
            if page:
                yield page
            if len(page) < size:
                return
            wanted = wanted._replace(before=page[-1].id)
            left = None if left is None else left - len(page)


def _totalled(total: Swept, answers: Sequence[Swept | BaseException]) -> Swept:
    """Add up a batch; an error of the store ends the sweep after the batch is over."""
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        total = Swept(
            total.done + answer.done,
            total.asked + answer.asked,
            total.refused + answer.refused,
            total.changed + answer.changed,
        )
    return total


def swept(verb: Verb, wanted: JobFilter) -> JobFilter:
    """The filter as a sweep means it: the verb's states if it names none, newest first."""
    return wanted._replace(states=_meant(verb, wanted), oldest_first=False, by_priority=False)


def _meant(verb: Verb, wanted: JobFilter) -> tuple[State, ...]:
    if verb not in STATES:
        raise ValueError(f"{verb.value} works on one job at a time; by filter: {', '.join(STATES)}.")
    if verb is Verb.DELETE and wanted.states:
        ended = tuple(state for state in wanted.states if state in TERMINAL)
        if not ended:
            raise NotEnded(wanted.states)
        return ended
    return wanted.states or STATES[verb]
