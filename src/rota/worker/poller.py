"""The poller: one cheap question for all lanes, so that lost hints and scheduled jobs are found."""

from __future__ import annotations

import asyncio
import random
from time import monotonic

from rota.stores.contract import Store
from rota.worker.desk import Desk
from rota.worker.listener import Listener
from rota.worker.service import Service

SOON = 0.25
LATELY = 3.0
"""Seconds after the last job during which a hint that was lost unnoticed may cost no more than `poll`."""


class Poller(Service):
    """Asks when the next job is due: soon after work was found, then less and less often while nothing comes."""

    name = "poll"

    def __init__(
        self, store: Store, desk: Desk, listener: Listener | None, *, poll: float, idle_poll: float
    ) -> None:
        super().__init__()
        self._store, self._desk, self._listener = store, desk, listener
        self._poll, self._idle_poll = poll, idle_poll
        self._pause = SOON
        self._asked = 0.0
        self._due: float | None = None
        """Seconds until a scheduled job comes due, as of the last question."""

    @property
    def longest(self) -> float:
        """Seconds between two polls when nothing comes: longer where hints arrive and no jobs did of late.

        A listening connection can be dead for some seconds before its ping finds
        out. While jobs flow, each of them would wait for the next poll.
        """
        hearing = self._listener is not None and self._listener.hearing
        lately = monotonic() - self._desk.fetched_at < LATELY
        return self._idle_poll if hearing and not lately else self._poll

    async def step(self) -> None:
        # Many workers must not poll in step, and none waits longer than it says.
        pause = min(self._pause, self.longest) * random.uniform(0.7, 0.95)  # noqa: S311
        due, self._due = self._due, None
        if await self._stirred_within(pause if due is None else min(pause, due)):
            self._pause = SOON
            if self._desk.has_room and monotonic() - self._asked >= self._poll:
                await (
                    self._ask()
                )  # a steady flow of hints must not keep a lane that it does not concern from its jobs
        elif due is not None and due <= pause:
            self._desk.wake()
        elif self._desk.has_room:
            await self._ask()

    async def _ask(self) -> None:
        self._pause = min(2 * self._pause, self.longest)
        self._asked = monotonic()
        self._due = await self._store.next_due(self._desk.queues)
        if self._due is not None and self._due <= 0:
            self._due = None
            self._desk.wake()

    async def _stirred_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._desk.stirred.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(SOON)  # a busy worker stirs all the time: look at most so often
        self._desk.stirred.clear()
        return True
