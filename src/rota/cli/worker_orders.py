"""`rota workers drain` and `stop`: ask workers to go, wherever they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.worker_order import OrderVerb
from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import WorkerId
from rota.cli.words import many
from rota.cli.worker_records import known, record_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rota.admin import Admin
    from rota.admin.workers import WorkerView

HEADERS = ("session", "host", "process", "before", "after")


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.argument("sessions", metavar="[ID]...", nargs=-1, type=WorkerId()),
        click.option("--host", help="All that are alive on this host."),
        click.option("--all", "everybody", is_flag=True, help="All that are alive."),
        click.option("--reason", help="Why; kept in the audit, and shown beside the worker."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only say who is meant."),
    ):
        command = option(command)
    return command


@click.command(
    "drain",
    cls=Command,
    examples=(
        "rota workers drain 0198c1a2-… --reason 'deploy of v9'",
        "rota workers drain --host web-1 --yes",
        "rota workers drain --all --dry-run",
    ),
)
@_options
@with_admin
async def drain(call: Call, admin: Admin, **options: Any) -> None:
    """Let workers take no more jobs, finish those that run, and go.

    However long that takes. Nobody takes their place: when all processes of a `rota worker` were asked, it ends with
    exit code 0. They hear of it with their next beat, within seconds.
    """
    await _order(call, admin, OrderVerb.DRAIN, **options)


@click.command(
    "stop",
    cls=Command,
    examples=(
        "rota workers stop 0198c1a2-… --reason 'it uses 30 GB' --yes",
        "rota workers stop --host web-1 --yes",
    ),
)
@_options
@with_admin
async def stop(call: Call, admin: Admin, **options: Any) -> None:
    """Let workers do what SIGTERM does: finish within their grace, hand back the rest, and go.

    One that drains can be told to stop. Nobody takes their place.
    """
    await _order(call, admin, OrderVerb.STOP, **options)


async def _order(
    call: Call,
    admin: Admin,
    verb: OrderVerb,
    *,
    sessions: tuple[UUID, ...],
    host: str | None,
    everybody: bool,
    reason: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Ask each of those that are meant; one that refuses does not stop the others."""
    from rota.admin.worker_orders import OrderRefused, WorkerNotFound, check_order

    if sum((bool(sessions), host is not None, everybody)) != 1:
        raise click.UsageError(f"say who is to {verb.value}: ids from `rota workers`, --host HOST or --all.")
    meant = await _meant(call, admin, sessions, host)
    named = f"worker {meant[0]}" if len(meant) == 1 else many(len(meant), "worker")
    if not dry_run:
        call.output.confirm(f"{verb.value.capitalize()} {named}? Nobody takes their place.", yes=yes)
    give = admin.drain_worker if verb is OrderVerb.DRAIN else admin.stop_worker
    asked: list[tuple[WorkerView, WorkerView]] = []
    refused = 0
    for before in meant:
        try:
            if dry_run:
                check_order(before, verb)
                after = before
            else:
                after = await give(before.record.id, reason=reason)
        except (OrderRefused, WorkerNotFound) as error:
            refused += 1
            call.output.words(f"rota: {error}")
        else:
            asked.append((before, after))
            call.output.words(f"Would {verb.value} {before}." if dry_run else f"{after} is {after.state}.")
    if not call.output.terminal:
        rows = [(new.record.id, new.record.host, new.record.pid, old.state, new.state) for old, new in asked]
        call.output.table(
            HEADERS, rows, records=[record_of(view) | {"dry_run": dry_run} for _, view in asked]
        )
    if refused:
        exits.leave(exits.PROBLEMS)


async def _meant(call: Call, admin: Admin, sessions: tuple[UUID, ...], host: str | None) -> list[WorkerView]:
    if sessions:
        return [await known(call, admin, session) for session in dict.fromkeys(sessions)]
    alive = [view for view in await admin.workers() if view.living]
    found = [view for view in alive if host is None or view.record.host == host]
    if not found:
        hosts = ", ".join(sorted({view.record.host for view in alive})) or "none"
        where = "No worker is running." if host is None else f"No worker runs on {host}; hosts: {hosts}."
        call.output.words(where)
        exits.leave(exits.NOTHING)
    return found
