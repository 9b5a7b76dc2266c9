"""Wrapping: middleware around a handler, whatever executes the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from rota.worker.execution import Run
from rota.worker.executors.thread import Threads
from rota.worker.host import Middleware


class Wrapping:
    """Used only where an app has middleware: everything else takes the short way."""

    def __init__(self, middleware: Sequence[Middleware], threads: Threads) -> None:
        self._middleware, self._threads = middleware, threads

    def __bool__(self) -> bool:
        return bool(self._middleware)

    def begin(self, run: Run, call: Callable[[], Any], *, is_async: bool) -> Coroutine[Any, Any, Any]:
        """The handler inside all middleware; the first that was registered is outermost."""
        inner = call if is_async else partial(self._in_thread, run, call)
        for layer in reversed(self._middleware):
            inner = partial(layer, run, inner)
        begun: Coroutine[Any, Any, Any] = inner()
        return begun

    async def _in_thread(self, run: Run, call: Callable[[], Any]) -> Any:
        """A plain function as something to await. Cancelling it changes nothing until it has ended or is abandoned."""
        run.waiter = asyncio.get_running_loop().create_future()
        self._threads.start(run, copy_context(), call)
        while not run.waiter.done():
            try:
                await asyncio.shield(run.waiter)
            except asyncio.CancelledError:
                if run.seat is not None and run.seat.abandoned:
                    raise  # else no loop that this worker ran on could ever be closed
        value, error = run.waiter.result()
        if error is not None:
            raise error
        return value
