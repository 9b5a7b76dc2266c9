"""Worker processes, replaced wherever one has ended; each is killed, frozen and woken with everything it has begun."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import psutil

from reliability.records import Kill

LOOK_EVERY = 0.05


class Exit(NamedTuple):
    """A worker that ended by itself."""

    pid: int
    at: float
    code: int


class Fleet:
    """As many workers as asked for, always, until `end`."""

    def __init__(self, size: int, spawn: Callable[[], subprocess.Popen]) -> None:
        self._spawn, self._size = spawn, size
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._wanted: set[int] = set()
        self.kills: list[Kill] = []
        self.exits: list[Exit] = []
        self.places = [spawn() for _ in range(size)]
        self.every: set[int] = {p.pid for p in self.places}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            with self._lock:
                for place, process in enumerate(self.places):
                    if process.poll() is None:
                        continue
                    if process.pid not in self._wanted:
                        self.exits.append(Exit(process.pid, time.monotonic(), process.returncode))
                        if self._crowding():
                            continue
                    if len(self.places) == self._size and not self._over.is_set():
                        self.places[place] = self._spawn()
                        self.every.add(self.places[place].pid)

    def _crowding(self) -> bool:
        """A worker that cannot even start is not started twenty times a second."""
        recent = [x for x in self.exits if time.monotonic() - x.at < 1]
        if len(recent) > 3:
            time.sleep(1)
        return False

    def living(self) -> list[subprocess.Popen]:
        with self._lock:
            return [p for p in self.places if p.poll() is None]

    def family(self, process: subprocess.Popen) -> list[int]:
        """A worker and all that it has begun."""
        try:
            return [process.pid, *(c.pid for c in psutil.Process(process.pid).children(recursive=True))]
        except psutil.NoSuchProcess:
            return [process.pid]

    def families(self) -> set[int]:
        return {pid for p in self.living() for pid in self.family(p)}

    def kill(self, process: subprocess.Popen) -> None:
        """SIGKILL to a worker and all that it has begun, as if its machine had gone."""
        with self._lock:
            pids = self.family(process)
            self._wanted.add(process.pid)
            _signal(pids, signal.SIGSTOP)  # so that it can begin nothing more unseen
            pids = sorted({*pids, *self.family(process)})
            at = time.monotonic()
            _signal(pids, signal.SIGKILL)
            self.kills += [Kill(pid, at) for pid in pids]
            process.wait()

    def freeze(self, process: subprocess.Popen) -> list[int]:
        """SIGSTOP to a worker and all that it has begun; whom."""
        pids = self.family(process)
        _signal(pids, signal.SIGSTOP)
        return pids

    def wake(self, pids: list[int]) -> None:
        _signal(pids, signal.SIGCONT)

    def terminate(self, process: subprocess.Popen, limit: float) -> tuple[float, int | None]:
        """SIGTERM to the worker itself; seconds until it was gone, and its exit code (None: it had to be killed)."""
        with self._lock:
            self._wanted.add(process.pid)
            begin = time.monotonic()
            process.terminate()
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill(process)
            return limit, None
        return time.monotonic() - begin, process.returncode

    def rss(self) -> float:
        """Megabytes of all workers with all that they have begun."""
        total = 0
        for pid in self.families():
            with suppress(psutil.NoSuchProcess):
                total += psutil.Process(pid).memory_info().rss
        return total / 1e6

    def end(self) -> None:
        """Kill everything."""
        self._over.set()
        self._thread.join()
        for process in self.places:
            if process.poll() is None:
                self.kill(process)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # its session is exactly what we started


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
