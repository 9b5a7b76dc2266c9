"""Hints to listeners, each on its own event loop, from whichever thread something happened in."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable

from rota.stores.contract import Hint, ResyncHint


class Listeners:
    """Who wants to hear. Adding, removing and telling are safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ears: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[Hint], None]]] = {}

    async def listen(self, on_hint: Callable[[Hint], None]) -> None:
        """Call `on_hint` on the caller's loop until cancelled. The first hint says that listening has begun."""
        me = object()
        with self._lock:
            self._ears[me] = (asyncio.get_running_loop(), on_hint)
        try:
            on_hint(ResyncHint())
            await asyncio.Event().wait()
        finally:
            with self._lock:
                del self._ears[me]

    def tell(self, hints: Iterable[Hint]) -> None:
        """Pass hints on. A loop that was closed without a goodbye misses them, and nobody else does."""
        with self._lock:
            ears = list(self._ears.values())
        for hint in hints:
            for loop, on_hint in ears:
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(on_hint, hint)
