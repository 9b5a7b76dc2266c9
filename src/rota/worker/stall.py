"""The stall detector: says which task keeps the event loop from turning. Its look comes from another thread."""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from rota.worker.execution import Run

if TYPE_CHECKING:
    from rota.worker.supervisor.shown import Shown

log = logging.getLogger("rota.worker")

_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple({_PATHS[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_OURS = __file__.removesuffix("worker/stall.py")


class StallDetector:
    """The loop ticks; `look()` warns once when the tick stands still for longer than `limit` seconds."""

    def __init__(
        self,
        run_of: Callable[[asyncio.Task[Any] | None], Run | None],
        limit: float,
        shown: Shown | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._run_of, self._limit, self._shown = run_of, limit, shown
        self.every = min(0.25, limit / 4)
        """Seconds between ticks, and between looks."""
        self._ticked = self._looked = monotonic()
        self._warned: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._tick()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._shown is not None:
            self._shown.ending()

    def look(self) -> None:
        """Called in the watching thread, about as often as the loop ticks."""
        now, ticked = monotonic(), self._ticked
        asleep, self._looked = now - self._looked > self._limit, now
        if asleep:
            return  # this thread stood still as well: the whole process was stopped, and no task is to blame
        if self._warned is not None:
            if ticked > self._warned:
                log.warning("the event loop turns again, after %.1f s.", ticked - self._warned)
                self._warned = None
        elif now - ticked > self._limit:
            self._warned = ticked
            log.warning(
                "the event loop has stood still for %.1f s: %s keeps it busy. Every other coroutine here waits. Use "
                "await, a task that is a plain `def` (it runs in a thread), or asyncio.to_thread().",
                now - ticked,
                self._culprit(),
            )

    def _tick(self) -> None:
        self._ticked = monotonic()
        if self._shown is not None:
            self._shown.ticked(self._ticked)
        self._timer = self._loop.call_later(self.every, self._tick)

    def _culprit(self) -> str:
        where = _user_frame(sys._current_frames().get(self._thread))  # noqa: SLF001 - the documented way in
        run = self._run_of(asyncio.current_task(self._loop))
        who = "code outside any job" if run is None else f"task {run.job.task!r} (job {run.job.id})"
        return who + where


def _user_frame(frame: FrameType | None) -> str:
    """The innermost line that is neither Python's, nor a library's, nor ours; else the innermost at all."""
    innermost = frame
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_LIBRARIES, _OURS, "<")):
            return _shown(frame)
        frame = frame.f_back
    return "" if innermost is None else _shown(innermost)


def _shown(frame: FrameType) -> str:
    return f" in {frame.f_code.co_filename}, line {frame.f_lineno}, {frame.f_code.co_name}()"
