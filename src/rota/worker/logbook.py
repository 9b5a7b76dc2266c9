"""The logbook: keeps what jobs log, and brings it to the store in batches. A job that logs nothing is not in it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from rota._core.job_log import KEPT, LINE_LIMIT, LogTail, kept_line, newest
from rota.current import RunningJob
from rota.stores.contract import Store
from rota.worker.execution import Run, Stop
from rota.worker.service import Service

if TYPE_CHECKING:
    from rota.worker.log_place import LogPlace

log = logging.getLogger("rota.worker")

EVERY = 0.5
"""Seconds that lines gather before they travel."""
UNSENT = 1000
"""Lines of an attempt that wait for their place in the whole log; more are left out, and counted there."""
ATTEMPTS = 10_000
"""Attempts whose lines may wait here; more are not kept."""

Said: TypeAlias = "tuple[datetime, int, str]"
"""A line as it was said: when, at which level, what. What may be kept of it is looked at beside the loop."""


class Lines:
    """What one attempt has logged so far."""

    __slots__ = ("fresh", "left_out", "location", "sent", "tail", "written")

    def __init__(self) -> None:
        self.tail: deque[Said] = deque(maxlen=KEPT)
        self.fresh: deque[Said] = deque(maxlen=UNSENT)
        """Those that the whole log lacks."""
        self.left_out = 0
        self.written = self.sent = 0
        self.location: str | None = None


class Logbook(Service):
    """Lines come from any thread and are only noted; once in a while all of them travel in one statement."""

    name = "logbook"

    def __init__(self, store: Store, place: LogPlace | None = None, *, every: float = EVERY) -> None:
        super().__init__()
        self._store, self._place, self._every = store, place, every
        self._open: dict[Run, Lines] = {}
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._rung = False
        self._refused = 0

    def keep(self, job: RunningJob, level: int, message: str) -> None:
        """Note a line. Never waits for anything; what comes after the attempt's end is nobody's."""
        if not isinstance(job, Run) or job.ended or job.stop is Stop.LOST:
            return
        said = (job.store_time(), level, message[: 2 * LINE_LIMIT])
        with self._lock:
            lines = self._open.get(job)
            if lines is None:
                if len(self._open) >= ATTEMPTS:
                    self._refused += 1
                    return
                lines = self._open[job] = Lines()
            lines.tail.append(said)
            lines.written += 1
            if self._place is not None:
                lines.left_out += len(lines.fresh) == UNSENT
                lines.fresh.append(said)
            rung, self._rung = self._rung, True
        if not rung:
            with suppress(RuntimeError):  # the loop is closed: the worker has ended before its thread
                self._loop.call_soon_threadsafe(self._news.set)

    async def step(self) -> None:
        await self._news.wait()
        await asyncio.sleep(self._every)
        await self.flush()

    async def flush(self) -> None:
        """Bring everything to the store that it has not got; what cannot be brought now stays for the next time."""
        self._news.clear()
        with self._lock:
            self._rung = False
            taken = {run: lines for run, lines in self._open.items() if lines.written > lines.sent}
            refused, self._refused = self._refused, 0
        if refused:
            log.warning("%d lines of jobs were not kept: too many attempts log at once.", refused)
        if not taken:
            return
        try:
            tails = await asyncio.to_thread(self._written, taken)
            await self._store.keep_logs(tails)
        except BaseException:
            self._news.set()
            raise
        with self._lock:
            for lines, tail in zip(taken.values(), tails, strict=True):
                lines.sent = tail.written
            for run in [run for run, lines in taken.items() if run.ended and lines.sent == lines.written]:
                del self._open[run]

    def _written(self, taken: Mapping[Run, Lines]) -> list[LogTail]:
        """The tails as they may be kept, once the whole logs have what is new. In a thread: neither is for the loop."""
        tails = []
        for run, lines in taken.items():
            job = run.job
            with self._lock:
                said, written = tuple(lines.tail), lines.written
                fresh, lines.fresh = lines.fresh, deque(maxlen=UNSENT)
                left_out, lines.left_out = lines.left_out, 0
            if self._place is not None and fresh:
                whole = [kept_line(*one) for one in fresh]
                lines.location = self._place.add(job.id, job.version, whole, left_out) or lines.location
            kept = newest(kept_line(*one) for one in said)
            tails.append(LogTail(job.id, job.version, job.attempt, kept, written, lines.location))
        return tails
