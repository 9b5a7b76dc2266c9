"""`rota top`: the whole on one screen, again and again; what is chosen says why."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from rota.cli import exits, logs
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import Length, Stretch
from rota.cli.top_view import View, keys, press
from rota.cli.words import span
from rota.errors import RotaError, StoreError

if TYPE_CHECKING:
    from rich.console import Console

    from rota.admin import Admin
    from rota.admin.picture import Picture
    from rota.cli.top_screen import Choice, Drawn

SHARE = 10
"""Of the time, reading takes at most one part in so many: a slow store is asked less often."""
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends it as q does: being told to, a closed terminal, and Ctrl-\\ that keys send."""
PATIENCE = 3.0
"""Seconds after which a read that is not answered is said aloud, with the age of what is shown."""


@click.command(
    "top",
    cls=Command,
    examples=(
        "rota top",
        "rota top --every 5s --since 15m",
        "rota top --once                             one picture, for a pipe or a ticket",
        "rota top --json | jq -r '.alerts[].what'",
    ),
)
@click.option(
    "--every", type=Length(), default="2s", metavar="DURATION", show_default=True, help="How often to look."
)
@click.option(
    "--since",
    type=Stretch(),
    default="5m",
    metavar="DURATION",
    show_default=True,
    help="Rates and errors of the last so long, in whole minutes.",
)
@click.option(
    "--once", is_flag=True, help="Print one picture and end; so does --json, and output into a pipe."
)
@with_admin
async def top(call: Call, admin: Admin, every: float, since: float, once: bool) -> None:
    """Watch everything on one screen: what waits, runs and fails, and what needs you.

    It changes nothing. Choose a line with the arrows, and Enter says why it is so and what to type next. `?` lists the
    keys, `q` ends it. What cannot be read is `unknown`, and the last picture stays, with its age.
    """
    if call.output.as_json:
        from rota.cli.top_records import record

        call.output.value(record(await admin.picture(since)))
    elif once or not (call.output.terminal and sys.stdin.isatty()):
        from rota.cli.top_screen import draw

        picture = await admin.picture(since)
        title = f"rota top: {picture.seen.now:%Y-%m-%d %H:%M:%S} UTC, rates of the last {span(since)}"
        wide = call.output.console().width if call.output.terminal else 120
        for line in draw(picture, View(), wide, None, title=title).lines:
            call.output.text(line.plain.rstrip())
        for what, why in picture.unknown.items():
            call.output.words(f"unknown: {what} ({why})")
    else:
        logs.silence()
        call.if_stopped = ""
        await Live(admin, call.output.console(), max(0.2, every), since).run()


