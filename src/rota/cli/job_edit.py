"""`rota jobs edit`: other arguments, priority, queue or time for a job that has not started."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from rota.cli.arguments import payload_from
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import JobId, Length, Moment

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rota.admin import Admin


@click.command(
    "edit",
    cls=Command,
    examples=(
        "rota jobs edit ID --priority 10 --reason 'the customer waits'",
        "rota jobs edit ID to=ann@example.org copies=2",
        "rota jobs edit ID --queue slow --in 2h",
    ),
)
@click.argument("job_id", metavar="ID", type=JobId())
@click.argument("pairs", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--priority", type=click.IntRange(0, 32_767), help="Lower runs first; 100 is normal.")
@click.option("--queue", "-q", help="Where it waits from now on.")
@click.option("--in", "delay", type=Length(), metavar="DURATION", help="Due after so long: 30s, 5m, 1h30m.")
@click.option("--at", type=Moment(), metavar="TIME", help="Due then; local time without a zone.")
@click.option("--reason", help="Why; kept in the audit.")
@with_admin
async def edit(
    call: Call,
    admin: Admin,
    *,
    job_id: UUID,
    pairs: tuple[str, ...],
    delay: float | None,
    at: datetime | None,
    reason: str | None,
    **changed: Any,
) -> None:
    """Change a job that waits or is held: its arguments, priority, queue or time.

    Arguments that are not named stay as they are. A dead job is tried again with others by `rota dlq reprocess --edit`.
    """
    from rota.admin.editing import Edit

    if delay is not None and at is not None:
        raise click.UsageError("--in and --at were both given; a job becomes due once.")
    if (
        not pairs
        and delay is None
        and at is None
        and not any(value is not None for value in changed.values())
    ):
        raise click.UsageError("nothing is to be edited; give NAME=VALUE, --priority, --queue, --in or --at.")
    job = await admin.job(job_id)
    specs = {spec.name: spec for spec in await admin.store.tasks()} if pairs else {}
    schema = json.loads(specs[job.task].schema_json) if job.task in specs else {}
    run_at = at if delay is None else await admin.store.now() + timedelta(seconds=delay)
    args = payload_from(pairs, None, schema) or None
    after = await admin.edit(job_id, Edit(args, run_at=run_at, **changed), reason=reason)
    if call.output.as_json:
        call.output.value(
            {"id": after.id, "priority": after.priority, "queue": after.queue, "run_at": after.run_at}
        )
    named = ", ".join([*(args or ()), *(name for name, value in changed.items() if value is not None)])
    named += (", " if named and run_at else "") + ("due time" if run_at else "")
    call.output.words(f"Edited {after.task} {after.id}: {named}.")
