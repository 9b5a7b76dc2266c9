"""`rota audit`: who did what to which job, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from rota._core.actions import AuditFilter
from rota.cli import dead_records, exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.dead_filters import Since, moment
from rota.cli.params import JobId
from rota.cli.words import many

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID

    from rota.admin import Admin

HASH = re.compile("[0-9a-f]{64}")


@click.group(
    "audit",
    cls=Group,
    examples=(
        "rota audit list --since 1d",
        "rota audit verify",
        "rota audit list --actor ann@office --action delete --json",
    ),
)
def audit() -> None:
    """Read the audit: who did what to which job, and why."""


@audit.command(
    "list",
    examples=(
        "rota audit list --since 2h",
        "rota audit list --job 0198c1a2-…",
        "rota audit list --action job_dlq_discarded --json",
    ),
)
@click.option("--actor", help="Only what this person or process did.")
@click.option("--action", help="Only this action, such as retry or job_dlq_discarded.")
@click.option("--job", "job_id", type=JobId(), help="Only what was done to this job.")
@click.option("--about", help="Only what was done to this, such as schedule:nightly or operation:ID.")
@click.option("--correlation", "correlation_id", help="Only what was done to jobs of this correlation.")
@click.option("--since", type=Since(), help="Only since then, or within so long: 2026-03-01T09:30, 2h.")
@click.option("--until", type=Since(), help="Only until then, or longer ago: 2026-03-01T09:30, 2h.")
@click.option(
    "--limit", "-n", default=50, show_default=True, type=click.IntRange(1, 100_000), help="At most so many."
)
@with_admin
async def list_audit(
    call: Call,
    admin: Admin,
    *,
    actor: str | None,
    action: str | None,
    job_id: UUID | None,
    about: str | None,
    correlation_id: str | None,
    since: datetime | timedelta | None,
    until: datetime | timedelta | None,
    limit: int,
) -> None:
    """List audit rows, newest first.

    Columns: when, who, did, job, from, to, reason, about; with --json also origin: the address and the request
    that it came from.
    """
    now = await admin.store.now()
    wanted = AuditFilter(
        actor, action, job_id, about, correlation_id, moment(since, now), moment(until, now), limit
    )
    found = await admin.trail(wanted)
    call.output.table(
        dead_records.AUDIT_HEADERS,
        [dead_records.audit_row(done) for done in found],
        shown=[dead_records.audit_shown(done, now) for done in found],
        records=[dead_records.audit_record(done) for done in found],
    )
    if not found:
        call.output.words("Nothing in the audit matches.")
        exits.leave(exits.NOTHING)
    if len(found) == limit and found[-1].at is not None:
        call.output.words(f"{many(limit, 'row')} shown; for older ones: --until {found[-1].at.isoformat()}")


@audit.command(
    "verify",
    examples=(
        "rota audit verify",
        "rota audit verify | grep '^head' | cut -f2 > head.txt    # keep it where the database's owner cannot write",
        'rota audit verify --expect "$(cat head.txt)"',
    ),
)
@click.option(
    "--expect", metavar="HASH", help="A hash that was told as the head one day: it must be in the chain."
)
@with_admin
async def verify(call: Call, admin: Admin, *, expect: str | None) -> None:
    """Look whether a row of the audit was changed, moved or taken out.

    Every row is sealed with all rows before it when it is committed. Who owns the database can
    still make the whole chain anew: keep the head that this prints elsewhere, and give it with
    --expect the next time. Ends with 1 if something is wrong, and names the first row that is.
    """
    if expect is not None and not HASH.fullmatch(expect):
        raise click.BadParameter(
            f"{expect!r} is no hash of 64 hex digits, as `rota audit verify` prints it.",
            param_hint="--expect",
        )
    found = await admin.verify_audit(expect)
    if call.output.as_json:
        call.output.value(found._asdict())
    else:
        call.output.fields(list(found._asdict().items()))
    if found.fault is not None:
        call.output.words(f"The audit was tampered with: {found.fault}.")
        exits.leave(exits.PROBLEMS)
    call.output.words("The audit is as it was written. Rows from before it was sealed are not looked at.")