class Live:
    """The screen while it is open: one task reads, one draws, and keys change the view."""

    def __init__(self, admin: Admin, console: Console, every: float, since: float) -> None:
        self.admin, self.console = admin, console
        self.every, self.since = every, since
        self.view = View()
        self.picture: Picture | None = None
        self.read_at = time.monotonic()
        self.asked_at: float | None = None
        """When the read that is under way began."""
        self.trouble: str | None = None
        self.opened: tuple[Choice, str] | None = None
        self.opening: asyncio.Task[None] | None = None
        self.choices: list[Choice] = []
        self.changed = asyncio.Event()
        self.wanted = asyncio.Event()

    async def run(self) -> None:
        """Until somebody quits. The terminal is as before afterwards, whatever ends it."""
        from rich.console import Group
        from rich.control import Control

        reading = asyncio.create_task(self._read())
        try:
            with _raw_keys(self._typed), _signals(self.changed.set), self.console.screen() as screen:
                while not self.view.quit:
                    self.changed.clear()
                    self.console.control(Control.home())
                    screen.update(Group(*self._drawn().lines))
                    if reading.done():
                        reading.result()  # a fault of ours is not to be watched in silence
                    with suppress(TimeoutError):
                        # At least once a second: an age that stands still looks like a picture that does not.
                        await asyncio.wait_for(self.changed.wait(), 1.0)
        finally:
            for task in (reading, self.opening):
                if task is not None:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

    async def _read(self) -> None:
        while True:
            began = time.monotonic()
            if not self.view.paused or self.picture is None:
                self.asked_at = began
                try:
                    self.picture = await self.admin.picture(self.since)
                    self.read_at, self.trouble = time.monotonic(), None
                except StoreError as error:
                    self.trouble = str(error)
                self.asked_at = None
                self.changed.set()
            took = 0.0 if self.trouble is not None else time.monotonic() - began
            self.wanted.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wanted.wait(), max(self.every, took * (SHARE - 1)))

    def _drawn(self) -> Drawn:
        from rota.cli.top_screen import draw

        width, height = self.console.size
        opened = None
        if self.view.opened and self.view.selected is not None and self.choices:
            opened = self.opened[1] if self.opened else "Looking …"
        drawn = draw(self.picture, self.view, width, height, title=self._title(), opened=opened)
        self.choices = drawn.choices
        return drawn

    def _title(self) -> str:
        """When this was so; and, if it could not be read since, for how long and why."""
        age = time.monotonic() - self.read_at
        if self.picture is None:
            waits = f"cannot read the store: {self.trouble}" if self.trouble else "reading …"
            return f" rota top  {waits}"
        seen = self.picture.seen
        said = f" rota top  {seen.now:%H:%M:%S} UTC  last {span(self.since)}  sort: {self.view.sort}"
        if self.view.paused:
            return f"{said}  PAUSED, {span(float(round(age)))} old"
        if self.trouble is not None:
            return f" rota top  NOT READ for {span(float(round(age)))}, this is how it was: {self.trouble}"
        if self.asked_at is not None and time.monotonic() - self.asked_at > PATIENCE:
            return f" rota top  NO ANSWER for {span(float(round(age)))}; this is how it was at {seen.now:%H:%M:%S} UTC"
        return said + "".join(f"  unknown: {what}" for what in self.picture.unknown)

    def _typed(self, typed: str) -> None:
        for key in keys(typed):
            before, self.view = self.view, press(self.view, key, len(self.choices))
            if self.view.refresh != before.refresh or (before.paused and not self.view.paused):
                self.wanted.set()
            if self.view.opened and (not before.opened or self.view.selected != before.selected):
                self._open()
        self.changed.set()

    def _open(self) -> None:
        if self.view.selected is None or self.view.selected >= len(self.choices):
            return
        if self.opening is not None:
            self.opening.cancel()
        self.opened = None
        self.opening = asyncio.create_task(self._look(self.choices[self.view.selected]))

    async def _look(self, choice: Choice) -> None:
        from rota.cli.top_details import details

        try:
            told = await details(self.admin, choice)
        except RotaError as error:
            told = f"Unknown: {error}"
        self.opened = (choice, told)
        self.changed.set()


@contextmanager
def _raw_keys(typed: Callable[[str], None]) -> Iterator[None]:
    """Hand over keys as they are pressed; Ctrl-C stays a signal. The terminal's ways are given back."""
    import termios
    import tty

    ways, stop = termios.tcgetattr(0), signal.getsignal(signal.SIGTSTP)
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            told = os.read(0, 1024)
        except OSError:
            told = b""
        typed(told.decode(errors="replace") if told else "\x04")  # the terminal is gone

    try:
        tty.setcbreak(0)
        signal.signal(
            signal.SIGTSTP, signal.SIG_IGN
        )  # stopped in the middle, it would leave a screen of its own
        loop.add_reader(0, read)
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        raise exits.ReaderGone from error  # nobody sees what is drawn
    finally:
        loop.remove_reader(0)
        signal.signal(signal.SIGTSTP, stop)
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(0, termios.TCSADRAIN, ways)


@contextmanager
def _signals(resized: Callable[[], None]) -> Iterator[None]:
    """Being told to end, or a closed terminal, ends it the clean way too; a resized one is drawn anew at once."""
    loop, running = asyncio.get_running_loop(), asyncio.current_task()
    told: list[int] = []

    def end(number: int) -> None:
        told.append(number)
        if running is not None:
            running.cancel()

    for number in ENDING:
        loop.add_signal_handler(number, end, number)
    loop.add_signal_handler(signal.SIGWINCH, resized)
    try:
        yield
    except asyncio.CancelledError:
        if not told:
            raise
        exits.leave(128 + told[0])
    finally:
        for number in (*ENDING, signal.SIGWINCH):
            loop.remove_signal_handler(number)
