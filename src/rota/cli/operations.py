"""`rota operations`: bulk work on jobs and dead letters that was begun; look at it, stop it, go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota._core.operation import OperationState
from rota.cli import dead_records, exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.params import JobId

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.operation import Operation
    from rota.admin import Admin


@click.group(
    "operations",
    cls=Group,
    examples=("rota operations list", "rota operations stop ID", "rota operations resume ID"),
)
def operations() -> None:
    """Bulk work on jobs and dead letters: how far it is, stop it, go on with it."""


@operations.command("list", examples=("rota operations list", "rota operations list --json"))
@click.option(
    "--limit", "-n", default=20, show_default=True, type=click.IntRange(1, 1000), help="At most so many."
)
@with_admin
async def list_operations(call: Call, admin: Admin, limit: int) -> None:
    """List operations, newest first.

    Columns: id, state (running, stopped, finished), what, by whom, done, refused, changed, of how many, last step.
    """
    found = await admin.operations(limit=limit)
    now = await admin.store.now()
    call.output.table(
        dead_records.OPERATION_HEADERS,
        [dead_records.operation_row(operation) for operation in found],
        shown=[dead_records.operation_shown(operation, now) for operation in found],
        records=[dead_records.operation_record(operation) for operation in found],
    )
    for operation in found:
        if dead_records.left_behind(operation, now):
            call.output.words(
                f"{operation.id} has not moved for a while; its process may be gone. "
                f"`rota operations resume {operation.id}` goes on with it."
            )
    if not found:
        call.output.words("There was no operation. `rota dlq reprocess --group GROUP` begins one.")
        exits.leave(exits.NOTHING)


@operations.command("stop", examples=("rota operations stop ID --reason 'the mail server is down again'",))
@click.argument("operation_id", metavar="ID", type=JobId())
@click.option("--reason", help="Why; kept in the audit.")
@with_admin
async def stop(call: Call, admin: Admin, operation_id: UUID, reason: str | None) -> None:
    """Stop an operation before its next job or dead letter; what is done stays done."""
    operation = await admin.stop_operation(operation_id, reason=reason)
    _answer(call, operation)
    call.output.words(
        f"Stopped. {dead_records.ended(operation)} `rota operations resume {operation.id}` goes on with it."
    )


@operations.command("resume", examples=("rota operations resume ID", "rota operations resume ID --yes"))
@click.argument("operation_id", metavar="ID", type=JobId())
@click.option("--reason", help="Why; kept in the audit.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@with_admin
async def resume(call: Call, admin: Admin, operation_id: UUID, reason: str | None, yes: bool) -> None:
    """Go on with an unfinished operation from where it is, in this process."""
    from rota.admin.operations import words

    before = await admin.operation(operation_id)
    left = "more" if before.capped else f"{max(before.total - before.progress.met, 0):,}"
    call.output.confirm(f"Go on: {words(before)}, {left} of them left?", yes=yes)
    await driven(call, admin, await admin.resume_operation(operation_id, reason=reason))


async def driven(call: Call, admin: Admin, operation: Operation) -> None:
    """Drive an operation with a bar, and say what became of it."""
    import asyncio

    from rota.admin.operations import words

    output = call.output
    again = f"`rota operations resume {operation.id}` goes on with what is left."
    output.words(f"Operation {operation.id}: {words(operation)}. Ctrl-C stops it; it can be resumed.")
    try:
        with output.progress(operation.verb.value, operation.total) as advance:
            operation = await admin.drive(operation, on_progress=lambda so_far: advance(so_far.met))
    except asyncio.CancelledError:
        output.words(again)
        raise
    _answer(call, operation)
    output.words(dead_records.ended(operation))
    if operation.state is not OperationState.FINISHED:
        output.words(f"It was stopped or taken over; {again}")
    if (
        operation.progress.refused
        or operation.progress.changed
        or operation.state is not OperationState.FINISHED
    ):
        exits.leave(exits.PROBLEMS)


def _answer(call: Call, operation: Operation) -> None:
    if call.output.as_json:
        call.output.value(dead_records.operation_record(operation))
    elif not call.output.terminal:
        progress = operation.progress
        values = (operation.id, operation.state.value, progress.done, progress.refused, progress.changed)
        call.output.text("\t".join(str(value) for value in values))
