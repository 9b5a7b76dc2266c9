"""The listener: hears of new work and of cancels before a poll would find them. Hints may be lost; polls find those."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rota.errors import StoreUnavailable
from rota.stores.contract import CancelHint, DeafHint, Hint, Wakeable, WorkHint
from rota.worker.desk import Desk
from rota.worker.service import Service


class Listener(Service):
    """Passes hints on. `hearing` says whether the store has them to give right now."""

    name = "wake-ups"
    longest_pause = 2.0

    def __init__(self, store: Wakeable, desk: Desk, cancel: Callable[[UUID], None]) -> None:
        super().__init__()
        self.hearing = False
        self._store, self._desk, self._cancel = store, desk, cancel

    async def step(self) -> None:
        try:
            await self._store.listen(self.on_hint)
        finally:
            self.hearing = False
            self._desk.stirred.set()  # polls must come oftener now
        raise StoreUnavailable("the store stopped giving wake-ups; polling goes on")

    def on_hint(self, hint: Hint) -> None:
        if type(hint) is DeafHint:
            self.hearing = False
            self._desk.stirred.set()  # polls must come oftener now
            return
        if not self.hearing:
            self.hearing = True  # the first hint says that listening has begun
            self._failures = 0
        if type(hint) is CancelHint:
            self._cancel(hint.job_id)
            return
        self._desk.wake(hint.queue if type(hint) is WorkHint else None)
        self._desk.stirred.set()  # it may be scheduled for later: a poll will ask when
