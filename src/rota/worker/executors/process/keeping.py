"""The worker's side of one child: its process, its line, and what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from rota._core.process import Process
from rota._core.suspects import Death
from rota.current import keeper, running
from rota.worker.execution import Run
from rota.worker.executors.process import family
from rota.worker.executors.process.system import DUMP_SIGNAL
from rota.worker.executors.process.wire import Frames, Garbled, Header, frame

LOG_LINES = 20
LAST_WORDS = 32_768
DUMP_WITHIN = 0.1
REAP_WITHIN = 0.5
COMMAND = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from rota.worker.executors.process.child import main; main()"
)


class Kept(asyncio.Protocol):
    """A child: `on_news(child, header, body)` hears what it says, `on_death(child)` when it is gone. On the loop."""

    def __init__(
        self,
        options: Process,
        mark: str,
        on_news: Callable[[Kept, Header, bytes], None],
        on_death: Callable[[Kept], None],
        *,
        result_limit: int,
    ) -> None:
        self.options, self.mark = options, mark
        self.run: Run | None = None
        self.number = 0
        self.served = 0
        """Jobs that it has run."""
        self.began = self.idle_since = monotonic()
        self.leaving = False
        self.dead = False
        self.own: frozenset[int] = frozenset()
        """The processes that belong to it and not to a job: what its resources started."""
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self._on_news, self._on_death = on_news, on_death
        self._frames = Frames(body_limit=result_limit)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._usage: Any = None
        self._status: int | None = None
        self._words = -1
        self._pidfd: int | None = None

    # Its beginning

    def spawn(self, environment: Mapping[str, str]) -> None:
        """Start the process. From this thread, because on Linux it dies when the thread that started it does."""
        self._words = _last_words()
        ours, theirs = socket.socketpair()
        root = str(Path(__file__).parents[4])  # where the package is, wherever the worker found it
        optimize = [f"-{'O' * sys.flags.optimize}"] if sys.flags.optimize else []
        numbers = (theirs.fileno(), self._words, os.getpid())
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own words
                [sys.executable, *optimize, "-c", COMMAND, root, *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                env={**environment, family.MARK: self.mark},
                pass_fds=numbers[:2],
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.pid = process.pid
        process.returncode = 0  # it is waited for below; Popen must not warn of a process that still runs
        self._watch()
        self._connecting = self._loop.create_task(self._connect(ours))

    async def _connect(self, line: socket.socket) -> None:
        await self._loop.create_connection(lambda: self, sock=line)

    def _watch(self) -> None:
        if hasattr(os, "pidfd_open"):
            # An old kernel has it not, a sandbox may forbid it, and there may be no descriptor left.
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(self.pid)
                self._loop.add_reader(self._pidfd, self._gone)
                return

        def wait() -> None:
            end: tuple[Any, ...] = ()
            try:
                if hasattr(os, "waitid"):
                    os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # it is reaped on the loop
                else:
                    end = os.wait4(self.pid, 0)[1:]
            except ChildProcessError:  # `kill` was quicker
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._gone, *end)

        threading.Thread(target=wait, name=f"rota-wait-{self.pid}", daemon=True).start()

    # Talking

    def say(self, header: Header) -> None:
        data = frame(header)
        if self._transport is None:
            self._unsent.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.dead:
            transport.close()
        for data in self._unsent:
            transport.write(data)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        try:
            for header, body in self._frames.feed(data):
                if header.get("is") == "log":
                    self._logged(header)
                elif header.get("is") == "line":
                    self._line(header)
                else:
                    self._on_news(self, header, body)
        except (Garbled, KeyError, TypeError, ValueError) as error:
            self._on_news(self, {"is": "garbled", "error": str(error)}, b"")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """It closed its line, on purpose or not: without it the child is of no use."""
        if not self.dead and not self.leaving:
            family.end(self.mark, self.pid)

    def _logged(self, header: Header) -> None:
        """Handle a record of the child's as if it were our own."""
        logger = logging.getLogger(str(header["name"]))
        level, message = int(header["level"]), str(header["message"])
        where = header["where"]
        at = time.strftime("%H:%M:%S", time.localtime(float(header["created"])))
        self.log.append(f"{at} {logging.getLevelName(level)} {logger.name}: {message}"[:500])
        if not logger.isEnabledFor(level):
            return
        token = running.set(self.run if header.get("number") == self.number else None)
        try:
            self._handled(logger, level, message, where, header)
        except Exception:  # a filter of the app's: it must not end the child, and so blame its job
            traceback.print_exc()
        finally:
            running.reset(token)

    def _line(self, header: Header) -> None:
        """Keep a line that a job of the child's said of itself."""
        level, message = int(header["level"]), str(header["message"])
        keep = keeper.get()
        if keep is not None and self.run is not None and header.get("number") == self.number:
            keep(self.run, level, message)

    def _handled(self, logger: logging.Logger, level: int, message: str, where: Any, header: Header) -> None:
        made = logger.makeRecord(
            logger.name, level, str(where[0]), int(where[1]), message, (), None, str(where[2]), None
        )
        made.created, made.process = float(header["created"]), self.pid
        made.exc_text = header.get("error")
        extra = header.get("extra")
        if isinstance(extra, dict):
            made.__dict__.update({name: value for name, value in extra.items() if name not in made.__dict__})
        if made.exc_text:
            made.msg, made.exc_text = f"{message}\n{made.exc_text}", None
        logger.handle(made)

    # Its end

    def left_behind(self) -> bool:
        """Whether the job that has ended left processes behind."""
        return bool(family.children_of(self.pid) - self.own)

    def leave(self) -> None:
        """Ask it to close its resources and go."""
        self.leaving = True
        self.say({"is": "leave"})

    def kill(self, *, dump: bool = False) -> None:
        """End it with everything it started, now; returns when it is gone. `dump`: let it say first where it is."""
        if self.dead:
            return
        self.leaving = True
        if dump:
            self._dump()
        family.end(self.mark, self.pid)
        end = monotonic() + REAP_WITHIN
        while not self._reap() and monotonic() < end:
            time.sleep(0.001)
        self._close()

    def death(self) -> Death:
        """What is known of its death."""
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        most = None if self._usage is None else self._usage.ru_maxrss
        if most is not None and sys.platform != "darwin":
            most *= 1024
        return Death(
            pid=self.pid,
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            seconds=monotonic() - self.began,
            memory=most,
            log=tuple(self.log),
            stack=self._stack(),
        )

    def forget_words(self) -> None:
        """A new job begins: what was written before is not about it."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._words, 0)
            os.lseek(self._words, 0, os.SEEK_SET)
        self.log.clear()

    def _dump(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError, OSError):
            before = os.fstat(self._words).st_size
            os.kill(self.pid, DUMP_SIGNAL)
            end = monotonic() + DUMP_WITHIN
            while os.fstat(self._words).st_size == before and monotonic() < end:
                time.sleep(0.002)
            time.sleep(0.002)

    def _stack(self) -> str:
        with contextlib.suppress(OSError):
            size = os.fstat(self._words).st_size
            text = os.pread(self._words, LAST_WORDS, max(0, size - LAST_WORDS))
            return text.replace(b"\0", b"").decode(errors="replace")
        return ""

    def _reap(self) -> bool:
        if self._status is not None:
            return True
        try:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else waits for every child of this process
            self._status = None
            return True
        if pid == 0:
            return False
        self._status, self._usage = status, usage
        return True

    def _gone(self, status: int | None = None, usage: Any = None) -> None:
        if self.dead:
            return
        if status is not None:
            self._status, self._usage = status, usage
        # What it started must not outlive it. Before it is reaped, its pid is nobody else's.
        family.end(self.mark, self.pid)
        if not self._reap():
            return
        self._close()
        self._on_death(self)

    def _close(self) -> None:
        """It is gone: let go of what we had of it."""
        if self.dead:
            return
        self.dead = True
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        if self._transport is not None:
            self._transport.abort()

    def bury(self) -> None:
        """Its last words were read."""
        with contextlib.suppress(OSError):
            os.close(self._words)
        self._words = -1


def _last_words() -> int:
    """A file without a name that a dying child still can write to."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rota-last-words")
    descriptor, path = tempfile.mkstemp(prefix="rota-last-words-")
    os.unlink(path)  # noqa: PTH108 - the descriptor keeps it
    return descriptor
