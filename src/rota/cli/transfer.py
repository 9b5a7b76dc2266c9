"""`rota export` and `rota import`: jobs as lines of JSON, out of one store and into another."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.filters import filter_from, filter_options, words_argument
from rota.cli.words import many

if TYPE_CHECKING:
    from rota.admin import Admin
    from rota.admin.transfers import Imported

LONGEST = 16_777_216
"""Bytes of a line: a job has far fewer, and what is no export must not fill the memory."""
SHOWN = 20
"""Wrong lines that are named one by one; the others are counted."""


@click.command(
    "export",
    cls=Command,
    examples=(
        "rota export state:pending,held --reveal -o waiting.jsonl",
        "rota export --task send_email 'created>1d' | jq -r .id",
        "rota export --reveal | rota import - --url postgresql://…",
    ),
)
@words_argument
@filter_options
@click.option(
    "--out", "-o", default="-", metavar="FILE", help="Write there, and not to stdout; it must not exist yet."
)
@click.option(
    "--reveal",
    is_flag=True,
    help="With what looks like a secret or content, as `rota import` needs it; the audit says so.",
)
@click.option("--reason", help="Why; kept in the audit with --reveal.")
@with_admin
async def export(
    call: Call,
    admin: Admin,
    *,
    words: tuple[str, ...],
    out: str,
    reveal: bool,
    reason: str | None,
    **options: Any,
) -> None:
    """Write jobs as lines of JSON.

    All that is known of each: arguments, options, state, result and failed attempts, oldest job first, read page by
    page. FILTER is a word such as state:dead or queue:mail, as in `rota jobs list`; none means every job.
    """
    said = " ".join([*words, *(f"{name}={value}" for name, value in options.items() if value)])
    wanted = await filter_from(admin, options, words)
    output, jobs, hidden = call.output, 0, False
    with ExitStack() as open_until_done:
        put = None if out == "-" else open_until_done.enter_context(_file(out))
        quiet = out == "-" and output.terminal  # a bar between the lines would help nobody
        advance = None if quiet else open_until_done.enter_context(output.progress("export", None))
        async for page in admin.export(wanted, said=said, reveal=reveal, reason=reason):
            for line in page:
                hidden = hidden or '"hidden": true' in line
                output.text(line) if put is None else put.write(line + "\n")
            jobs += len(page)
            if advance is not None:
                advance(jobs)
        if not jobs:
            output.words("No job matches.")
            exits.leave(exits.NOTHING)
    output.words(f"{many(jobs, 'job')} exported" + (f" to {out}." if out != "-" else "."))
    if hidden:
        output.words(
            "What looks like a secret or content is hidden (***); --reveal writes it, so that it can be imported."
        )
    if out != "-" and output.as_json:
        output.value({"exported": jobs, "file": out, "hidden": hidden})


@contextmanager
def _file(name: str) -> Iterator[IO[str]]:
    """A file for its owner's eyes, which is there under its name only once it is whole."""
    import tempfile

    path = Path(name)
    if path.exists():
        raise exits.Wrong(f"{name!r} exists already. Choose another name for -o, or remove it.")
    try:
        # A name that nobody has: what others left there, or can read, is not written into.
        handle, part_name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise exits.Wrong(
            f"{name!r} cannot be written: {error.strerror}. Choose another place for -o."
        ) from error
    part, writing = Path(part_name), os.fdopen(handle, "w", encoding="utf-8")
    try:
        with writing:
            yield writing
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


