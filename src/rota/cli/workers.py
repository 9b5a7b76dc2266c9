"""`rota workers`: who is at work, and what can be asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import exits, worker_orders, worker_records
from rota.cli.commands import Call, Group, with_admin
from rota.cli.params import WorkerId
from rota.cli.words import cell, many

if TYPE_CHECKING:
    from uuid import UUID

    from rota.admin import Admin


@click.group(
    "workers",
    cls=Group,
    invoke_without_command=True,
    examples=(
        "rota workers",
        "rota workers list --all",
        "rota workers show 0198c1a2-…",
        "rota workers drain 0198c1a2-… --reason 'deploy of v9'",
        "rota workers drain --host web-1 --yes",
        "rota workers list --json | jq '.[].memory'",
    ),
)
@click.pass_context
def workers(ctx: click.Context) -> None:
    """Who is at work: where, how full, on which queues, with which code.

    Without a verb it lists them. `drain` and `stop` ask them to go, from wherever you are.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_workers)


@workers.command("list", examples=("rota workers list", "rota workers list --all --json"))
@click.option("--all", "everything", is_flag=True, help="Those that ended in the last hour too.")
@with_admin
async def list_workers(call: Call, admin: Admin, everything: bool) -> None:
    """List the workers that are alive.

    Columns: host, process, state (alive, draining, stopping, lost or gone), slots in use, slots, queues, code
    version, memory in bytes, since, session.
    """
    seen = await admin.workers()
    found = [view for view in seen if everything or view.living]
    now = await admin.store.now()
    call.output.table(
        worker_records.HEADERS,
        [worker_records.row(view, view.record.started_at, view.record.memory) for view in found],
        shown=[[cell(part) for part in worker_records.shown(view, now)] for view in found],
        records=[worker_records.record_of(view) for view in found],
    )
    lost = [view for view in seen if view.state == "lost"]
    if lost and not everything:
        call.output.words(
            f"{many(len(lost), 'worker')} stopped beating lately; --all shows {'it' if len(lost) == 1 else 'them'} too."
        )
    if not any(view.living for view in seen):
        call.output.words("No worker is running. Start one: rota worker APP")
    if not found:
        exits.leave(exits.NOTHING)


@workers.command("show", examples=("rota workers show 0198c1a2-…", "rota workers show 0198c1a2-… --json"))
@click.argument("session", metavar="ID", type=WorkerId())
@with_admin
async def show(call: Call, admin: Admin, session: UUID) -> None:
    """Show one worker: its lanes and tasks, how full it is, and what was asked of it."""
    view = await worker_records.known(call, admin, session)
    now = await admin.store.now()
    if call.output.as_json:
        call.output.value(worker_records.record_of(view))
        return
    row = worker_records.row(view, view.record.started_at, view.record.memory)
    words = map(cell, worker_records.shown(view, now))
    call.output.fields(
        [*zip(worker_records.HEADERS, row, strict=True), *worker_records.more(view, now)],
        shown=dict(zip(worker_records.HEADERS, words, strict=True)),
    )


for verb in (worker_orders.drain, worker_orders.stop):
    workers.add_command(verb)
