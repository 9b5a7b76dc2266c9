"""`rota queues purge`: cancel every job of a queue that does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import exits, operations
from rota.cli.commands import Call, Command, with_admin

if TYPE_CHECKING:
    from rota.admin import Admin


@click.command(
    "purge",
    cls=Command,
    examples=(
        "rota queues purge mail --dry-run",
        "rota queues purge mail --reason 'sent by hand'",
        "rota queues purge mail --yes",
    ),
)
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for the name again.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--reason", help="Why; kept with the jobs and in the audit.")
@with_admin
async def purge(call: Call, admin: Admin, name: str, *, yes: bool, dry_run: bool, reason: str | None) -> None:
    """Cancel every job of a queue that does not run; running jobs are left alone.

    It asks for the queue's name. What it cancels can be retried: rota jobs retry queue:NAME state:cancelled.
    """
    from rota.admin.purging import VERB, checked_name, purge_filter, purge_reason

    output, words = call.output, purge_filter(name)
    matched = await admin.match_jobs(VERB, words)
    if matched.jobs == 0:
        output.words(f"No job waits in the queue {name!r}.")
        exits.leave(exits.NOTHING)
    named = f"{matched} {'job' if matched.jobs == 1 else 'jobs'}"
    if dry_run:
        output.words(f"Would cancel {named} of the queue {name}; what runs is left alone.")
        if output.as_json:
            output.value({"queue": name, "dry_run": True, "matched": matched.jobs, "capped": matched.capped})
        elif not output.terminal:
            output.text(str(matched.jobs))
        return
    if not yes:
        checked_name(
            name, output.ask(f"Cancel {named} of the queue {name}? What runs is left alone. Type its name")
        )
    operation = await admin.begin_job_operation(
        VERB, words, reason=purge_reason(name, reason), expected=matched.jobs
    )
    await operations.driven(call, admin, operation)
