"""A loop that never ends by itself: one round after another, whatever a round runs into."""

from __future__ import annotations

import asyncio
import logging
import random
from time import monotonic

from rota.errors import StoreUnavailable

log = logging.getLogger("rota.worker")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
SAY_AGAIN_AFTER = 60.0


class Service:
    """One loop of the worker. Subclasses write `step()`; tests call it once.

    An error ends the round, never the loop: it is logged once a minute for
    each distinct text, and the next round comes after a growing, jittered pause.
    """

    name = "service"
    longest_pause = LONGEST_PAUSE

    def __init__(self) -> None:
        self._failures = 0
        self._said: dict[str, float] = {}

    async def step(self) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        while True:
            try:
                await self.step()
                self._failures = 0
            except Exception as error:  # a cancellation is no Exception, so a stop gets through
                await asyncio.sleep(self.trouble(error))

    async def once(self) -> None:
        """Repeat one round until the store can be reached; any other error is the caller's."""
        while True:
            try:
                return await self.step()
            except StoreUnavailable as error:
                await asyncio.sleep(self.trouble(error))

    def trouble(self, error: Exception) -> float:
        """Say what went wrong, unless it was said lately; the seconds to wait before the next round."""
        self._failures += 1
        longest = min(self.longest_pause, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 20))
        pause = longest * random.uniform(0.5, 1.0)  # noqa: S311 - many workers must not come back at once
        text = f"{type(error).__name__}: {error}"
        now = monotonic()
        if now - self._said.get(text, -SAY_AGAIN_AFTER) >= SAY_AGAIN_AFTER:
            self._said = {kept: at for kept, at in self._said.items() if now - at < SAY_AGAIN_AFTER}
            self._said[text] = now
            if isinstance(error, StoreUnavailable):
                log.warning(
                    "%s: the store cannot be reached (%s). Trying on; nothing is lost.", self.name, error
                )
            else:
                log.error("%s: a round failed (%s). Trying on.", self.name, text, exc_info=error)
        return pause
