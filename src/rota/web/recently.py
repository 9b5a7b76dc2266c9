"""What many people look at is read once for all of them: a hundred open pages cost the store as much as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

LASTS = 1.0
"""Seconds that an answer counts."""
PATIENCE = 25.0
"""Seconds that one read may take, less than a request may: what hangs is given up, and read anew by the next."""
KEPT = 200


class Recently:
    """Answers of a moment ago. Only what is the same for everybody who may ask belongs here."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]], lasts: float = LASTS) -> T:
        """What `read` answers, or answered within `lasts` seconds. Who asks meanwhile waits for the same answer."""
        now = monotonic()
        until, task = self._known.get(key, (0.0, None))
        if task is None or (
            task.done() and (now >= until or task.cancelled() or task.exception() is not None)
        ):
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            task = asyncio.ensure_future(_awaited(read))
            task.add_done_callback(_heard)
            self._known[key] = (now + lasts, task)
        # One who goes away does not take the answer from the others.
        answer: T = await asyncio.shield(task)
        return answer

    def forget(self) -> None:
        """Read everything anew: somebody has changed something, and wants to see it changed."""
        self._known.clear()


def _heard(task: asyncio.Task[Any]) -> None:
    """Take note of its error: who waited may have gone, and asyncio would print the trace of what nobody read."""
    if not task.cancelled():
        task.exception()


async def _awaited(read: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await read()
