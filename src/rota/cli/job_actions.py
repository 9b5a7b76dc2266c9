"""`rota jobs retry|cancel|hold|release|fail|kill|delete`: by id, and five of them by filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.actions import GRACE, Verb
from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.filters import filter_from, filter_options
from rota.cli.params import IdOrWord, JobId, Length
from rota.cli.words import many
from rota.errors import JobChanged, JobNotFound, MoveRefused

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rota.admin import Admin
    from rota.admin.actions import Done
    from rota.stores.contract import JobFilter

HEADERS = ("id", "did", "from", "to")
IRREVOCABLE = {Verb.KILL, Verb.DELETE}
"""These ask even for one job."""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing."),
        click.option("--reason", help="Why; kept with the job and in the audit."),
    ):
        command = option(command)
    return command


def _ids_only(command: Callable[..., Any]) -> Callable[..., Any]:
    return _options(click.argument("job_ids", metavar="[ID]...", nargs=-1, type=JobId())(command))


def _bulk_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.argument("given", metavar="[ID|FILTER]...", nargs=-1, type=IdOrWord())(command)
    command = click.option("--limit", type=click.IntRange(1), help="By filter: at most so many.")(command)
    command = click.option("--all", "everything", is_flag=True, help="Every job that the verb is for.")(
        command
    )
    return _options(filter_options(command))


@click.command(
    "retry",
    cls=Command,
    examples=(
        "rota jobs retry ID",
        "rota jobs retry --task send_email --dry-run",
        "rota jobs retry task:send_email error:TimeoutError 'created>1d'",
    ),
)
@_bulk_options
@with_admin
async def retry(call: Call, admin: Admin, **options: Any) -> None:
    """Run dead or cancelled jobs again from their first attempt; waiting ones at once.

    By filter, only dead jobs are meant unless --state says otherwise.
    """
    await _act(call, admin, Verb.RETRY, **options)


@click.command(
    "cancel", cls=Command, examples=("rota jobs cancel ID", "rota jobs cancel ID --force --grace 10s --yes")
)
@_bulk_options
@click.option("--force", is_flag=True, help="Cancel a running job even if its worker does not confirm.")
@click.option(
    "--grace", type=Length(), default=GRACE, help="With --force: how long the worker has.", show_default="25s"
)
@with_admin
async def cancel(call: Call, admin: Admin, **options: Any) -> None:
    """Take waiting jobs off the list; ask the workers of running ones to stop them."""
    await _act(call, admin, Verb.CANCEL, **options)


@click.command(
    "hold", cls=Command, examples=("rota jobs hold ID", "rota jobs hold --queue mail --reason 'smtp is down'")
)
@_bulk_options
@with_admin
async def hold(call: Call, admin: Admin, **options: Any) -> None:
    """Set pending jobs aside until they are released."""
    await _act(call, admin, Verb.HOLD, **options)


@click.command(
    "release", cls=Command, examples=("rota jobs release ID", "rota jobs release --queue mail --yes")
)
@_bulk_options
@with_admin
async def release(call: Call, admin: Admin, **options: Any) -> None:
    """Put held jobs back on the list."""
    await _act(call, admin, Verb.RELEASE, **options)


@click.command(
    "fail",
    cls=Command,
    examples=("rota jobs fail ID --reason 'hangs on a dead peer'", "rota jobs fail ID --no-retry"),
)
@_ids_only
@click.option(
    "--retry/--no-retry",
    "will_retry",
    default=True,
    help="Whether its retry policy gives it another attempt.",
)
@with_admin
async def fail(call: Call, admin: Admin, **options: Any) -> None:
    """Fail the running attempt of a job; its worker can no longer write to it."""
    await _act(call, admin, Verb.FAIL, **options)


@click.command("kill", cls=Command, examples=("rota jobs kill ID --reason 'poison message' --yes",))
@_ids_only
@with_admin
async def kill(call: Call, admin: Admin, **options: Any) -> None:
    """Move an unfinished job to the dead at once."""
    await _act(call, admin, Verb.KILL, **options)


@click.command(
    "delete",
    cls=Command,
    examples=("rota jobs delete ID --yes", "rota jobs delete --state cancelled --dry-run"),
)
@_bulk_options
@with_admin
async def delete(call: Call, admin: Admin, **options: Any) -> None:
    """Remove ended or waiting jobs with their history; the audit stays.

    By filter, only ended jobs are meant unless --state says otherwise.
    """
    await _act(call, admin, Verb.DELETE, **options)


VERBS = (retry, cancel, hold, release, fail, kill, delete)


async def _act(
    call: Call,
    admin: Admin,
    verb: Verb,
    *,
    job_ids: tuple[UUID, ...] = (),
    given: tuple[UUID | str, ...] = (),
    yes: bool,
    dry_run: bool,
    reason: str | None,
    everything: bool = False,
    limit: int | None = None,
    force: bool = False,
    grace: float = GRACE,
    will_retry: bool = True,
    **filters: Any,
) -> None:
    from rota.admin.bulk import STATES

    words = [one for one in given if isinstance(one, str)]
    job_ids = job_ids or tuple(one for one in given if not isinstance(one, str))
    wanted = (await filter_from(admin, filters, words))._replace(oldest_first=False, by_priority=False)
    filtered = wanted != type(wanted)() or everything
    if job_ids and filtered:
        raise click.UsageError("give ids or a filter, not both.")
    if not job_ids and not filtered:
        by_filter = ", a filter such as --task NAME, or --all" if verb in STATES else ""
        raise click.UsageError(f"say which job to {verb.value}: an id{by_filter}.")
    if filtered:
        if force:
            raise click.UsageError("--force works on ids only: it waits for each job's worker.")
        await _many(call, admin, verb, wanted, limit=limit, yes=yes, dry_run=dry_run, reason=reason)
        return
    options = {"force": force, "grace": grace} if verb is Verb.CANCEL else {}
    if verb is Verb.FAIL:
        options = {"will_retry": will_retry}
    await _each(call, admin, verb, job_ids, options, yes=yes, dry_run=dry_run, reason=reason)


async def _each(
    call: Call,
    admin: Admin,
    verb: Verb,
    job_ids: tuple[UUID, ...],
    options: dict[str, Any],
    *,
    yes: bool,
    dry_run: bool,
    reason: str | None,
) -> None:
    """Act on each id; one that is refused or unknown does not stop the others."""
    if not dry_run and (verb in IRREVOCABLE or options.get("force")):
        named = f"job {job_ids[0]}" if len(job_ids) == 1 else many(len(job_ids), "job")
        call.output.confirm(f"{verb.value.capitalize()} {named}?", yes=yes)
    taken: list[Done] = []
    problems: list[MoveRefused | JobChanged | JobNotFound] = []
    for job_id in job_ids:
        try:
            if dry_run:
                planned = {name: value for name, value in options.items() if name != "grace"}
                taken.append(await admin.plan(verb, job_id, **planned))
            else:
                taken.append(await getattr(admin, verb.value)(job_id, reason=reason, **options))
        except (MoveRefused, JobChanged, JobNotFound) as error:
            problems.append(error)
            call.output.words(f"rota: {error}")
        else:
            call.output.words(f"Would: {_plan(taken[-1])}" if dry_run else sentence(taken[-1]))
    if not call.output.terminal:
        rows = [(done.job.id, done.verb.value, done.before, done.after) for done in taken]
        records = [dict(zip(HEADERS, map(str, row), strict=True)) | {"dry_run": dry_run} for row in rows]
        call.output.table(HEADERS, rows, records=records)
    if problems:
        unknown = all(isinstance(problem, JobNotFound) for problem in problems)
        exits.leave(exits.NOTHING if unknown and not taken else exits.PROBLEMS)


def _plan(done: Done) -> str:
    return f"{done.verb.value} {done.job.id}: {done.before} -> {done.after}"


def sentence(done: Done) -> str:
    """What was done, and what that means for the job."""
    job = done.job
    match done.verb, done.after:
        case Verb.RETRY, _:
            return f"{job.id} is pending in queue {job.queue!r} and due now."
        case Verb.CANCEL, "cancelled":
            return f"{job.id} is cancelled."
        case Verb.CANCEL, "cancelling":
            return f"{job.id} is running: its worker was asked to stop it. --force ends it if the worker does not."
        case Verb.CANCEL, after:
            return f"{job.id} could not be stopped in time: it is {after}."
        case Verb.HOLD, _:
            return f"{job.id} is held until `rota jobs release {job.id}`."
        case Verb.RELEASE, _:
            return f"{job.id} is pending in queue {job.queue!r} again."
        case Verb.FAIL, "pending":
            return f"{job.id}: attempt {job.attempt} of {job.max_attempts} was failed; it will be retried."
        case Verb.FAIL, after:
            return f"{job.id}: attempt {job.attempt} of {job.max_attempts} was failed; the job is {after}."
        case Verb.KILL, _:
            return f"{job.id} is dead; `rota jobs retry {job.id}` runs it again."
        case _:
            return f"{job.id} is deleted."


async def _many(
    call: Call,
    admin: Admin,
    verb: Verb,
    wanted: JobFilter,
    *,
    limit: int | None,
    yes: bool,
    dry_run: bool,
    reason: str | None,
) -> None:
    """Count, ask, act in batches with a bar, and say what became of all."""
    output = call.output
    matched = await admin.count(verb, wanted, limit=limit)
    if matched.jobs == 0:
        output.words(f"No job to {verb.value} matches.")
        exits.leave(exits.NOTHING)
    if dry_run:
        output.words(f"Would {verb.value} {matched} {'job' if matched.jobs == 1 else 'jobs'}.")
        if output.as_json:
            output.value(
                {"verb": verb.value, "dry_run": True, "matched": matched.jobs, "capped": matched.capped}
            )
        elif not output.terminal:
            output.text(str(matched.jobs))
        return
    output.confirm(f"{verb.value.capitalize()} {matched} {'job' if matched.jobs == 1 else 'jobs'}?", yes=yes)
    with output.progress(verb.value, None if matched.capped else matched.jobs) as advance:
        swept = await admin.sweep(
            verb, wanted, reason=reason, limit=limit, on_progress=lambda so_far: advance(so_far.met)
        )
    if output.as_json:
        output.value({"verb": verb.value, "dry_run": False} | swept.counts)
    elif not output.terminal:
        output.text("\t".join(str(number) for number in swept.counts.values()))
    parts = [f"{verb.value}: {many(swept.done, 'job')} done"]
    if swept.asked:
        parts.append(f"{swept.asked:,} of them are running and their workers were asked to stop")
    if swept.refused:
        parts.append(f"{swept.refused:,} refused by their state")
    if swept.changed:
        parts.append(f"{swept.changed:,} changed meanwhile and left alone")
    output.words("; ".join(parts) + ".")
    if swept.refused or swept.changed:
        exits.leave(exits.PROBLEMS)
