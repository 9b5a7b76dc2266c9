"""`rota dlq`: the dead letters, and what a person does with them, one by one or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.redaction import HIDDEN
from rota._core.review import Review, ReviewVerb
from rota.cli import dead_records, exits, operations, records
from rota.cli.commands import Call, Group, with_admin
from rota.cli.dead_actions import act
from rota.cli.dead_filters import Rate, letter_options, letters_from
from rota.cli.params import JobId
from rota.cli.words import many

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rota.admin import Admin
    from rota.admin.dead_letters import LetterView


@click.group(
    "dlq",
    cls=Group,
    invoke_without_command=True,
    examples=(
        "rota dlq                                          those that wait for review, newest first",
        "rota dlq list --task send_email",
        "rota dlq show 0198c1a2-…",
        "rota dlq ack 0198c1a2-… --reason 'known, ticket 12'",
        "rota dlq reprocess 0198c1a2-… --edit to=ann@example.org",
        "rota dlq reprocess --group 3f9a1c02be77 --rate 10/s --dry-run",
    ),
)
@click.pass_context
def dlq(ctx: click.Context) -> None:
    """Look at dead letters, and acknowledge, discard or reprocess them.

    Without a verb it lists those that wait for review.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_letters)


@dlq.command(
    "list",
    examples=("rota dlq list", "rota dlq list --since 2h --error-class timeout", "rota dlq list --json"),
)
@letter_options
@click.option(
    "--limit", "-n", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most so many."
)
@click.option("--before", type=JobId(), help="Only those older than this one: the next page.")
@click.option("--all", "everything", is_flag=True, help="Those whose review is closed too.")
@click.option(
    "--reveal", is_flag=True, help="Show what looks like a secret or content too; else it is hidden."
)
@with_admin
async def list_letters(
    call: Call,
    admin: Admin,
    *,
    limit: int,
    before: UUID | None,
    everything: bool,
    reveal: bool,
    **options: Any,
) -> None:
    """List dead letters, newest first: those that wait for review or are being reprocessed, unless told.

    Columns: id, review, task, group, error, died, note.
    """
    now = await admin.store.now()
    wanted = letters_from(options, now, limit=limit, before=before)
    if not wanted.reviews and not everything:
        wanted = wanted._replace(reviews=(Review.PENDING, Review.REPROCESSING))
    found = [dead_records.revealed(letter, reveal=reveal) for letter in await admin.dead_letters(wanted)]
    call.output.table(
        dead_records.HEADERS,
        [dead_records.row(letter) for letter in found],
        shown=[dead_records.shown(letter, now) for letter in found],
        records=[dead_records.record(letter, now) for letter in found],
    )
    if not found:
        call.output.words("No dead letter matches.")
        exits.leave(exits.NOTHING)
    if len(found) == limit:
        call.output.words(f"{many(limit, 'dead letter')} shown; the next page: --before {found[-1].job.id}")


@dlq.command("show", examples=("rota dlq show 0198c1a2-…", "rota dlq show 0198c1a2-… --json | jq .attempts"))
@click.argument("job_id", metavar="ID", type=JobId())
@click.option(
    "--reveal", is_flag=True, help="Show what looks like a secret or content too; else it is hidden."
)
@with_admin
async def show(call: Call, admin: Admin, job_id: UUID, reveal: bool) -> None:
    """Show one dead letter: why it died, every attempt, its payload, and what was done about it."""
    stored = await admin.show_dead_letter(job_id)
    view = stored._replace(letter=dead_records.revealed(stored.letter, reveal=reveal))
    if view.letter != stored.letter:
        call.output.words(f"What looks like a secret or content is hidden ({HIDDEN}); --reveal shows it.")
    if call.output.as_json:
        call.output.value(dead_records.details(view))
        return
    pairs, told = dead_records.fields(view)
    if not call.output.terminal:
        pairs.append(("payload", view.letter.job.payload_json))
    call.output.fields(pairs, shown=told)
    if call.output.terminal:
        _history(call, view)
    _advice(call, view)


def _history(call: Call, view: LetterView) -> None:
    output = call.output
    output.block(dead_records.payload(view.letter), name="Payload")
    if view.attempts:
        rows = [records.attempt_row(seen, view.now) for seen in view.attempts]
        output.table(records.ATTEMPT_HEADERS, rows, records=(), title="Attempts that failed")
        if view.attempts[-1].stack:
            output.block(view.attempts[-1].stack, name="Stack of the last one")
    if view.audit:
        rows = [records.audit_row(done, view.now) for done in view.audit]
        output.table(records.AUDIT_HEADERS, rows, records=(), title="What was done")


def _advice(call: Call, view: LetterView) -> None:
    letter = view.letter
    if letter.newer_success is not None and letter.review is Review.PENDING:
        call.output.words(
            f"Job {letter.newer_success} did the same work later and completed: perhaps nothing is left to do "
            f"(`rota dlq ack {letter.job.id} --reason superseded`)."
        )
    elif letter.review is Review.PENDING:
        call.output.words(
            f"`rota dlq reprocess {letter.job.id}` does its work again; `ack` and `discard` close its review."
        )


def _ids(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing."),
        click.option(
            "--rate", type=Rate(), help="By filter: no faster than so many, such as 10/s or 100/min."
        ),
        click.option("--all", "everything", is_flag=True, help="Every dead letter that waits for review."),
        letter_options,
        click.argument("job_ids", metavar="[ID]...", nargs=-1, type=JobId()),
    ):
        command = option(command)
    return command


_why = click.option("--reason", required=True, help="Why; kept with the dead letter and in the audit.")


@dlq.command(
    "ack",
    examples=(
        "rota dlq ack 0198c1a2-… --reason 'known, ticket 12'",
        "rota dlq ack --group 3f9a1c02be77 --reason 'customer was told' --dry-run",
    ),
)
@_ids
@_why
@with_admin
async def ack(call: Call, admin: Admin, **options: Any) -> None:
    """Acknowledge dead letters: somebody knows, and nothing more is done.

    Retention removes them 30 days later.
    """
    await act(call, admin, ReviewVerb.ACKNOWLEDGE, **options)


@dlq.command(
    "discard",
    examples=(
        "rota dlq discard 0198c1a2-… --reason 'test data' --yes",
        "rota dlq discard --task import_feed --since 2d --reason 'the feed is closed'",
    ),
)
@_ids
@_why
@with_admin
async def discard(call: Call, admin: Admin, **options: Any) -> None:
    """Discard dead letters: their work is given up.

    Retention removes them 30 days later.
    """
    await act(call, admin, ReviewVerb.DISCARD, **options)


@dlq.command(
    "reprocess",
    examples=(
        "rota dlq reprocess 0198c1a2-… --reason 'mail server is back'",
        "rota dlq reprocess 0198c1a2-… --edit to=ann@example.org --edit retries:=3",
        "rota dlq reprocess --group 3f9a1c02be77 --rate 100/min --yes",
    ),
)
@_ids
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another argument; name:=JSON too. One id only.",
)
@click.option("--reason", help="Why; kept with the dead letter and in the audit.")
@with_admin
async def reprocess(call: Call, admin: Admin, **options: Any) -> None:
    """Do the work of dead letters again, each in a new job with its payload.

    The dead letter keeps everything. It is resolved when the new job completes, and back in review when that dies too.
    """
    await act(call, admin, ReviewVerb.REPROCESS, **options)


dlq.add_command(operations.operations)
