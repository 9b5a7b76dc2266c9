"""`rota dev`: a worker for the desk, which restarts when a file changes."""

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
from rota.cli.locate import reference
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
    "--watch", "more", multiple=True, type=click.Path(exists=True, file_okay=False), help="Another directory."
)
@with_call
def dev(call: Call, app: str | None, more: tuple[str, ...]) -> None:
    """Run a worker that restarts when a file changes.

    Brings the schema up to date first. The app is imported in the worker only, so a mistake in it ends
    that worker, is shown, and the next save starts another.
    """
    named = reference(app, call.settings().app)
    watch = Watch([Path.cwd(), *_home_of(named), *(Path(path) for path in more)])
    call.output.words(f"Watching {', '.join(str(root) for root in watch.roots)}; stop with Ctrl-C.")
    exits.leave(Keeper(call, named).run(watch))


def _home_of(named: str) -> list[Path]:
    """The directory of the app's file, where the app was named by file."""
    target = named.partition(":")[0]
    return [Path(target).resolve().parent] if target.endswith(".py") else []


class Keeper:
    """Keeps one worker process running, and replaces it when the sources change."""

    def __init__(self, call: Call, named: str) -> None:
        self.call, self.named = call, named
        self.process: subprocess.Popen[bytes] | None = None
        self.stopping = False

    def run(self, watch: Watch) -> int:
        """Until a signal comes; the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)
        self._start()
        try:
            while not self.stopping:
                time.sleep(LOOK_EVERY)
                changed = watch.changed()
                if changed:
                    self._restart(changed)
                elif self.process is not None and self.process.poll() is not None:
                    self._ended_by_itself(self.process.returncode)
        finally:
            self._end()
        self.call.output.words("Stopped.")
        return exits.DONE

    def _start(self) -> None:
        shared = ["--url", self.call.url] if self.call.url else []
        shared += ["-v"] if self.call.verbose else []
        command = [
            sys.executable,
            "-m",
            "rota.cli",
            "worker",
            self.named,
            "--migrate",
            "--processes",
            "0",
            *shared,
        ]
        # A session of its own: Ctrl-C reaches the worker through us, once, and not twice.
        self.process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - our own interpreter

    def _restart(self, changed: list[str]) -> None:
        named = Path(changed[0]).name + (
            f" and {many(len(changed) - 1, 'other file')}" if len(changed) > 1 else ""
        )
        self.call.output.words(f"{named} changed; restarting the worker.")
        self._end()
        self._start()

    def _ended_by_itself(self, code: int) -> None:
        self.process = None
        self.call.output.words(f"The worker ended with exit code {code}; waiting for a change.")

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        for insist in (process.terminate, process.kill):
            try:
                process.wait(PATIENCE)
                return
            except subprocess.TimeoutExpired:
                insist()
        process.wait()

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True
