"""The store as the app under test sees it: what is enqueued here is stored, and what the mode wants is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from rota._core.job import NewJob
from rota.portal import run_here
from rota.stores.contract import Enqueued, Store, Stored
from rota.testing.crash import reach

AfterEnqueue: TypeAlias = Callable[[Sequence[Enqueued]], Awaitable[None]]


class Front:
    """Stands in for `app.store` while a kit is open."""

    def __init__(
        self,
        store: Store,
        *,
        before: Callable[[], None] | None = None,
        after: AfterEnqueue | None = None,
        hold_tx: bool = False,
    ) -> None:
        self.name = store.name
        self.held: list[Enqueued] = []
        """Jobs that were stored with `tx=`, and wait because nobody can see when that is committed."""
        self._store, self._before, self._after, self._hold_tx = store, before, after, hold_tx

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        if self._before is not None:
            self._before()
        reach("before", "enqueue")
        answers = await self._store.enqueue(jobs)
        reach("after", "enqueue")
        if self._after is not None:
            await self._after(answers)
        return answers

    def enqueue_within(self, tx: Any, jobs: Sequence[NewJob]) -> Any:
        """Store jobs on the caller's connection, where the store can; in memory they are stored at once."""
        reach("before", "enqueue")
        within = getattr(self._store, "enqueue_within", None)
        if within is not None:
            return within(tx, jobs)
        kept = [job._replace(held=True) for job in jobs] if self._hold_tx else jobs
        answers = run_here(self._store.enqueue(kept), "enqueue")  # the memory store never waits
        reach("after", "enqueue")
        if self._hold_tx:
            self.held += [answer for answer in answers if answer.stored is Stored.CREATED]
        return answers
