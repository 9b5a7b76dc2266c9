"""`rota dev`: a worker for the desk, which restarts when a file changes, and the dashboard beside it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call
from rota.cli.locate import check_file, reference
from rota.cli.tether import Tether
from rota.cli.watching import Watch
from rota.cli.words import many

if TYPE_CHECKING:
    from types import FrameType

LOOK_EVERY = 0.4
PATIENCE = 5.0
"""Seconds that a worker has to end after a change, before it is told again (which hands its jobs back at once)."""


@click.command(
    "dev", cls=Command, examples=("rota dev", "rota dev jobs.py", "rota dev shop.jobs:app --watch ../lib")
)
@click.argument("app", required=False)
@click.option(
    "--watch",
    "more",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Watch this directory too; may be repeated.",
)
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="The dashboard's port; 8484 or the next free one."
)
@click.option("--no-dashboard", is_flag=True, help="Only the worker.")
@with_call
def dev(call: Call, app: str | None, more: tuple[str, ...], *, port: int | None, no_dashboard: bool) -> None:
    """Run a worker that restarts when a file changes, and the dashboard.

    Brings the schema up to date first, and ticks the schedules. The app is imported in the worker only, so a mistake
    in it ends that worker, is shown, and the next save starts another; the dashboard stays up. Exit 2 says
    that what was named is no app: there is no such file, or nothing in it is made by Rota().
    """
    named = reference(app, call.settings().app)
    check_file(named)
    watch = Watch([Path.cwd(), *_home_of(named), *(Path(path) for path in more)])
    call.output.words(f"Watching {', '.join(str(root) for root in watch.roots)}; stop with Ctrl-C.")
    tether = Tether()
    beside = None if no_dashboard else Beside(call, tether, port)
    command = [
        sys.executable,
        "-m",
        "rota.cli",
        "worker",
        named,
        "--migrate",
        "--processes",
        "0",
        *_shared(call),
    ]
    exits.leave(Keeper(call, tether, command, beside).run(watch))


def reloading(call: Call, named: str, command: list[str]) -> int:
    """`rota worker --reload`: this command of a worker, begun anew whenever a source file changes; the exit code."""
    check_file(named)
    watch = Watch([Path.cwd(), *_home_of(named)])
    call.output.words(f"Watching {', '.join(str(root) for root in watch.roots)}; stop with Ctrl-C.")
    return Keeper(call, Tether(), command, None).run(watch)


def _home_of(named: str) -> list[Path]:
    """The directory of the app's file, where the app was named by file."""
    target = named.partition(":")[0]
    return [Path(target).resolve().parent] if target.endswith(".py") else []


class Beside:
    """The dashboard, in a process of its own: it needs none of the app's code, so that no change of it matters."""

    def __init__(self, call: Call, tether: Tether, port: int | None) -> None:
        self.call, self.tether, self.port = call, tether, port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        port = [] if self.port is None else ["--port", str(self.port)]
        command = [sys.executable, "-m", "rota.cli", "dashboard", *port, *_shared(self.call)]
        self.process = self.tether.start(command)

    def look(self) -> None:
        """Say once that it ended; the worker goes on without it."""
        if self.process is not None and self.process.poll() is not None:
            code, self.process = self.process.returncode, None
            self.call.output.words(
                f"The dashboard ended with exit code {code}; the worker goes on without it."
            )

    def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            _end(process)


class Keeper:
    """Keeps one worker process running, and replaces it when the sources change."""

    def __init__(self, call: Call, tether: Tether, command: list[str], beside: Beside | None) -> None:
        self.call, self.tether, self.command, self.beside = call, tether, command, beside
        self.process: subprocess.Popen[bytes] | None = None
        self.stopping = False
        self.changed = False
        """Whether any file has changed: before that, what is no app was named by mistake."""
        self.code = exits.DONE

    def run(self, watch: Watch) -> int:
        """Until a signal comes; the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)
        self._start()
        if self.beside is not None:
            self.beside.start()
        try:
            while not self.stopping:
                time.sleep(LOOK_EVERY)
                if self.beside is not None:
                    self.beside.look()
                changed = watch.changed()
                if changed:
                    self._restart(changed)
                elif self.process is not None and self.process.poll() is not None:
                    self._ended_by_itself(self.process.returncode)
        finally:
            if self.beside is not None:
                self.beside.end()
            self._end()
        self.call.output.words("Stopped.")
        return self.code

    def _start(self) -> None:
        self.process = self.tether.start(self.command)

    def _restart(self, changed: list[str]) -> None:
        named = Path(changed[0]).name + (
            f" and {many(len(changed) - 1, 'other file')}" if len(changed) > 1 else ""
        )
        self.changed = True
        self.call.output.words(f"{named} changed; restarting the worker.")
        self._end()
        self._start()

    def _ended_by_itself(self, code: int) -> None:
        self.process = None
        if code == exits.NO_APP and not self.changed:
            self.code, self.stopping = exits.USAGE, True
            return
        self.call.output.words(f"The worker ended with exit code {code}; waiting for a change.")

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            _end(process)

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True


def _shared(call: Call) -> list[str]:
    """The options that our processes take over from us."""
    return (["--url", call.url] if call.url else []) + (["-v"] if call.verbose else [])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    for insist in (process.terminate, process.kill):
        try:
            process.wait(PATIENCE)
            return
        except subprocess.TimeoutExpired:
            insist()
    process.wait()
