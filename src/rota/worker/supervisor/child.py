"""A child, as its supervisor sees it: a process, its block, and the line to it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID

from rota._core.worker_order import OrderVerb
from rota.worker.executors.process import family
from rota.worker.memory import memory_of
from rota.worker.supervisor import wire
from rota.worker.supervisor.block import SIZE, Block, Entry, Sight, shared_file
from rota.worker.supervisor.leash import STACK_SIGNAL, Ends
from rota.worker.supervisor.report import CrashReport, Ending, Running
from rota.worker.supervisor.wire import Facts, Failed

STACK_LIMIT = 64_000
LONGEST_LINE = 4 << 20
"""A child's facts name all its tasks."""
PROBLEMS = 1
RESTART = "If another version of Rota was installed meanwhile, restart this worker as a whole."


class Child:
    """One process from its start to its end. It is waited for, so its death is heard at once."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0
        """0 until it can be spoken to."""
        self.started = monotonic()
        self.facts: Facts | None = None
        """Known once it works."""
        self.ready_at: float | None = None
        self.failed: Failed | None = None
        self.bye: int | None = None
        """The exit code that it announced after a clean end."""
        self.told_to_stop: float | None = None
        self.told_now = False
        self.retired = False
        self.ordered: OrderVerb | None = None
        """What somebody asked of it from afar: then nobody takes its place."""
        self.gone = False
        self.ended_for: Ending | None = None
        self.culprits: tuple[UUID, ...] = ()
        self.stack = ""
        self.rss: int | None = None
        self.measured = 0.0
        # What the watch notes from look to look
        self.stuck_since: float | None = None
        self.said_stuck = False
        self.frozen_since: float | None = None
        self.told: dict[UUID, float] = {}
        self.cleared: set[UUID] = set()
        self.fenced_at: float | None = None
        self.busy_with: asyncio.Task[None] | None = None
        """What the supervisor is doing about it right now."""
        self.beating: asyncio.Task[None] | None = None

    async def start(self, command: Sequence[str], stirred: Callable[[], None]) -> None:
        """Start the process. Must run in the main thread: on Linux a child ends with the *thread* that started it."""
        self._stirred = stirred
        with ExitStack() as ours, ExitStack() as theirs:
            line, its_line = socket.socketpair()
            ours.enter_context(line)
            theirs.enter_context(its_line)
            self._stack_fd = shared_file(0)
            ours.callback(os.close, self._stack_fd)
            block = shared_file(SIZE)
            theirs.callback(os.close, block)
            self.block = Block(block)
            ours.callback(self.block.close)
            # We speak past asyncio: one failed write would take with it what the child has said and we have not read.
            self._line = ours.enter_context(line.dup())
            self._reader, self._writer = await asyncio.open_connection(sock=line, limit=LONGEST_LINE)
            ours.callback(self._writer.close)
            ends = Ends(its_line.fileno(), block, self._stack_fd, self.number, os.getpid())
            self.process = await asyncio.create_subprocess_exec(
                *command,
                "--child",
                str(ends),
                stdin=subprocess.DEVNULL,
                pass_fds=ends[:3],
                start_new_session=True,  # Ctrl-C is for us; and what its jobs start can be ended with it
            )
            self._open = ours.pop_all()
        self.pid = self.process.pid

    async def live(self) -> int:
        """Hear what it says until it ends; its return code, negative for a signal."""
        hearing = asyncio.create_task(self._hear())
        code = await self.process.wait()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(1.0):  # its last words may still be on their way
                await hearing
        return code

    def stop(self, *, now: bool = False) -> None:
        """Let it finish what runs within its grace; `now`: hand back at once."""
        if self.told_to_stop is None or (now and not self.told_now):
            self.told_to_stop = monotonic()
            self.told_now = now
            self._say(wire.NOW if now else wire.STOP)

    def retire(self) -> None:
        """Let it take no more jobs, finish what runs however long that takes, and go."""
        self.retired = True
        self._say(wire.RETIRE)

    def order(self, verb: OrderVerb) -> None:
        """Pass on what somebody asked of it from afar: it may stand still, and not hear of it by itself."""
        if self.ordered is verb:
            return
        self.ordered = verb
        if verb is OrderVerb.STOP:
            self.stop()
        else:
            self._say(wire.RETIRE)

    def kill(self, ending: Ending, culprits: Sequence[UUID] = ()) -> None:
        """End it at once, with everything that its jobs started in its process group."""
        if self.pid == 0:
            return  # it is just being started; it is ended once it is there
        if self.ended_for is None:
            self.ended_for, self.culprits = ending, tuple(culprits)
        # Its group is led by it, so that this ends it too. `process.kill()` would first look whether it has ended, and
        # thereby take the end away from who waits for it: then it would seem to have left with 255.
        self.kill_group()

    def kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        family.sweep(self.pid)  # child processes of single jobs have groups of their own

    def close(self) -> None:
        """Let go of what belonged to it. From here on its number may be another process's, and it is not looked at."""
        self.gone = True
        self._open.close()

    # What can be seen of it

    @property
    def working(self) -> bool:
        return self.facts is not None and self.told_to_stop is None and not self.retired and not self.ordered

    def look(self) -> Sight:
        return self.block.look()

    def entries(self) -> list[Entry]:
        """Every job that has begun and not ended."""
        on_loop = self.block.on_loop()
        waiting = self.block.waiting()
        if on_loop is None or any(entry.job_id == on_loop.job_id for entry in waiting):
            return waiting
        return [on_loop, *waiting]

    def task_of(self, entry: Entry) -> str:
        names = self.facts.names if self.facts is not None else []
        return names[entry.task] if entry.task < len(names) else "?"

    def is_frozen(self) -> bool:
        """Whether somebody stopped the whole process (SIGSTOP, a debugger); never where the system does not say."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in ("T", "t")

    def measure(self) -> int | None:
        """Bytes of memory that it uses."""
        self.rss = memory_of(self.pid) or self.look().rss or self.rss
        return self.rss

    async def write_stack(self, within: float = 1.0) -> str:
        """Ask it for its stacks. Works while one thread holds the interpreter; not while the process is stopped."""
        if self.gone or self.facts is None or self.is_frozen():
            return ""
        before = os.fstat(self._stack_fd).st_size
        with suppress(ProcessLookupError):
            os.kill(self.pid, STACK_SIGNAL)
        end, size = monotonic() + within, before
        while monotonic() < end:
            await asyncio.sleep(0.02)
            if self.gone:
                return ""
            now = os.fstat(self._stack_fd).st_size
            if now > before and now == size:
                break
            size = now
        return self._read_stack(before)

    def report(self, code: int) -> CrashReport:
        """What is known of it, now that it has ended."""
        sight, now = self.look(), monotonic()
        on_loop = self.block.on_loop()
        running = tuple(
            Running(
                job_id=entry.job_id,
                version=entry.version,
                task=self.task_of(entry),
                seconds=now - entry.began,
                on_loop=on_loop is not None and entry.job_id == on_loop.job_id,
            )
            for entry in self.entries()
            if entry.job_id not in self.cleared
        )
        return CrashReport(
            number=self.number,
            pid=self.pid,
            session=sight.session,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            ended_for=self.ended_for,
            culprits=self.culprits,
            running=running,
            begun=self.block.began_lately(),
            tick_age=now - sight.ticked if sight.ticked else None,
            rss=self.rss or sight.rss or None,
            stack=self.stack or self._read_stack(0),
            last_lines=self.block.last_lines(),
        )

    def _say(self, word: str) -> None:
        with suppress(OSError):  # it has gone already
            self._line.send(wire.line(word))

    async def _hear(self) -> None:
        try:
            while text := await self._reader.readline():
                self._heed(*wire.read(text))
                self._stirred()
        except (ValueError, TypeError, KeyError) as error:
            # The package was replaced under a supervisor that runs: its new children speak otherwise than it does.
            if self.facts is None:
                self.failed = Failed(f"its words were not understood: {error!r}. {RESTART}", PROBLEMS)
            self.kill(Ending.STOP)

    def _heed(self, word: str, fields: dict[str, Any]) -> None:
        if word == wire.READY:
            self.facts, self.ready_at = wire.facts(fields), monotonic()
        elif word == wire.FAILED:
            self.failed = Failed(**fields)
        elif word == wire.ORDERED:
            self.ordered = OrderVerb(fields["verb"])
            if self.ordered is OrderVerb.STOP and self.told_to_stop is None:
                self.told_to_stop = monotonic()  # so that it is seen to that it ends
        elif word == wire.BYE:
            self.bye = fields["code"]

    def _read_stack(self, since: int) -> str:
        size = os.fstat(self._stack_fd).st_size
        return os.pread(self._stack_fd, STACK_LIMIT, max(since, size - STACK_LIMIT)).decode(
            "utf-8", "replace"
        )
