"""`rota jobs`: look at jobs. The verbs that change them are in `job_actions`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rota._core.redaction import HIDDEN, for_people
from rota.cli import archive_records, debug, exits, job_actions, job_edit, job_logs, records, why
from rota.cli.commands import Call, Group, with_admin
from rota.cli.filters import filter_from, filter_options, words_argument
from rota.cli.params import JobId
from rota.cli.words import as_json, many
from rota.errors import JobArchived

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.retention import ArchivedJob
    from rota.admin import Admin
    from rota.admin.reads import JobView


reveal_option = click.option(
    "--reveal", is_flag=True, help="Show what looks like a secret or content too; else it is hidden."
)


@click.group(
    "jobs",
    cls=Group,
    examples=(
        "rota jobs list --state dead --task send_email",
        "rota jobs show 0198c1a2-…",
        "rota jobs why 0198c1a2-…                     why it is not running",
        "rota jobs retry 0198c1a2-… --reason 'mail server is back'",
        "rota jobs retry --task send_email --state dead --dry-run",
    ),
)
def jobs() -> None:
    """Look at jobs, and act on them."""


@jobs.command(
    "list",
    examples=(
        "rota jobs list --state running",
        "rota jobs list state:dead,held task:send_email 'created>1h'",
        "rota jobs list error:TimeoutError args.user.id:7",
        "rota jobs list task:send_email order:priority     what is most urgent",
        "rota jobs list --queue mail --limit 500 --json",
    ),
)
@words_argument
@filter_options
@click.option(
    "--limit", "-n", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most so many."
)
@click.option("--before", type=JobId(), help="Only jobs older than this one: the next page.")
@click.option("--oldest-first", is_flag=True, help="Begin with the oldest.")
@reveal_option
@with_admin
async def list_jobs(call: Call, admin: Admin, words: tuple[str, ...], limit: int, **options: Any) -> None:
    """List jobs, newest first.

    FILTER is a word such as state:dead, queue:mail, args.user.id:7 or 'created>1h' (quoted: a shell reads > itself);
    each one narrows, like the options. Columns: id, state, task, queue, attempt/most, due, created.
    """
    reveal = options.pop("reveal")
    wanted = await filter_from(admin, options, words, limit=limit)
    found = [job if reveal else for_people(job) for job in await admin.list(wanted)]
    now = await admin.store.now()
    call.output.table(
        records.HEADERS,
        [records.row(job, now) for job in found],
        shown=[records.shown(job, now) for job in found],
        records=[records.record(job, now) for job in found],
    )
    if not found:
        call.output.words("No job matches.")
        exits.leave(exits.NOTHING)
    if len(found) == limit and not wanted.oldest_first:
        call.output.words(f"{many(len(found), 'job')} shown; the next page: --before {found[-1].id}")


@jobs.command(
    "show", examples=("rota jobs show 0198c1a2-…", "rota jobs show 0198c1a2-… --json | jq .attempts")
)
@click.argument("job_id", metavar="ID", type=JobId())
@reveal_option
@with_admin
async def show(call: Call, admin: Admin, job_id: UUID, reveal: bool) -> None:
    """Show one job: its fields, payload, result, failed attempts, newest log lines and what people did to it."""
    try:
        stored = await admin.show(job_id)
    except JobArchived as error:
        await _show_summary(call, admin, error.summary)
        return
    view = stored if reveal else stored._replace(job=for_people(stored.job))
    if view.job != stored.job:
        call.output.words(f"What looks like a secret or content is hidden ({HIDDEN}); --reveal shows it.")
    logged = await admin.logs(job_id)
    if call.output.as_json:
        call.output.value(records.details(view) | {"logs": job_logs.newest(logged)})
        return
    pairs, words = records.fields(view)
    if not call.output.terminal:
        pairs += [("payload", view.job.payload_json), ("result", view.job.result_json)]
    call.output.fields(pairs, shown=words)
    if not call.output.terminal:
        for seen in view.attempts:
            ran = records.attempt_row(seen, view.now)[1:6]
            call.output.fields([(f"attempt {seen.attempt}", "  ".join(str(part) for part in ran if part))])
        _show_stacks(call, view)
    else:
        _show_history(call, view)
        for tail in logged[-1:]:
            call.output.block(
                "\n".join(map(job_logs.words, tail.lines)), name=f"Log. {job_logs.heading(tail)}"
            )


async def _show_summary(call: Call, admin: Admin, row: ArchivedJob) -> None:
    if call.output.as_json:
        call.output.value(archive_records.record(row))
        return
    pairs, words = archive_records.fields(row, await admin.store.now())
    call.output.fields(pairs, shown=words)
    call.output.words("It is archived: this summary is what retention left of it.")


def _show_history(call: Call, view: JobView) -> None:
    output = call.output
    output.block(as_json(view.job.payload), name="Payload")
    if view.job.result_json is not None:
        output.block(as_json(json.loads(view.job.result_json)), name="Result")
    if view.attempts:
        rows = [records.attempt_row(seen, view.now) for seen in view.attempts]
        output.table(records.ATTEMPT_HEADERS, rows, records=(), title="Attempts that did not succeed")
        _show_stacks(call, view)
    if view.audit:
        rows = [records.audit_row(done, view.now) for done in view.audit]
        output.table(records.AUDIT_HEADERS, rows, records=(), title="What people did")
    if view.children:
        rows = [records.shown(child, view.now) for child in view.children]
        output.table(records.HEADERS, rows, records=(), title="Jobs that it enqueued")


def _show_stacks(call: Call, view: JobView) -> None:
    """The stack of each failed attempt; one that several share is shown once."""
    shared: dict[str, list[str]] = {}
    for seen in view.attempts:
        if seen.stack:
            shared.setdefault(seen.stack, []).append(str(seen.attempt))
    for stack, attempts in shared.items():
        which = "attempt" if len(attempts) == 1 else "attempts"
        call.output.block(stack, name=f"Stack of {which} {', '.join(attempts)}", piped=True)


for verb in (why.why, job_logs.logs, debug.debug, job_edit.edit, *job_actions.VERBS):
    jobs.add_command(verb)
