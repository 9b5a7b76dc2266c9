"""What the dead-letter commands do: to each of some ids, or to all that match, as a tracked operation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rota._core.dead_letter import DeadFilter
from rota._core.review import Review, ReviewVerb
from rota.cli import dead_records, exits, operations
from rota.cli.commands import Call
from rota.cli.dead_filters import letters_from
from rota.cli.words import many
from rota.errors import JobChanged, JobNotFound, MoveRefused, NotUnique

if TYPE_CHECKING:
    from uuid import UUID

    from rota.admin import Admin
    from rota.admin.dead_letters import ReviewDone

ANSWER = ("id", "did", "from", "to", "job")
PREVIEWED = 10


async def act(
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
    """Do it to these ids, or to all that match the options of `letter_options`."""
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