@click.command(
    "import",
    cls=Command,
    examples=(
        "rota import waiting.jsonl --dry-run",
        "rota import waiting.jsonl --hold             held, until you have looked",
        "rota export --reveal | rota import - --url postgresql://…",
    ),
)
@click.argument("file", metavar="FILE|-")
@click.option("--hold", is_flag=True, help="Bring all in as held; `rota jobs release` lets them run.")
@click.option("--dry-run", is_flag=True, help="Check every line and say what would be done; change nothing.")
@click.option("--reason", help="Why; kept in the audit.")
@with_admin
async def import_(
    call: Call, admin: Admin, *, file: str, hold: bool, dry_run: bool, reason: str | None
) -> None:
    """Bring exported jobs into this store.

    Jobs that waited or were held come as they were: id, arguments, queue, tenant, keys, time, priority, and the
    attempts that they had left. Others stay where they are, and are counted. A job that is there is never changed, so
    that an import that was interrupted is simply run again. Wrong lines are named, the others imported; exit 1.
    """
    from rota.admin.transfers import BATCH, Imported

    sum_up, payload_limit = Imported(), call.settings().payload_limit
    with _lines(file) as lines, call.output.progress("import", None) as advance:
        begun = dry_run
        while batch := _batch(lines, BATCH):
            if not begun:
                await admin.import_begins("stdin" if file == "-" else Path(file).name, reason=reason)
                begun = True
            before = sum_up.wrong
            troubles = await admin.import_lines(
                batch, sum_up, hold=hold, dry_run=dry_run, payload_limit=payload_limit
            )
            for place, trouble in enumerate(troubles, before):
                if place < SHOWN:
                    call.output.words(f"rota: {trouble}")
            advance(sum_up.lines)
    _told(call, sum_up, dry_run=dry_run)


def _batch(lines: Iterator[str], most: int) -> list[str]:
    with _stopped_by_ctrl_c():
        return list(islice(lines, most))


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[None]:
    """End a wait for the next line at once: the event loop would only note the signal, and read on."""
    import asyncio

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task = asyncio.current_task()
        if (
            task is not None and task.cancelling()
        ):  # pressed while the last batch was written: heard, not yet told
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _lines(name: str) -> Iterator[Iterator[str]]:
    """The lines of a file or of stdin, none of them longer than a job can be."""
    if name == "-":
        yield _read(getattr(sys.stdin, "buffer", sys.stdin))
        return
    try:
        opened = Path(name).open("rb")  # noqa: SIM115 - closed below, after the errors of opening it are told apart
    except OSError as error:
        raise exits.Wrong(
            f"{name!r} cannot be read: {error.strerror}. Give a file of `rota export`, or -."
        ) from error
    with opened:
        yield _read(opened)


def _read(source: IO[Any]) -> Iterator[str]:
    number = 0
    while line := source.readline(LONGEST):
        number += 1
        if len(line) >= LONGEST:
            raise exits.Wrong(
                f"line {number:,} is longer than {LONGEST:,} bytes; this is no file of `rota export`."
            )
        yield line if isinstance(line, str) else line.decode("utf-8", "surrogateescape")


def _told(call: Call, sum_up: Imported, *, dry_run: bool) -> None:
    output, stays = call.output, sum(sum_up.stays.values())
    if output.as_json:
        output.value(
            {
                "dry_run": dry_run,
                "lines": sum_up.lines,
                "imported": sum_up.stored,
                "already": sum_up.already,
                "stays": dict(sum_up.stays),
                "wrong": sum_up.wrong,
            }
        )
    elif not output.terminal:
        output.text(f"{sum_up.stored}\t{sum_up.already}\t{stays}\t{sum_up.wrong}")
    if sum_up.wrong > SHOWN:
        output.words(f"… and {sum_up.wrong - SHOWN:,} more lines that are wrong.")
    done = "Would import" if dry_run else "Imported"
    output.words(f"{done} {many(sum_up.stored, 'job')}; {sum_up.already:,} already there.")
    for why, jobs in sum_up.stays.items():
        output.words(f"Not imported: {jobs:,} {why}.")
    if sum_up.wrong:
        output.words(f"{many(sum_up.wrong, 'line')} could not be imported. Repair them and run it again.")
        exits.leave(exits.PROBLEMS)
    if not sum_up.stored and not sum_up.already:
        output.words("Nothing in it can be imported." if sum_up.lines else "There is no line in it.")
        exits.leave(exits.NOTHING)
