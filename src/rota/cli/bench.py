"""`rota bench`: how fast Rota is here, on this server and machine, beside plain SQL in the same run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call
from rota.cli.params import Length
from rota.cli.words import many, percent, span

if TYPE_CHECKING:
    from rota.cli.benching import Figure, Report
    from rota.config import Settings

HEADERS = ("measure", "rota", "plain SQL", "ratio", "compared with")
SHORTEST, LONGEST = 1.0, 600.0


@click.command(
    "bench",
    cls=Command,
    examples=(
        "rota bench",
        "rota bench --seconds 60 --json > bench.json",
        "rota bench --url postgresql://owner@host/shop",
    ),
)
@click.option(
    "--seconds", type=Length(), default=10.0, show_default=True, help="How long to measure, all in all."
)
@click.option("--yes", "-y", is_flag=True, help="Also where workers are at work, which it would slow down.")
@with_call
def bench(call: Call, *, seconds: float, yes: bool) -> None:
    """Measure Rota on this store and machine, beside plain SQL.

    In a database of its own, which is dropped at the end, also after Ctrl-C: your jobs are not touched. Producer and
    worker share this process. Columns: measure, Rota, plain SQL on the same database, their ratio, and which SQL that
    is. Absolute numbers hold on this machine only, ratios tell more.
    """
    import asyncio

    from rota.cli.logs import hushed

    if not SHORTEST <= seconds <= LONGEST:
        raise click.UsageError(
            f"--seconds {seconds:g} tells nothing: give from {SHORTEST:g} to {LONGEST:g}, such as 10."
        )
    settings = call.settings()
    if settings.address().startswith("memory"):
        raise exits.Wrong("a memory store has no server to measure. Give --url postgresql://… or embedded:.")
    with _ends_in_order(), hushed():  # the worker's own words are not about anybody's jobs
        asyncio.run(_unless_at_work(call, settings, yes=yes))
        report = _measure(call, settings, seconds)
    call.output.table(
        HEADERS,
        [_row(figure) for figure in report.figures],
        shown=[_shown(figure) for figure in report.figures],
        records=[figure._asdict() | {"ratio": figure.ratio} for figure in report.figures],
    )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    machine = f"{many(os.cpu_count() or 1, 'processor')} (load {load:.1f})"
    told = f"PostgreSQL {report.server}, {machine}, {report.jobs:,} jobs in {span(seconds)}."
    call.output.words(f"{told} The database is dropped again.")


@contextmanager
def _ends_in_order() -> Iterator[None]:
    """SIGTERM, and a terminal that is closed, end it as Ctrl-C does, so that the database is dropped."""
    before = {}
    with suppress(ValueError):  # not in the main thread
        for number in (signal.SIGTERM, signal.SIGHUP):
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _unless_at_work(call: Call, settings: Settings, *, yes: bool) -> None:
    """Refuse where somebody's workers would be slowed down, unless that is wanted."""
    from rota.admin import Admin
    from rota.cli.commands import whoami
    from rota.errors import SchemaOutdated

    if yes or _asleep(settings):
        return
    store = call.open_store()
    try:
        living = await Admin(store, actor=whoami()).living()
    except SchemaOutdated:  # nobody works there yet
        return
    finally:
        await store.close()
    if living:
        who = f"{many(len(living), 'worker')} {'is' if len(living) == 1 else 'are'}"
        raise exits.Refused(
            f"{who} at work on this server, and a benchmark would slow them down. Add --yes to do it anyway, or name "
            "another server by --url."
        )


def _asleep(settings: Settings) -> bool:
    """Whether the store is an embedded server that does not run: nobody works on it, and it need not start."""
    from rota.config import EMBEDDED
    from rota.stores.opening import embedded_path

    address = settings.address()
    if not address.startswith(EMBEDDED):
        return False
    from rota.stores.postgres.embedded import EmbeddedServer

    path = embedded_path(address)
    return not path.exists() or not EmbeddedServer(path).running()


def _measure(call: Call, settings: Settings, seconds: float) -> Report:
    import asyncio

    from rota.cli.benching import PARTS, measured
    from rota.stores.opening import bench_database

    call.output.words("Making a database of its own …")
    with bench_database(settings) as url, call.output.progress("bench", PARTS) as advance:
        return asyncio.run(measured(url, settings, seconds, advance))


def _row(figure: Figure) -> tuple[Any, ...]:
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3f}"
    return (figure.name, f"{figure.rota:.6g}", f"{figure.raw:.6g}", ratio, figure.against)


def _shown(figure: Figure) -> tuple[str, ...]:
    if figure.unit == "s":
        told = (f"{figure.rota * 1000:.1f} ms", f"{figure.raw * 1000:.1f} ms")
        ratio = "" if figure.ratio is None else f"{figure.ratio:.1f} times"
    else:
        told = (f"{figure.rota:,.0f}/s", f"{figure.raw:,.0f}/s")
        ratio = "" if figure.ratio is None else percent(figure.ratio)
    return (figure.name, *told, ratio, figure.against)
