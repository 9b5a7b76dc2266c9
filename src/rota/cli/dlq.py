"""`rota dlq`: the dead letters, and what a person does with them, one by one or many at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rota._core.dead_letter import DeadFilter
from rota._core.redaction import HIDDEN
from rota._core.review import Review, ReviewVerb
from rota.cli import dead_records, exits, operations, records
from rota.cli.commands import Call, Group, with_admin
from rota.cli.dead_filters import Rate, letter_options, letters_from
from rota.cli.params import JobId
from rota.cli.words import many
from rota.errors import JobChanged, JobNotFound, MoveRefused, NotUnique

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rota.admin import Admin
    from rota.admin.dead_letters import LetterView, ReviewDone

ANSWER = ("id", "did", "from", "to", "job")
PREVIEWED = 10


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
    await _act(call, admin, ReviewVerb.ACKNOWLEDGE, **options)


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
    await _act(call, admin, ReviewVerb.DISCARD, **options)


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
    await _act(call, admin, ReviewVerb.REPROCESS, **options)


async def _act(
    call: Call,
    admin: Admin,
    verb: ReviewVerb,
    *,
    job_ids: tuple[UUID, ...],
    everything: bool,
    rate: float | None,
    reason: str | None,
    yes: bool,
    dry_run: bool,
    edits: tuple[str, ...] = (),
    **filters: Any,
) -> None:
    wanted = letters_from(filters, await admin.store.now())
    filtered = wanted != DeadFilter() or everything
    if job_ids and filtered:
        raise click.UsageError("give ids or a filter, not both.")
    if not job_ids and not filtered:
        raise click.UsageError(
            f"say which dead letter to {verb.value}: an id, a filter such as --group, or --all."
        )
    if edits and len(job_ids) != 1:
        raise click.UsageError("--edit works on one id: each dead letter has its own payload.")
    if filtered:
        await _many(call, admin, verb, wanted, rate=rate, reason=reason, yes=yes, dry_run=dry_run)
        return
    if rate is not None:
        raise click.UsageError("--rate works with a filter; ids are few.")
    await _each(call, admin, verb, job_ids, edits, reason=reason, yes=yes, dry_run=dry_run)


async def _each(
    call: Call,
    admin: Admin,
    verb: ReviewVerb,
    job_ids: tuple[UUID, ...],
    edits: tuple[str, ...],
    *,
    reason: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Act on each id; one that is refused or unknown does not stop the others."""
    if verb is ReviewVerb.DISCARD and not dry_run:
        named = f"dead letter {job_ids[0]}" if len(job_ids) == 1 else many(len(job_ids), "dead letter")
        call.output.confirm(f"Discard {named}? The work will not be done.", yes=yes)
    taken: list[ReviewDone] = []
    problems: list[Exception] = []
    for job_id in job_ids:
        try:
            changes = await _edits(admin, job_id, edits)
            if dry_run:
                taken.append(await admin.plan_review(verb, job_id, edits=changes))
            elif verb is ReviewVerb.REPROCESS:
                taken.append(await admin.reprocess(job_id, reason=reason, edits=changes))
            else:
                taken.append(await getattr(admin, verb.value)(job_id, reason=reason))
        except (MoveRefused, JobChanged, JobNotFound, NotUnique) as error:
            problems.append(error)
            call.output.words(f"rota: {error}")
        else:
            call.output.words(_sentence(taken[-1], dry_run=dry_run))
    if not call.output.terminal:
        rows = [(done.letter.job.id, verb.value, done.before, done.after, done.new_job) for done in taken]
        listed = [
            dict(zip(ANSWER, (None if value is None else str(value) for value in row), strict=True))
            | {"dry_run": dry_run, "already": done.already}
            for row, done in zip(rows, taken, strict=True)
        ]
        call.output.table(ANSWER, rows, records=listed)
    if problems:
        unknown = all(isinstance(problem, JobNotFound) for problem in problems)
        exits.leave(exits.NOTHING if unknown and not taken else exits.PROBLEMS)


async def _edits(admin: Admin, job_id: UUID, pairs: tuple[str, ...]) -> dict[str, Any] | None:
    """What --edit says, in the types of the task's published schema."""
    if not pairs:
        return None
    from rota.cli.arguments import payload_from

    letter = await admin.dead_letter(job_id)
    specs = {spec.name: spec for spec in await admin.store.tasks()}
    found = specs.get(letter.job.task)
    return payload_from(pairs, None, {} if found is None else json.loads(found.schema_json))


def _sentence(done: ReviewDone, *, dry_run: bool) -> str:
    job = done.letter.job
    if dry_run:
        return f"Would {done.verb.value} {job.id}: {done.before} -> {done.after}"
    match done.verb:
        case ReviewVerb.REPROCESS if done.already:
            return f"{job.id} is being reprocessed already, as job {done.new_job}."
        case ReviewVerb.REPROCESS:
            return f"{job.id} is reprocessed as job {done.new_job} in queue {job.queue!r}."
        case _:
            return f"{job.id} is {done.after}."


async def _many(
    call: Call,
    admin: Admin,
    verb: ReviewVerb,
    wanted: DeadFilter,
    *,
    rate: float | None,
    reason: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Count, ask, act as a tracked operation with a bar, and say what became of all."""
    output = call.output
    try:
        matched = await admin.match(verb, wanted)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if matched.jobs == 0:
        output.words(f"No dead letter to {verb.value} matches.")
        exits.leave(exits.NOTHING)
    named = f"{matched} dead {'letter' if matched.jobs == 1 else 'letters'}"
    if dry_run:
        call.output.words(f"Would {verb.value} {named}; the newest of them:")
        await _preview(call, admin, verb, wanted, matched.jobs)
        return
    output.confirm(f"{verb.value.capitalize()} {named}?", yes=yes)
    operation = await admin.begin_operation(verb, wanted, reason=reason, rate=rate)
    await operations.driven(call, admin, operation)


async def _preview(call: Call, admin: Admin, verb: ReviewVerb, wanted: DeadFilter, matched: int) -> None:
    now = await admin.store.now()
    meant = wanted._replace(reviews=wanted.reviews or (Review.PENDING,), limit=PREVIEWED)
    first = [dead_records.revealed(letter, reveal=False) for letter in await admin.dead_letters(meant)]
    if call.output.as_json:
        newest = [dead_records.record(letter, now) for letter in first]
        call.output.value({"verb": verb.value, "dry_run": True, "matched": matched, "newest": newest})
        return
    call.output.table(
        dead_records.HEADERS,
        [dead_records.row(letter) for letter in first],
        shown=[dead_records.shown(letter, now) for letter in first],
        records=(),
    )


dlq.add_command(operations.operations)
