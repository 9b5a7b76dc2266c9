"""What a supervised worker shows: its loop's ticks, its beats, and the jobs that have begun."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from functools import partial
from math import inf
from time import monotonic
from typing import Any
from uuid import UUID

from rota.worker.execution import Run, Stop
from rota.worker.memory import memory_used
from rota.worker.runner import Runner
from rota.worker.session import Session
from rota.worker.supervisor.block import (
    BEATEN,
    BEGINNING,
    BEGUN,
    COUNT,
    ENTRY,
    ID,
    KEPT,
    KEPT_FOR,
    LOOKED,
    ON_LOOP,
    RING,
    RING_AT,
    RSS,
    SESSION,
    SMALL,
    TABLE,
    TABLED,
    TICKED,
    TIME,
    ZOMBIES,
    Block,
    Phase,
)

STOPS: Mapping[Stop | None, int] = {None: 0} | {stop: place for place, stop in enumerate(Stop, 1)}
EMPTY = bytes(ENTRY.size)
UNKNOWN = (0xFFFF, inf)
MEASURE_EVERY = 1.0
BEGINNING_SIZE = BEGINNING.size


class Shown:
    """Writes the block. The loop's thread notes beginnings and ticks, the heart's thread everything else."""

    def __init__(self, block: Block, timeouts: Mapping[str, float | None]) -> None:
        self.block = block
        self.runner: ShownRunner | None = None
        self.tasks = {
            name: (place, inf if limit is None else limit)
            for place, (name, limit) in enumerate(timeouts.items())
        }
        """Each task's place in the list that the supervisor has, and how long its jobs may run."""
        self._memory = block.memory
        self._tabled: dict[int, tuple[Run, float]] = {}
        self._free: deque[int] = deque()
        self._opened = 0
        self._measured = 0.0

    def make_runner(self, *args: Any, **options: Any) -> Runner:
        """The worker's runner, whose beginnings are shown."""
        self.runner = ShownRunner(self, *args, **options)
        return self.runner

    # Called on the loop

    def waits(self, run: Run, began: float) -> None:
        """The job goes on later, or in a thread: its deadline must be seen until it ends."""
        if not self._free:
            self.sweep()
        if self._free:
            place = self._free.popleft()
        elif self._opened < TABLE:
            place = self._opened
            self._opened += 1
        else:
            return
        self._tabled[place] = (run, began)
        self.block.tabulate(place, self._entry(run, began))
        if place + 1 == self._opened:
            SMALL.pack_into(self._memory, TABLED, self._opened)

    def ticked(self, at: float) -> None:
        TIME.pack_into(self._memory, TICKED, at)

    def ending(self) -> None:
        """The loops are stopped: a tick that stands still means nothing any more."""
        self.block.set_phase(Phase.ENDING)

    # Called by the heart

    def opened(self, session: Session) -> None:
        """A session begins; nothing was claimed under it yet."""
        TIME.pack_into(self._memory, BEATEN, 0.0)
        ID.pack_into(self._memory, SESSION, session.id.bytes)
        self.beaten(session.sent)

    def beaten(self, sent: float) -> None:
        TIME.pack_into(self._memory, BEATEN, sent)

    def looked(self) -> None:
        """The heart's regular look: what has ended leaves the table."""
        now = monotonic()
        self.sweep()
        if now - self._measured > MEASURE_EVERY:
            self._measured = now
            COUNT.pack_into(self._memory, RSS, memory_used() or 0)
            if self.runner is not None:
                SMALL.pack_into(self._memory, ZOMBIES, self.runner.threads.zombies)
        TIME.pack_into(self._memory, LOOKED, now)

    def kept(self, session: UUID) -> float:
        """When the supervisor last sent a beat for this session that was answered; 0 if never."""
        if self._memory[KEPT_FOR : KEPT_FOR + 16] != session.bytes:
            return 0.0
        (sent,) = TIME.unpack_from(self._memory, KEPT)
        return float(sent)

    def sweep(self) -> None:
        """Take ended jobs out of the table, and bring deadlines up to date. Safe in both threads at once."""
        for place, (run, began) in self._tabled.copy().items():
            if run.ended:
                if self._tabled.pop(place, None) is not None:  # the other thread may have been quicker
                    self.block.tabulate(place, EMPTY)
                    self._free.append(place)
            elif run.due:
                self.block.tabulate(place, self._entry(run, began))

    def _entry(self, run: Run, began: float) -> bytes:
        job = run.job
        place, limit = self.tasks.get(job.task, UNKNOWN)
        due = run.due or began + (limit if job.timeout is None else job.timeout)
        return ENTRY.pack(job.id.bytes, job.version, place, STOPS[run.stop], began, due)


class ShownRunner(Runner):
    """A runner that shows which run is on the loop: `current` is set at every beginning, and only there."""

    def __init__(self, shown: Shown, *args: Any, **options: Any) -> None:
        memory = shown.block.memory
        self._shown, self._tasks_shown = shown, shown.tasks
        self._current: Run | None = None
        self._begun, self._began = 0, 0.0
        self._write = partial(BEGINNING.pack_into, memory)
        header = memoryview(memory)[:RING_AT]
        self._on_loop = header[ON_LOOP : ON_LOOP + 8].cast("d")
        self._count = header[BEGUN : BEGUN + 8].cast("Q")
        super().__init__(*args, **options)

    @property
    def current(self) -> Run | None:
        return self._current

    @current.setter
    def current(self, run: Run | None) -> None:
        """Done for each job, so it must be quick: what the supervisor can find out by itself is not written."""
        before, self._current = self._current, run
        if before is not None and before.started and not before.ended:
            self._shown.waits(before, self._began)
        if run is None:
            self._on_loop[0] = 0.0
            return
        job, number = run.job, self._begun
        place, limit = self._tasks_shown.get(job.task, UNKNOWN)
        if job.timeout is not None:
            limit = job.timeout
        self._write(RING_AT + number % RING * BEGINNING_SIZE, job.id.bytes, job.version, place, limit)
        self._on_loop[0] = self._began = monotonic()
        self._count[0] = self._begun = number + 1


class LastLines(logging.Handler):
    """Keeps the log's last lines where they outlive this process."""

    def __init__(self, block: Block) -> None:
        super().__init__(level=logging.INFO)
        self._block = block
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._block.write_line(self.format(record))
        except Exception:  # a record that cannot be formatted is shown by the other handlers
            self.handleError(record)
