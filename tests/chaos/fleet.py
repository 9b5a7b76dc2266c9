"""The fleet: worker processes, and a supervisor that starts a new one wherever one has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from chaos.failpoints import FELL

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

    @property
    def forced(self) -> bool:
        """Whether it had no time for a goodbye."""
        return self.code < 0 or self.code == FELL


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

    def __init__(
        self,
        size: int,
        home: Path,
        settings: Mapping[str, str],
        each: Callable[[int], Mapping[str, str]] = lambda _: {},
        command: Sequence[str] = ("-m", "chaos.chaos_worker"),
        families: bool = False,
    ) -> None:
        """`each` gives the worker at a place settings of its own; `command` is what Python runs there.

        `families`: workers have children, which share what we do to them.
        """
        self._command, self._families = command, families
        self._size, self._home, self._settings, self._each = size, home, settings, each
        self._places: list[subprocess.Popen[bytes]] = []
        self._wanted: set[int] = set()
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="chaos-supervisor")
        self.deaths: list[Death] = []
        self.freezes: list[Freeze] = []
        self.pids: list[int] = []
        """Every worker that ever was."""
        self.stubborn: list[int] = []
        """Those that were asked to stop in the end, and had to be killed."""

    def start(self) -> None:
        self._places = [self._spawn(place) for place in range(self._size)]
        self._supervisor.start()

    def living(self) -> list[int]:
        with self._lock:
            return [place.pid for place in self._places if place.poll() is None]

    def signal(self, pid: int, number: int) -> bool:
        """Send a signal to a worker that lives. After KILL and TERM its end, and its children's, is our doing."""
        if not self._families:
            return self._signal(pid, number)
        if number == signal.SIGKILL:
            return self.kill_family(pid) is not None
        family = self.children(pid)
        sent = self._signal(pid, number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            _each(family, number)
        elif sent and number == signal.SIGTERM:
            self.deaths += [Death(child, time.time(), 0, wanted=True) for child in family]
        return sent

    def _signal(self, pid: int, number: int) -> bool:
        with self._lock:
            if pid not in self.living():
                return False
            if number in (signal.SIGKILL, signal.SIGTERM):
                self._wanted.add(pid)
            os.kill(pid, number)
            return True

    def children(self, pid: int) -> list[int]:
        """The processes that a worker has begun, directly and by others."""
        try:
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill_child(self, child: int) -> bool:
        """Kill a process that a worker has begun; its end is our doing, and so is that of those it began itself."""
        family = self._stopped_family(child)
        try:
            os.kill(child, signal.SIGKILL)
            # From here on it does nothing more. We may see that it is gone only after others have taken its jobs.
            self.deaths.append(Death(child, time.time(), -signal.SIGKILL, wanted=True))
        except ProcessLookupError:
            return False
        finally:
            _each(family, signal.SIGCONT)
        self._note_gone(family)
        return True

    def kill_family(self, pid: int) -> float | None:
        """Kill a worker that has children; the seconds until the last of them is gone too. None: it was gone."""
        family = self._stopped_family(pid)
        try:
            if not self._signal(pid, signal.SIGKILL):
                return None
        finally:
            _each(family, signal.SIGCONT)
        began = time.monotonic()
        self._note_gone(family)
        return time.monotonic() - began

    def _stopped_family(self, pid: int) -> list[int]:
        """Everything that a process has begun, standing still, so that it can begin nothing more unseen."""
        family: list[int] = []
        while new := [child for child in self.children(pid) if child not in family]:
            _each(new, signal.SIGSTOP)
            family += new
        return family

    def _note_gone(self, pids: Sequence[int]) -> None:
        deadline = time.monotonic() + 10
        for pid in pids:
            while (
                psutil.pid_exists(pid) and time.monotonic() < deadline and _state(pid) != psutil.STATUS_ZOMBIE
            ):
                time.sleep(0.002)
            self.deaths.append(Death(pid, time.time(), -signal.SIGKILL, wanted=True))

    def freeze(self, pid: int, seconds: float) -> None:
        """Let a worker stand still for a while, then go on as if nothing had been."""
        begin = time.time()
        if not self.signal(pid, signal.SIGSTOP):
            return
        time.sleep(seconds)
        family = self.children(pid) if self._families else []
        self.signal(pid, signal.SIGCONT)
        self.freezes += [Freeze(one, begin, time.time()) for one in (pid, *family)]

    def stop(self, within: float = 45.0) -> None:
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
                self.stubborn.append(place.pid)
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

    def _spawn(self, place: int) -> subprocess.Popen[bytes]:
        with (self._home / f"worker-{len(self.pids):04}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *self._command],
                cwd=self._home,
                env=environment(**{**self._settings, **self._each(place)}),
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
                        self._places[number] = self._spawn(number)

    def _note(self, place: subprocess.Popen[bytes]) -> None:
        wanted = place.pid in self._wanted or place.returncode == FELL
        self.deaths.append(Death(place.pid, time.time(), place.returncode, wanted))


def _each(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _state(pid: int) -> str:
    try:
        return str(psutil.Process(pid).status())
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1
