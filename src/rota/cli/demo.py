"""`rota demo`: a finite tour on a server of its own, and then whatever you like."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from rota.cli.commands import Call, Command, with_call
from rota.cli.exits import Refused
from rota.cli.words import many, span

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.cli.tour import Progress, Tour
    from rota.stores.postgres.embedded import EmbeddedServer
    from rota.worker import Worker

LONGEST = 25.0
LOOK_EVERY = 0.2
SAY_EVERY = 1.0
Show: TypeAlias = "Callable[[Sequence[Progress], float], None]"
HEADERS = ("task", "jobs", "done", "retried", "dead", "cancelled", "p50 wait", "p50 run")


@click.command(
    "demo",
    cls=Command,
    examples=("rota demo", "rota demo --dir /tmp/rota-demo", "rota demo --json | jq .tasks"),
)
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="The dashboard's port; 8484 or the next free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the dashboard, on a terminal with a screen.")
@click.option(
    "--dir", "directory", type=click.Path(file_okay=False), help="Where the demo's server keeps its files."
)
@with_call
def demo(call: Call, directory: str | None, *, port: int | None, browser: bool) -> None:
    """Take the tour: a server, a worker and a lively mix of jobs.

    About ten seconds, to be watched here and on the dashboard. On a terminal it stays up afterwards, with a trickle
    of new jobs, so that you can look around and try commands beside it, until Ctrl-C.
    """
    from rota.app import Rota
    from rota.cli.logs import hushed
    from rota.cli.tour import define_tasks
    from rota.config import Settings
    from rota.stores.postgres.embedded import EmbeddedServer

    if call.url is not None:
        raise click.UsageError(
            "the demo has a server of its own; leave --url out, or choose its place with --dir."
        )
    place = Path(directory).absolute() if directory else _place()
    server = EmbeddedServer(place)
    ran_before = server.running()
    _start(call, server)
    url = f"embedded:{place}"
    app = Rota(settings=Settings.load(url=url, app=None))
    define_tasks(app)
    try:
        with hushed():  # failures are part of the show
            asyncio.run(_show(call, app, url, port, browser=browser and call.output.terminal))
    finally:
        if not ran_before:
            server.stop()


def _place() -> Path:
    """The demo's own directory below the user's data, or a passing one where there is no such place."""
    try:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        place = home / "rota" / "demo"
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.access(place.parent, os.W_OK):
            return place
    except (OSError, RuntimeError):  # RuntimeError: this user has no home at all
        pass
    return Path(tempfile.mkdtemp(prefix="rota-demo-")) / "server"


def _start(call: Call, server: EmbeddedServer) -> None:
    began = time.monotonic()
    call.output.words(f"Starting PostgreSQL in {server.path} …")
    server.start()
    call.output.words(f"PostgreSQL {server.version()} is ready ({span(time.monotonic() - began)}).")


async def _show(call: Call, app: Rota, url: str, port: int | None, *, browser: bool) -> None:
    from rota.admin import Admin
    from rota.cli.tour import Tour
    from rota.web import dashboard
    from rota.web.serving import HOST, Served, bind
    from rota.worker import Worker

    served = Served(dashboard(app, name="demo"), bind(HOST, port))
    await app.migrate()
    worker = Worker(app)
    stop = _on_signals(worker)
    working = asyncio.create_task(worker.run())
    try:
        await _begun(worker, working)
        call.output.words(f"Worker: {sum(lane.slots for lane in worker.lanes)} slots.")
        await served.start()
        link = served.link()
        call.output.words(f"Dashboard: {link}")
        if browser:
            _open(link)
        tour = Tour(app, Admin(app.store, actor="rota demo"), f"demo-{int(time.time())}")
        jobs = await tour.enqueue()
        call.output.words(
            f"{many(jobs, 'job')} enqueued, {many(tour.duplicates, 'duplicate')} recognised by key."
        )
        await _follow(call, tour, stop)
        _sum_up(call, await tour.look(), tour)
        _next_steps(call, url)
        if call.output.terminal and not stop.is_set():
            call.output.words(f"\nThe dashboard and the worker stay up: {served.link()}\nStop with Ctrl-C.")
            await tour.trickle(stop)
    finally:
        await served.stop()
        worker.stop(now=True)
        await asyncio.wait([working])
        await app.close()


def _open(link: str) -> None:
    """Show it in a browser, where there is a screen for one."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(link)


