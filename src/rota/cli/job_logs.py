"""`rota jobs logs`: what a job's attempts logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import JobId
from rota.cli.words import as_json, clean, many

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from rota._core.job_log import LogLine, LogTail
    from rota.admin import Admin

EVERY = 1.0
"""Seconds between two looks of --follow: workers bring lines to the store about so often."""


@click.command(
    "logs",
    cls=Command,
    examples=(
        "rota jobs logs 0198c1a2-…",
        "rota jobs logs 0198c1a2-… --attempt 1",
        "rota jobs logs 0198c1a2-… -f                 until it has ended",
        "rota jobs logs ID --json",
    ),
)
@click.argument("job_id", metavar="ID", type=JobId())
@click.option("--attempt", type=click.IntRange(1), help="Only this attempt; else all of them.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines until the job has ended.")
@with_admin
async def logs(call: Call, admin: Admin, job_id: UUID, attempt: int | None, follow: bool) -> None:
    """Show what a job logged: the newest 50 lines of each attempt, oldest first.

    They reach the store within a second. Where the whole log is kept (ROTA_LOG_LOCATION), its place is said too.
    """
    if follow:
        await _follow(call, admin, job_id, attempt)
        return
    tails = [tail for tail in await admin.logs(job_id) if attempt in (None, tail.attempt)]
    if call.output.as_json:
        call.output.value([record(tail) for tail in tails])
    else:
        for tail in tails:
            call.output.words(heading(tail))
            for line in tail.lines:
                call.output.text(clean(words(line)))
    if not tails:
        which = "It" if attempt is None else f"Attempt {attempt}"
        call.output.words(f"{which} logged nothing. Handlers log by current_job().log, or by logging.")
        exits.leave(exits.NOTHING)


async def _follow(call: Call, admin: Admin, job_id: UUID, attempt: int | None) -> None:
    """Say each line once, as it comes. As JSON, a line each."""
    import asyncio

    seen: dict[int, int] = {}
    while True:
        # Asked before the lines: what a job logged last is there once it has ended, and is not missed.
        job = await admin.job(job_id)
        for tail in await admin.logs(job_id):
            if attempt in (None, tail.attempt):
                fresh, missed = unseen(tail, seen.get(tail.version, 0))
                seen[tail.version] = tail.written
                if missed:
                    call.output.words(f"… {many(missed, 'line')} came too quickly to be kept here.")
                for line in fresh:
                    call.output.text(_line_of(call, tail, line))
        if job.state.terminal:
            call.output.words(f"The job is {job.state.value}.")
            return
        await asyncio.sleep(EVERY)


def unseen(tail: LogTail, seen: int) -> tuple[Sequence[LogLine], int]:
    """The lines that came after the first so many, and how many of them are no longer kept."""
    new = tail.written - seen
    kept = tail.lines[max(0, len(tail.lines) - new) :] if new > 0 else ()
    return kept, max(0, new - len(tail.lines)) if seen else 0


def _line_of(call: Call, tail: LogTail, line: LogLine) -> str:
    if not call.output.as_json:
        return clean(words(line))
    told = {"attempt": tail.attempt, "timestamp": line.at, "level": line.level, "message": line.message}
    return as_json(told, indent=None)


def heading(tail: LogTail) -> str:
    """An attempt's log in one line."""
    said = f"Attempt {tail.attempt}: {many(tail.written, 'line')}"
    if tail.written > len(tail.lines):
        said += f", the newest {len(tail.lines)} are here"
    return said + (f"; the whole is at {tail.location}." if tail.location else ".")


def words(line: LogLine) -> str:
    return f"{line.at:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f" {line.level:<7} {line.message}"


def record(tail: LogTail) -> dict[str, Any]:
    """An attempt's log as JSON."""
    return {
        "attempt": tail.attempt,
        "version": tail.version,
        "written": tail.written,
        "entries": [
            {"timestamp": line.at.isoformat(), "level": line.level, "message": line.message}
            for line in tail.lines
        ],
        "log_location": tail.location,
    }


def newest(tails: Sequence[LogTail]) -> dict[str, Any]:
    """The latest attempt's log, as `show` has it."""
    whole = record(tails[-1]) if tails else {"entries": [], "log_location": None}
    return {name: whole[name] for name in ("entries", "log_location")}
