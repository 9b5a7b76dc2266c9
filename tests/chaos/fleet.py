"""The fleet: worker processes, and a supervisor that starts a new one wherever one has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

TESTS = Path(__file__).resolve().parents[1]
LOOK_EVERY = 0.02


class Death(NamedTuple):
    """The end of a worker process."""

    pid: int
    at: float
    code: int
    """The exit code; negative: the signal."""
    wanted: bool
    """Whether we did it: anything else is a worker that ended by itself."""


class Freeze(NamedTuple):
    """A time in which a process stood still."""

    pid: int
    begin: float
    end: float


def environment(**more: str) -> dict[str, str]:
    """The environment of our child processes: nothing of ours that would change settings, and our modules."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ROTA_", "PG", "DATABASE_URL"))
    }
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"} | more


class Fleet:
    """As many workers as asked for, always: the supervisor replaces what ends, until `stop`."""

    def __init__(self, size: int, home: Path, settings: Mapping[str, str]) -> None:
        self._size, self._home, self._settings = size, home, settings
        self._places: list[subprocess.Popen[bytes]] = []
        self._wanted: set[int] = set()
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="chaos-supervisor")
        self.deaths: list[Death] = []
        self.freezes: list[Freeze] = []
        self.pids: list[int] = []
        """Every worker that ever was."""

    def start(self) -> None:
        self._places = [self._spawn() for _ in range(self._size)]
        self._supervisor.start()

    def living(self) -> list[int]:
        with self._lock:
            return [place.pid for place in self._places if place.poll() is None]

    def signal(self, pid: int, number: int) -> bool:
        """Send a signal to a worker that lives. After KILL and TERM its end is our doing."""
        with self._lock:
            if pid not in self.living():
                return False
            if number in (signal.SIGKILL, signal.SIGTERM):
                self._wanted.add(pid)
            os.kill(pid, number)
            return True

    def freeze(self, pid: int, seconds: float) -> None:
        """Let a worker stand still for a while, then go on as if nothing had been."""
        begin = time.time()
        if not self.signal(pid, signal.SIGSTOP):
            return
        time.sleep(seconds)
        self.signal(pid, signal.SIGCONT)
        self.freezes.append(Freeze(pid, begin, time.time()))

    def stop(self, within: float = 30.0) -> None:
        """End all workers gracefully, and the supervisor with them."""
        self._over.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for pid in self.living():
            self.signal(pid, signal.SIGCONT)
            self.signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + within
        for place in self._places:
            try:
                place.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                place.kill()
                place.wait()
            self._note(place)

    @property
    def exits(self) -> list[Death]:
        """Workers that ended by themselves. There must be none."""
        return [death for death in self.deaths if not death.wanted]

    def orphans(self) -> list[int]:
        """Processes that outlived the worker that made them. Each worker has a session of its own to find them by."""
        ours = set(self.pids)
        living = set(self.living())
        return [
            process.pid
            for process in psutil.process_iter()
            if process.pid not in living and _session_of(process.pid) in ours
        ]

    def memory(self) -> int:
        """The most that one living worker uses now, in bytes."""
        sizes = [0]
        for pid in self.living():
            try:
                sizes.append(psutil.Process(pid).memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        return max(sizes)

    def logs(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self._home.glob("worker-*.log")))

    def _spawn(self) -> subprocess.Popen[bytes]:
        with (self._home / f"worker-{len(self.pids):04}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "chaos.chaos_worker"],
                cwd=self._home,
                env=environment(**self._settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pids.append(process.pid)
        return process

    def _supervise(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            with self._lock:
                for number, place in enumerate(self._places):
                    if place.poll() is not None:
                        self._note(place)
                        self._places[number] = self._spawn()

    def _note(self, place: subprocess.Popen[bytes]) -> None:
        self.deaths.append(Death(place.pid, time.time(), place.returncode, place.pid in self._wanted))


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1
