"""`rota failures`: dead letters in groups of like ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota._core.dead_letter import DeadFilter
from rota._core.review import Review
from rota.cli import dead_records, exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.words import ago

if TYPE_CHECKING:
    from rota.admin import Admin


@click.group(
    "failures",
    cls=Group,
    invoke_without_command=True,
    examples=(
        "rota failures                                     the groups that wait for review",
        "rota failures list --task send_email",
        "rota failures show 3f9a1c02be77",
        "rota dlq reprocess --group 3f9a1c02be77 --dry-run",
    ),
)
@click.pass_context
def failures(ctx: click.Context) -> None:
    """What failed for good, like failures together.

    Without a verb it lists them: what is typed at night should answer.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_groups)


@failures.command("list", examples=("rota failures list", "rota failures list --task send_email --json"))
@click.option("--task", help="Only groups of this task.")
@click.option("--all", "everything", is_flag=True, help="Those whose review is closed too.")
@click.option(
    "--limit", "-n", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most so many."
)
@with_admin
async def list_groups(call: Call, admin: Admin, task: str | None, everything: bool, limit: int) -> None:
    """List groups of dead letters that wait for review, the one that was seen last first.

    A group has its task, its exception and its place in your code in common.
    Columns: group, letters, trend, task, error, where, first, last, example.
    """
    reviews = tuple(Review) if everything else ()
    found = await admin.failures(DeadFilter(reviews, task=task, limit=limit))
    now = await admin.store.now()
    call.output.table(
        dead_records.GROUP_HEADERS,
        [dead_records.group_row(group) for group in found],
        shown=[dead_records.group_shown(group, now) for group in found],
        records=[dead_records.group_record(group) for group in found],
    )
    if not found:
        call.output.words("Nothing waits for review.")
        exits.leave(exits.NOTHING)
    call.output.words("`rota failures show GROUP` has the stack of one, and what to do with it.")


@failures.command(
    "show", examples=("rota failures show 3f9a1c02be77", "rota failures show 3f9a1c02be77 --json | jq .stack")
)
@click.argument("group")
@with_admin
async def show(call: Call, admin: Admin, group: str) -> None:
    """Show one group: how often and since when, the stack of the newest one, and its newest members."""
    view = await admin.failure(group)
    if call.output.as_json:
        call.output.value(dead_records.group_details(view))
        return
    found, now = view.group, view.now
    pairs: list[tuple[str, object]] = [
        ("group", found.fingerprint),
        ("task", found.task),
        ("error class", found.error_class),
        ("error type", found.error_type),
        ("where", found.frame),
        ("message", found.message),
        ("dead letters", found.letters),
        ("trend", found.trend),
        ("last hour", found.last_hour),
        ("hour before", found.hour_before),
        ("first seen", found.first_seen),
        ("last seen", found.last_seen),
        ("example", found.example),
    ]
    told = {"first seen": ago(found.first_seen, now), "last seen": ago(found.last_seen, now)}
    call.output.fields(pairs, shown=told)
    if call.output.terminal:
        if view.stack:
            call.output.block(view.stack, name="Stack of the newest one")
        rows = [dead_records.shown(letter, now) for letter in view.letters]
        call.output.table(dead_records.HEADERS, rows, records=(), title="The newest")
    call.output.words(
        f"`rota dlq reprocess --group {found.fingerprint}` does their work again; "
        "`ack` and `discard` close their reviews."
    )
