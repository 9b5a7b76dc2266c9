"""Deadlines: one heap and one timer for all runs that wait, instead of a timer for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic

from rota.worker.execution import Run

FEWEST_TO_SWEEP = 256


class Deadlines:
    """Calls `on_due(run)` when a run's latest deadline passes, unless it has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[Run], None]) -> None:
        self._loop, self._on_due = loop, on_due
        self._heap: list[tuple[float, int, Run]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._sweep_at = FEWEST_TO_SWEEP

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, run: Run, seconds: float) -> None:
        """Give `run` this many seconds from now. An earlier setting no longer counts."""
        run.due = monotonic() + seconds
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        heappush(self._heap, (run.due, next(self._order), run))
        if self._timer is None or run.due < self._timer_at:
            self._arm()

    def close(self) -> None:
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer_at = self._heap[0][0]
            self._timer = self._loop.call_later(max(0.0, self._timer_at - monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, _, run = heappop(self._heap)
            if not run.ended and run.due == when:
                self._on_due(run)
        self._arm()

    def _sweep(self) -> None:
        """Forget ended runs, which would else stay (and keep their payload) until their time comes."""
        self._heap = [entry for entry in self._heap if not entry[2].ended and entry[2].due == entry[0]]
        heapify(self._heap)
        self._sweep_at = max(FEWEST_TO_SWEEP, 2 * len(self._heap))
