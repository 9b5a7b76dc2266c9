"""`rota schedules`: what ticks when, and everything a person may do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.schedule import Edits, Fate, Misfire, Overlap
from rota.cli import exits, schedule_records
from rota.cli.commands import Call, Group, with_admin
from rota.cli.params import Length, Moment
from rota.cli.words import as_json, cell, many

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rota._core.schedule import ScheduleRecord
    from rota.admin import Admin
    from rota.admin.schedules import Backfill

_reason = click.option("--reason", help="Why; kept in the audit.")


@click.group(
    "schedules",
    cls=Group,
    examples=(
        "rota schedules list",
        "rota schedules next nightly -n 10",
        "rota schedules pause nightly --reason 'the warehouse moves'",
        "rota schedules edit nightly --cron '0 4 * * *' --tz Europe/Berlin",
        "rota schedules backfill nightly --from 2026-03-01 --to 2026-03-07",
    ),
)
def schedules() -> None:
    """Look at schedules, and act on them."""


@schedules.command("list", examples=("rota schedules list", "rota schedules list --json | jq '.[].next'"))
@with_admin
async def list_schedules(call: Call, admin: Admin) -> None:
    """List schedules and when they tick next.

    Columns: name, status (active, paused, absent: no running worker has it), time, zone, task, next, last, its job.
    """
    roster = await admin.schedules()
    lines = [
        schedule_records.line(record, roster.now, await admin.store.ticks(record.name, limit=1))
        for record in roster.schedules
    ]
    call.output.table(
        schedule_records.HEADERS,
        [line.row for line in lines],
        shown=[line.shown(roster.now) for line in lines],
        records=[line.record for line in lines],
    )
    if not lines:
        call.output.words("No schedule is known. A worker makes those of its code known when it starts.")
        exits.leave(exits.NOTHING)


@schedules.command("show", examples=("rota schedules show nightly", "rota schedules show nightly --json"))
@click.argument("name")
@with_admin
async def show(call: Call, admin: Admin, name: str) -> None:
    """Show one schedule: what the code says, what people changed, its last and next ticks."""
    view = await admin.show_schedule(name)
    if call.output.as_json:
        call.output.value(schedule_records.details(view))
        return
    pairs, words = schedule_records.fields(view)
    call.output.fields(pairs, shown=words)
    if not call.output.terminal:
        return
    call.output.block(as_json(schedule_records.payload(view.record)), name="Arguments")
    for title, headers, rows in schedule_records.parts(view):
        if rows:
            call.output.table(headers, rows, records=(), title=title)


@schedules.command("next", examples=("rota schedules next", "rota schedules next nightly -n 10"))
@click.argument("name", required=False)
@click.option(
    "--count", "-n", default=5, show_default=True, type=click.IntRange(1, 1000), help="So many ticks each."
)
@with_admin
async def next_ticks(call: Call, admin: Admin, name: str | None, count: int) -> None:
    """Show the next ticks, of one schedule or of all.

    Columns: name, UTC, local time, note (the clocks change, a maintenance window, paused).
    """
    from rota.admin.schedules import upcoming

    roster = await admin.schedules()
    chosen = roster.schedules if name is None else (await admin.schedule(name),)
    rows = []
    for record in chosen:
        status = record.status(roster.now)
        for tick in upcoming(record.effective, roster.now, count):
            notes = [tick.note, "" if status == "active" else status]
            rows.append((record.name, tick.due, tick.local, "; ".join(note for note in notes if note)))
    rows.sort(key=lambda row: (row[1], row[0]))
    call.output.table(
        ("name", "UTC", "local", "note"),
        rows,
        shown=[
            (name, f"{due:%Y-%m-%d %H:%M:%S}", f"{local:%a %Y-%m-%d %H:%M:%S %Z}", note)
            for name, due, local, note in rows
        ],
        records=[dict(zip(("name", "due", "local", "note"), row, strict=True)) for row in rows],
    )
    if not rows:
        call.output.words("No tick is to come.")
        exits.leave(exits.NOTHING)


@schedules.command("run", examples=("rota schedules run nightly --reason 'report was wrong'",))
@click.argument("name")
@_reason
@with_admin
async def run(call: Call, admin: Admin, name: str, reason: str | None) -> None:
    """Enqueue a schedule's job now, beside its ticks."""
    job_id = await admin.run_schedule(name, reason=reason)
    call.output.words(f"Enqueued the job of {name} as {job_id}.")
    _value(call, {"schedule": name, "job_id": str(job_id)}, str(job_id))