async def _begun(worker: Worker, working: asyncio.Task[int]) -> None:
    """Wait until the worker works; if it cannot, its error is ours."""
    ready = asyncio.create_task(worker.ready())
    await asyncio.wait([ready, working], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if working.done():
        working.result()


def _on_signals(worker: Worker) -> asyncio.Event:
    """Ctrl-C ends the demo in order, whatever it is doing."""
    stop = asyncio.Event()

    def end() -> None:
        stop.set()
        worker.stop(now=worker.stopping)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # not the main thread
            asyncio.get_running_loop().add_signal_handler(number, end)
    return stop


async def _follow(call: Call, tour: Tour, stop: asyncio.Event) -> None:
    """Show the tour until all its jobs have ended."""
    from rota.cli.tour import line

    draw = _live(call) if call.output.terminal else _lines(call)
    with draw as show:
        while not stop.is_set():
            await tour.cancel_the_long_one()
            seen = await tour.look()
            passed = time.monotonic() - tour.started
            show(seen, passed)
            if all(one.ended == one.jobs for one in seen):
                return
            if passed > LONGEST:
                raise Refused(
                    f"the tour did not end within {LONGEST:g} s ({line(seen, passed).strip()}). "
                    "This machine may be very busy: try again."
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await stop.wait()


@contextmanager
def _lines(call: Call) -> Iterator[Show]:
    """A line a second, for pipes and logs."""
    from rota.cli.tour import line

    next_at = 0.0

    def show(seen: Sequence[Progress], passed: float) -> None:
        nonlocal next_at
        if passed >= next_at or all(one.ended == one.jobs for one in seen):
            next_at = passed + SAY_EVERY
            call.output.words(line(seen, passed))

    yield show


@contextmanager
def _live(call: Call) -> Iterator[Show]:
    """A bar a task, redrawn in place."""
    from rich.live import Live

    with Live(console=call.output.console(), refresh_per_second=8, transient=True) as live:
        yield lambda seen, passed: live.update(_bars(seen, passed), refresh=True)


def _bars(seen: Sequence[Progress], passed: float) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for one in seen:
        words = [
            (f"{number} {word}", style)
            for number, word, style in (
                (one.running, "running", "cyan"),
                (one.retrying, "retrying", "yellow"),
                (one.scheduled, "scheduled", "blue"),
                (one.dead, "dead", "bold red"),
                (one.cancelled, "cancelled", "dim"),
            )
            if number
        ]
        notes = Text(", ").join(Text(text, style) for text, style in words)
        bar = ProgressBar(one.jobs, one.ended, width=30, complete_style="cyan", finished_style="green")
        table.add_row(Text(one.task), bar, Text(f"{one.ended}/{one.jobs}", justify="right"), notes)
    table.add_row(Text(f"{passed:.1f} s", "dim"))
    return table


def _sum_up(call: Call, seen: Sequence[Progress], tour: Tour) -> None:
    rows = [
        (
            one.task,
            one.jobs,
            one.done,
            one.retried,
            one.dead,
            one.cancelled,
            _length(one.wait),
            _length(one.run),
        )
        for one in seen
    ]
    if call.output.as_json:
        tasks = [
            {"task": one.task, "jobs": one.jobs, "done": one.done, "retried": one.retried, "dead": one.dead}
            | {"cancelled": one.cancelled, "wait_p50": one.wait, "run_p50": one.run}
            for one in seen
        ]
        call.output.value({"tasks": tasks, "duplicates": tour.duplicates, "correlation": tour.name})
        return
    call.output.words()
    call.output.columns(HEADERS, rows)
    call.output.words(
        "\nWhat you saw: failed payments were retried until they went through, the broken feed is dead and waits for "
        f"you, the reminder came on time, the order was placed once ({many(tour.duplicates, 'duplicate')} recognised), "
        "and the endless computation was cancelled."
    )


def _length(seconds: float | None) -> str:
    return "-" if seconds is None else span(seconds)


def _next_steps(call: Call, url: str) -> None:
    at = f"--url {shlex.quote(url)}"
    call.output.words(
        "\nTry next:\n"
        f"  rota jobs list {at}\n"
        f"  rota jobs list --state dead {at}\n"
        f"  rota jobs retry --task import_feed {at}\n"
        f"  rota doctor {at}\n"
        "  rota init && rota dev        begin an app of your own"
    )
