"""`rota doctor`: look at everything that is usually wrong, and say what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.words import many, span
from rota.errors import RotaError
from rota.stores.contract import Finding

if TYPE_CHECKING:
    from rota.admin import Admin

LONG_WAIT = 3600.0
HEADERS = ("level", "what", "fix")


@click.command("doctor", cls=Command, examples=("rota doctor", "rota doctor --url postgresql://… --json"))
@with_admin
async def doctor(call: Call, admin: Admin) -> None:
    """Examine the store and say what to fix.

    Columns: level (ok, warn or bad), what was found, how to fix it. Exit 1 if anything is bad.
    """
    found = [_where(call), *await _of_store(admin)]
    if not any(finding.level == "bad" for finding in found):
        found += await _of_work(admin)
    call.output.table(
        HEADERS,
        [tuple(finding) for finding in found],
        records=[finding._asdict() for finding in found],
    )
    bad = sum(finding.level == "bad" for finding in found)
    warned = sum(finding.level == "warn" for finding in found)
    if bad:
        call.output.words(f"{many(bad, 'problem')}, {many(warned, 'warning')}.")
        exits.leave(exits.PROBLEMS)
    call.output.words("All is well." if not warned else f"No problem, {many(warned, 'warning')}.")


def _where(call: Call) -> Finding:
    """Embedded or server, and who says so: the first thing that is wrong is usually the address."""
    from rota.config import EMBEDDED, masked
    from rota.stores.opening import embedded_path

    settings = call.settings()
    address, origin = settings.address(), settings.origin("url")
    if not address.startswith(EMBEDDED):
        return Finding("ok", f"store: {masked(address)} (from {origin})")
    path = embedded_path(address)
    if settings.production is not None:
        return Finding(
            "warn",
            f"store: the embedded server in {path}, and this is production ({settings.production})",
            "Jobs live and die with this machine; set ROTA_URL to a PostgreSQL server.",
        )
    return Finding("ok", f"store: the embedded server in {path} (from {origin})")


async def _of_store(admin: Admin) -> list[Finding]:
    diagnose = getattr(admin.store, "diagnose", None)
    try:
        if diagnose is not None:
            return list(await diagnose())
        await admin.store.open()
    except RotaError as error:
        return [Finding("bad", f"store: {error}", "Start it, or correct the address.")]
    return [Finding("ok", f"connection: the {admin.store.name} store answers")]


async def _of_work(admin: Admin) -> list[Finding]:
    living, stats = await admin.living(), await admin.stats()
    found = [Finding("ok", f"workers: {many(len(living), 'living session')}")]
    if not living:
        found = [Finding("warn", "workers: none is running", "Start one with `rota worker APP`.")]
    else:
        found += [
            Finding(
                "warn",
                f"tasks: {many(jobs, 'pending job')} of {task!r}, which no living worker knows",
                f"Deploy the code that defines it, or `rota jobs cancel --task {task} --state pending`.",
            )
            for task, jobs in sorted((await admin.unserved()).items())
        ] or [Finding("ok", "tasks: every waiting job has a worker that knows it")]
    found += [
        Finding(
            "warn",
            f"tasks: {row.task!r} is parked; {many(row.crashes, 'job')} killed their process under code version "
            f"{row.code_version}, the last one: {row.what}",
            f"Deploy a repaired version, or `rota tasks release {row.task}`.",
        )
        for row in await admin.parked_tasks()
    ]
    waited = stats.oldest_wait
    if waited is not None and waited.total_seconds() > LONG_WAIT:
        found.append(
            Finding(
                "warn",
                f"queue: the oldest due job has waited {span(waited)}",
                "Add workers or slots (--lane).",
            )
        )
    else:
        found.append(
            Finding(
                "ok", f"queue: {'nothing is due' if waited is None else f'the oldest waits {span(waited)}'}"
            )
        )
    return found