@schedules.command("pause", examples=("rota schedules pause nightly --reason 'the warehouse moves'",))
@click.argument("name")
@_reason
@with_admin
async def pause(call: Call, admin: Admin, name: str, reason: str | None) -> None:
    """Let a schedule rest; ticks that pass meanwhile are not made good."""
    record = await admin.pause_schedule(name, reason=reason)
    call.output.words(f"{name} rests until `rota schedules resume {name}`.")
    await _changed(call, admin, record)


@schedules.command("resume", examples=("rota schedules resume nightly",))
@click.argument("name")
@_reason
@with_admin
async def resume(call: Call, admin: Admin, name: str, reason: str | None) -> None:
    """Let a paused schedule tick again, from now on."""
    record = await admin.resume_schedule(name, reason=reason)
    call.output.words(f"{name} ticks again.")
    await _changed(call, admin, record)


def _edit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--cron", help="Five fields: minute hour day month weekday."),
        click.option("--every", metavar="DURATION", help="A fixed distance between ticks: 30s, 5m."),
        click.option("--tz", help="The time zone, such as Europe/Berlin."),
        click.option("--jitter", type=Length(), metavar="DURATION", help="Spread ticks over so long."),
        click.option(
            "--overlap", type=click.Choice([each.value for each in Overlap]), help="While the last one runs."
        ),
        click.option(
            "--misfire", type=click.Choice([each.value for each in Misfire]), help="For missed ticks."
        ),
        click.option("--cap", type=click.IntRange(1, 1000), help="With misfire all: at most so many."),
        click.option("--grace", type=Length(), metavar="DURATION", help="So late a tick still is on time."),
        click.option(
            "--window", "windows", multiple=True, help="No ticks then: '0 1 * * SUN for 2h'; may be repeated."
        ),
        click.option("--no-windows", is_flag=True, help="Take all windows away."),
        click.option("--queue", "-q", help="Another queue."),
        click.option("--priority", type=click.IntRange(0, 32_767), help="Lower runs first."),
        click.option("--arguments", metavar="JSON", help="Other arguments, as a JSON object."),
    ):
        command = option(command)
    return command


@schedules.command(
    "edit",
    examples=(
        "rota schedules edit nightly --cron '0 4 * * *'",
        "rota schedules edit poll --every 10m --jitter 30s",
        "rota schedules edit nightly --window '0 1 * * SUN for 2h'",
    ),
)
@click.argument("name")
@_edit_options
@_reason
@with_admin
async def edit(call: Call, admin: Admin, name: str, reason: str | None, **options: Any) -> None:
    """Change a schedule here and now; it wins over the code until `rota schedules reset`."""
    edits = _edits(**options)
    record = await admin.edit_schedule(name, edits, reason=reason)
    call.output.words(
        f"{name}: {schedule_records.edited(record)} in place of what the code says, until it is reset."
    )
    await _changed(call, admin, record)


def _edits(**options: Any) -> Edits:
    cron, every = options.pop("cron"), options.pop("every")
    windows, none = options.pop("windows"), options.pop("no_windows")
    arguments = options.pop("arguments")
    if cron is not None and every is not None:
        raise click.UsageError("--cron and --every were both given; a schedule has one time.")
    if windows and none:
        raise click.UsageError("--window and --no-windows were both given.")
    edits = Edits(
        **options | {"overlap": None, "misfire": None},
        timing=cron if every is None else f"every {every}",
        windows=windows or (() if none else None),
        payload_json=None if arguments is None else _arguments(arguments),
    )._replace(
        overlap=None if options["overlap"] is None else Overlap(options["overlap"]),
        misfire=None if options["misfire"] is None else Misfire(options["misfire"]),
    )
    if edits == Edits():
        raise click.UsageError(
            "say what to change, such as --cron '0 4 * * *'; `rota schedules edit -h` lists it all."
        )
    return edits


def _arguments(text: str) -> str:
    """A JSON object, written as it is stored."""
    import json

    from rota.cli import arguments

    return json.dumps(arguments.payload_from((), text, {}), ensure_ascii=False)


