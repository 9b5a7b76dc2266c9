"""The line between one worker and the store: it notes what ends, and goes dead when the worker crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rota._core.job import Job
from rota._core.outcome import Transition
from rota.stores.contract import (
    Answer,
    Beat,
    SessionStart,
    Settled,
    Store,
    Wanted,
)
from rota.stores.retention_contract import Retention, Tidied
from rota.stores.watched_transaction import WatchedTransaction
from rota.testing.crash import Point, Trap
from rota.testing.drained import Ran

if TYPE_CHECKING:
    from rota.stores.transaction_contract import OwnTransaction
    from rota.testing.bench import Errors


class Line:
    """The store as one worker sees it. Once `crashed`, the worker hears nothing but that it was too late."""

    def __init__(self, store: Store, hear: Callable[[Ran], None], errors: Errors, trap: Trap | None) -> None:
        self.name = store.name
        self.sessions: set[UUID] = set()
        self.crashed = False
        self.stirred = asyncio.Event()
        """Something was claimed, settled or crashed since the last look."""
        self._loop = asyncio.get_running_loop()
        self._store, self._hear, self._errors, self._trap = store, hear, errors, trap

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._store, verb)
        if verb == "own_transaction":
            return lambda job: WatchedTransaction(found(job), self._complete)
        return found

    def crash(self) -> None:
        """From here on nothing that this worker says reaches the store. May be called in any thread."""
        self.crashed = True
        with suppress(RuntimeError):  # the loop is gone, and its worker with it
            self._loop.call_soon_threadsafe(self.stirred.set)

    async def open_session(self, session: SessionStart, *, lease: float, **more: Any) -> None:
        self.sessions.add(session.id)
        if not self.crashed:
            await self._store.open_session(session, lease=lease, **more)

    async def beat(self, session: UUID, *, lease: float, holding: Mapping[UUID, int], **more: Any) -> Beat:
        if self.crashed:
            return Beat(alive=True)
        return await self._store.beat(session, lease=lease, holding=holding, **more)

    async def claim(self, wanted: Wanted, *, session: UUID) -> list[Job]:
        try:
            return [] if self.crashed else await self._store.claim(wanted, session=session)
        finally:
            self.stirred.set()

    async def settle(self, transitions: Sequence[Transition]) -> list[Settled]:
        try:
            if self._dies(transitions, "returned"):
                return _too_late(transitions)
            settled = await self._store.settle(transitions)
            self._note(transitions, settled)
            self._dies(transitions, "settled")
            return settled
        finally:
            self.stirred.set()

    async def exchange(
        self, transitions: Sequence[Transition], wanted: Wanted, *, session: UUID
    ) -> tuple[list[Settled], list[Job]]:
        if self._trap is not None:  # a crash may fall between the two
            settled = await self.settle(transitions)
            return settled, await self.claim(wanted, session=session)
        try:
            settled, jobs = await self._store.exchange(transitions, wanted, session=session)
            self._note(transitions, settled)
            return settled, jobs
        finally:
            self.stirred.set()

    async def _complete(self, own: OwnTransaction, transition: Transition) -> Settled:
        """The end of a handler that has a transaction of its own: the same stations, and one commit between them."""
        try:
            if self._dies([transition], "returned"):
                await own.undo()
                return _too_late([transition])[0]
            settled = await own.complete(transition)
            self._note([transition], [settled])
            self._dies([transition], "settled")
            return settled
        finally:
            self.stirred.set()

    async def tidy(self, retention: Retention) -> Tidied:  # noqa: ARG002 - the contract's signature
        """Nothing: a test wants to see what ended, however far it moved the clock."""
        return Tidied()

    def _dies(self, transitions: Sequence[Transition], kind: str) -> bool:
        """Whether the worker is dead here: before, or because the trap says so now."""
        trap = self._trap
        if not self.crashed and trap is not None:
            # A rescue is not the end of a handler.
            mine = [move for move in transitions if not move.lost and trap.about(move.job)]
            if any(trap.reach(Point(kind)) for _ in mine):
                self.crash()
        return self.crashed

    def _note(self, transitions: Sequence[Transition], settled: Sequence[Settled]) -> None:
        for transition, answer in zip(transitions, settled, strict=True):
            if answer.answer is Answer.APPLIED:
                self._hear(Ran.of(transition, self._errors.of(transition.job)))


def _too_late(transitions: Sequence[Transition]) -> list[Settled]:
    return [Settled(move.job.id, Answer.FENCED, move.job.state) for move in transitions]
