"""`rota failures`: dead letters in groups of like ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.dead_letter import DeadFilter
from rota._core.review import Review, ReviewVerb
from rota.cli import dead_records, exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.dead_actions import act
from rota.cli.dead_filters import Rate
from rota.cli.words import ago

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.admin import Admin


@click.group(
    "failures",
    cls=Group,
    invoke_without_command=True,
    examples=(
        "rota failures                                     the groups that wait for review",
        "rota failures list --task send_email",
        "rota failures show 3f9a1c02be77",
        "rota failures retry 3f9a --reason 'the provider is back'",
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
    """Show one group: how often and since when, the stack of the newest one, and its newest members.

    GROUP may be the beginning of its name, as long as it fits only one.
    """
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
    if view.stack:
        call.output.block(view.stack, name="Stack of the newest one", piped=True)
    if call.output.terminal:
        rows = [dead_records.shown(letter, now) for letter in view.letters]
        call.output.table(dead_records.HEADERS, rows, records=(), title="The newest")
    call.output.words(
        f"`rota failures retry {found.fingerprint}` does their work again; `ack` and `discard` close their reviews."
    )


def _on_group(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing."),
        click.option("--rate", type=Rate(), help="No faster than so many, such as 10/s or 100/min."),
        click.argument("group"),
    ):
        command = option(command)
    return command


_why = click.option("--reason", required=True, help="Why; kept with each dead letter and in the audit.")


async def _act(call: Call, admin: Admin, verb: ReviewVerb, group: str, **options: Any) -> None:
    found = (await admin.failure(group)).group.fingerprint
    await act(call, admin, verb, job_ids=(), everything=False, group=found, **options)


@failures.command(
    "retry",
    examples=(
        "rota failures retry 3f9a1c02be77 --reason 'mail server is back'",
        "rota failures retry 3f9a --rate 100/min --yes",
    ),
)
@_on_group
@click.option("--reason", help="Why; kept with each dead letter and in the audit.")
@with_admin
async def retry(call: Call, admin: Admin, group: str, **options: Any) -> None:
    """Do the work of a group again, each in a new job with its payload: the same as `rota dlq reprocess --group`."""
    await _act(call, admin, ReviewVerb.REPROCESS, group, **options)


@failures.command("ack", examples=("rota failures ack 3f9a1c02be77 --reason 'known, ticket 12'",))
@_on_group
@_why
@with_admin
async def ack(call: Call, admin: Admin, group: str, **options: Any) -> None:
    """Acknowledge a group: somebody knows, and nothing more is done."""
    await _act(call, admin, ReviewVerb.ACKNOWLEDGE, group, **options)


@failures.command("discard", examples=("rota failures discard 3f9a1c02be77 --reason 'test data' --yes",))
@_on_group
@_why
@with_admin
async def discard(call: Call, admin: Admin, group: str, **options: Any) -> None:
    """Discard a group: its work is given up."""
    await _act(call, admin, ReviewVerb.DISCARD, group, **options)
