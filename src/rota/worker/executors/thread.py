"""Threads for handlers that are plain functions. Ours, because one that hangs must be left behind and replaced."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from itertools import count
from queue import SimpleQueue
from typing import Any, TypeAlias

from rota.worker.execution import Run

Call: TypeAlias = "Callable[[], Any]"
OnEnd: TypeAlias = "Callable[[Run, Any, BaseException | None], None]"


class Seat(threading.Thread):
    """One thread and the run it works on. A daemon: a handler that hangs cannot keep the process alive."""

    def __init__(self, number: int, hand_in: Callable[[Seat, Run, Any, BaseException | None], None]) -> None:
        super().__init__(name=f"rota-thread-{number}", daemon=True)
        self.abandoned = False
        self._hand_in = hand_in
        self._orders: SimpleQueue[tuple[Run, Context, Call] | None] = SimpleQueue()

    def take(self, order: tuple[Run, Context, Call] | None) -> None:
        """Work on this run next; None ends the thread."""
        self._orders.put(order)

    def run(self) -> None:
        while (order := self._orders.get()) is not None:
            run, context, call = order
            try:
                value, error = context.run(call), None
            except BaseException as raised:  # SystemExit and KeyboardInterrupt end the job, not the worker
                value, error = None, raised
            self._hand_in(self, run, value, error)
            del order, run, context, call, value, error  # an idle thread keeps nothing of its last job alive


class Threads:
    """As many threads as runs need at once; idle ones are used again, abandoned ones are counted until they end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: OnEnd) -> None:
        self._loop, self._on_end = loop, on_end
        self._idle: list[Seat] = []
        self._numbers = count(1)
        self._handed_in: deque[tuple[Seat, Run, Any, BaseException | None]] = deque()
        self._called = self._closed = False
        self.zombies = 0
        """Threads that were left behind and still run."""

    def start(self, run: Run, context: Context, call: Call) -> None:
        """Run `call` for `run` in a context of its own; `on_end` hears of its end on the loop."""
        if self._idle:
            seat = self._idle.pop()
        else:
            seat = Seat(next(self._numbers), self._hand_in)
            seat.start()
        run.seat = seat
        seat.take((run, context, call))

    def abandon(self, run: Run) -> None:
        """Wait no longer for this run's thread. It cannot be stopped; it ends after what it does now."""
        if run.seat is not None and not run.seat.abandoned:
            run.seat.abandoned = True
            self.zombies += 1

    def close(self) -> None:
        """End the idle threads, and the others when they are done."""
        self._closed = True
        while self._idle:
            self._idle.pop().take(None)

    def _hand_in(self, seat: Seat, run: Run, value: Any, error: BaseException | None) -> None:
        """Called in the thread. Many ends are told in one call, because each call wakes the loop by a system call."""
        self._handed_in.append((seat, run, value, error))
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._collect)
            except RuntimeError:  # the loop is closed: the worker has ended before its thread
                seat.take(None)

    def _collect(self) -> None:
        self._called = False  # before the first look, so that an end handed in meanwhile calls again
        while self._handed_in:
            seat, run, value, error = self._handed_in.popleft()
            if seat.abandoned:
                self.zombies -= 1
                seat.take(None)
            elif self._closed:
                seat.take(None)
            else:
                self._idle.append(seat)
            self._on_end(run, value, error)