@schedules.command("reset", examples=("rota schedules reset nightly",))
@click.argument("name")
@_reason
@with_admin
async def reset(call: Call, admin: Admin, name: str, reason: str | None) -> None:
    """Take back every edit: the code's word holds again. A pause stays."""
    record = await admin.reset_schedule(name, reason=reason)
    call.output.words(f"{name} is as its code says again.")
    await _changed(call, admin, record)


@schedules.command(
    "delete",
    examples=(
        "rota schedules delete nightly --reason 'replaced by hourly'",
        "rota schedules delete old --yes",
    ),
)
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@_reason
@with_admin
async def delete(call: Call, admin: Admin, name: str, *, yes: bool, reason: str | None) -> None:
    """Remove a schedule that vanished from the code, with its ticks; its jobs and the audit stay.

    Only an absent one: what running code declares would come back, so pause that instead.
    """
    await admin.absent_schedule(name)
    call.output.confirm(f"Delete the schedule {name} and its ticks for good?", yes=yes)
    await admin.delete_schedule(name, reason=reason)
    call.output.words(f"Deleted {name}. Its jobs stay.")
    _value(call, {"schedule": name, "deleted": True}, name, "deleted")


@schedules.command(
    "backfill",
    examples=(
        "rota schedules backfill nightly --from 2026-03-01 --to 2026-03-07 --dry-run",
        "rota schedules backfill nightly --from 2026-03-01T00:00Z --yes",
    ),
)
@click.argument("name")
@click.option(
    "--from",
    "begin",
    type=Moment(),
    required=True,
    metavar="TIME",
    help="The first moment; a date is its midnight.",
)
@click.option(
    "--to", "end", type=Moment(), metavar="TIME", help="The last moment, so a date is not in it; else now."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@_reason
@with_admin
async def backfill(
    call: Call,
    admin: Admin,
    *,
    name: str,
    begin: datetime,
    end: datetime | None,
    yes: bool,
    dry_run: bool,
    reason: str | None,
) -> None:
    """Enqueue a job for every tick of a range that never became one.

    By the schedule as it is now. A job knows its tick: `current_job().tick`.
    """
    until = end or await admin.store.now()
    planned = await admin.backfill(name, begin, until, dry_run=True)
    wanted = planned.count(Fate.ENQUEUED)
    if not wanted:
        call.output.words(
            f"{name}: nothing to make good; {'; '.join(_others(planned)) or 'no tick is in that range'}."
        )
        exits.leave(exits.NOTHING)
    if dry_run:
        call.output.words(f"Would enqueue {many(wanted, 'job')}.")
        _report(call, name, planned)
        return
    call.output.confirm(f"Enqueue {many(wanted, 'job')} for ticks of {name}?", yes=yes)
    with call.output.progress("backfill", len(planned.ticks)) as advance:
        done = await admin.backfill(name, begin, until, reason=reason, on_progress=advance)
    enqueued = f"{name}: {many(done.count(Fate.ENQUEUED), 'job')} enqueued"
    call.output.words("; ".join([enqueued, *_others(done)]) + ".")
    _report(call, name, done)


def _others(done: Backfill) -> list[str]:
    """Of the ticks that became no job, why not."""
    reasons = {
        Fate.ALREADY: "ran before",
        Fate.DUPLICATE: "stand for another job with their unique key",
        Fate.FORGOTTEN: "are so old that nobody knows whether they ran, and were left alone",
    }
    return [f"{done.count(fate):,} {why}" for fate, why in reasons.items() if done.count(fate)]


def _report(call: Call, name: str, done: Backfill) -> None:
    counts = {fate.value: done.count(fate) for fate in Fate if done.count(fate)}
    _value(
        call,
        {"schedule": name, "ticks": len(done.ticks), **counts},
        len(done.ticks),
        done.count(Fate.ENQUEUED),
    )


async def _changed(call: Call, admin: Admin, record: ScheduleRecord) -> None:
    now = await admin.store.now()
    line = schedule_records.line(record, now, [])
    _value(call, line.record, record.name, record.status(now))


def _value(call: Call, record: dict[str, Any], *cells: object) -> None:
    if call.output.as_json:
        call.output.value(record)
    elif not call.output.terminal:
        call.output.text("\t".join(map(cell, cells)))
