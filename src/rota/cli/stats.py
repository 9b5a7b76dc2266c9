"""`rota stats`, `rota queues`, `rota tenants`: is it keeping up, and for whom?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.job import State
from rota.cli import exits
from rota.cli.commands import Call, Command, Group, with_admin
from rota.cli.params import Stretch
from rota.cli.purging import purge
from rota.cli.words import last, many, percent, span

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from rota._core.numbers import Summary, TenantTotal
    from rota._core.series import Point
    from rota.admin import Admin
    from rota.admin.numbers import Overview, QueueView

UNKNOWN = "unknown"
LARGE = 10_240
"""Bytes; above that an enqueue warns."""
SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))

since_option: Callable[[Any], Any] = click.option(
    "--since",
    default=3600.0,
    type=Stretch(),
    metavar="DURATION",
    show_default="1h",
    help="How far back, in whole minutes, or whole hours where that is more than 14 days; at most 90 days.",
)


list_word = click.argument(
    "verb", required=False, type=click.Choice(["list"]), expose_value=False, metavar="[list]"
)
"""`rota tenants list` is the same as `rota tenants`, as with every other noun."""


@click.command(
    "stats",
    cls=Command,
    examples=(
        "rota stats",
        "rota stats --by queue --since 24h",
        "rota stats --plot --since 6h                 a chart: done, failed and waits along time",
        "rota stats --payloads                        which task fills the store",
        "rota stats --json | jq .oldest_pending_minutes",
    ),
)
@click.option(
    "--by", type=click.Choice(["task", "queue"]), default="task", show_default=True, help="One line each."
)
@click.option(
    "--payloads", is_flag=True, help="How large the payloads of unfinished jobs are, by task, instead."
)
@click.option("--plot", is_flag=True, help="A chart of what was done and failed, and of the waits, instead.")
@since_option
@with_admin
async def stats(call: Call, admin: Admin, *, by: str, payloads: bool, plot: bool, since: float) -> None:
    """Rates, waits, durations and errors of the last hour.

    Columns: name, attempts, completed, failed and retried, dead, error rate, wait and run time at the 50th, 95th and
    99th percentile. What could not be read is `unknown`.

    Columns with --payloads: task, unfinished jobs, bytes on average, of the largest, its job; of at most 50,000 jobs.
    """
    if payloads and plot:
        raise click.UsageError("--payloads and --plot were both given; choose one.")
    if payloads:
        await _payloads(call, admin)
        return
    if plot:
        await _plot(call, admin, since)
        return
    seen = await admin.overview(since)
    if call.output.as_json:
        call.output.value(_whole(seen))
        return
    figures = seen.figures
    groups = {} if figures is None else (figures.by_task() if by == "task" else figures.by_queue())
    call.output.table(
        (
            by,
            "attempts",
            "done",
            "failed",
            "dead",
            "errors",
            "wait p50",
            "p95",
            "p99",
            "run p50",
            "p95",
            "p99",
        ),
        [_row(name, summary) for name, summary in groups.items()],
        records=(),
    )
    for line in _words(seen):
        call.output.words(line)


@click.group(
    "queues",
    cls=Group,
    invoke_without_command=True,
    examples=("rota queues", "rota queues --since 10m --json", "rota queues purge mail --dry-run"),
)
@since_option
@click.pass_context
def queues(ctx: click.Context, since: float) -> None:
    """Each queue: what waits, how long, and who serves it.

    Without a verb it lists them.
    """
    ctx.default_map = {"list": {"since": since}}
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_queues, since=since)


@queues.command("list", examples=("rota queues list", "rota queues list --since 10m --json"))
@since_option
@with_admin
async def list_queues(call: Call, admin: Admin, since: float) -> None:
    """Each queue: what waits, how long, and who serves it.

    Columns: queue, pending, running, dead, oldest due job, slots of living workers that may serve it, completed a
    minute, wait at the 95th percentile, the target (and whether it is missed), error rate.
    """
    seen = await admin.overview(since)
    found = seen.queues()
    call.output.table(
        (
            "queue",
            "pending",
            "running",
            "dead",
            "oldest",
            "slots",
            "done/min",
            "wait p95",
            "target",
            "errors",
        ),
        [_queue_row(view, seen) for view in found],
        records=[_queue_record(view, seen) for view in found],
    )
    _say_unknown(call, seen)
    for view in found:
        if view.late:
            call.output.words(
                f"{view.queue} is behind its target. See whose jobs wait, and why: rota top; "
                f"rota jobs list --queue {view.queue} --state pending; rota jobs why ID."
            )
    if not found:
        call.output.words("No queue has work, or had any in this time.")
        exits.leave(exits.NOTHING)


queues.add_command(purge)


@click.command("tenants", cls=Command, examples=("rota tenants", "rota tenants --since 24h --json"))
@list_word
@since_option
@with_admin
async def tenants(call: Call, admin: Admin, since: float) -> None:
    """What was done for each tenant.

    Columns: tenant (- for jobs of none), attempts, attempts a minute, failed, error rate, time spent.
    """
    found = await admin.tenants(since)
    call.output.table(
        ("tenant", "attempts", "a minute", "failed", "errors", "time spent"),
        [_tenant_row(total, since) for total in found],
        records=[total._asdict() | {"per_minute": total.jobs * 60 / since} for total in found],
    )
    if not found:
        call.output.words("Nothing was done for anybody in this time.")
        exits.leave(exits.NOTHING)


async def _plot(call: Call, admin: Admin, since: float) -> None:
    from rota.cli import plotting

    chart = await admin.series(since)
    if call.output.as_json:
        call.output.value(chart._asdict() | {"points": [_point(point) for point in chart.points]})
        return
    width = call.output.width()
    if width < plotting.NARROWEST:
        raise exits.Refused(
            f"the terminal has {width} columns, and a chart needs {plotting.NARROWEST}. Widen it, or leave out --plot."
        )
    blocks = plotting.BLOCKS if call.output.shows(plotting.BLOCKS) else plotting.PLAIN
    for row in plotting.plotted(chart, width, blocks=blocks):
        call.output.styled(f"{row.label:>{plotting.LABEL - 1}} ", row.text, row.style)
    if not any(point.attempts for point in chart.points):
        call.output.words(f"Nothing ended in the last {last(since)}.")


def _point(point: Point) -> dict[str, Any]:
    return {name: value for name, value in point._asdict().items() if name != "runs"}


async def _payloads(call: Call, admin: Admin) -> None:
    found = await admin.payload_sizes()
    call.output.table(
        ("task", "jobs", "average", "largest", "job"),
        [tuple(one) for one in found],
        shown=[
            (one.task, f"{one.jobs:,}", f"{one.average:,} B", f"{one.largest:,} B", str(one.example))
            for one in found
        ],
        records=[one._asdict() for one in found],
    )
    if not found:
        call.output.words("No job is unfinished.")
        exits.leave(exits.NOTHING)
    if found[0].largest > LARGE:
        call.output.words(
            f"{found[0].task} carries its content with it. Let it pass a reference (a path, a key) in place of that; "
            f"`rota jobs show {found[0].example}` shows the largest, and `rota jobs cancel --task {found[0].task} "
            "--dry-run` counts what could be taken off."
        )


def _row(name: str, summary: Summary) -> tuple[object, ...]:
    ended = summary.endings
    return (
        name,
        summary.attempts,
        summary.done,
        ended.get("failed", 0),
        ended.get("dead", 0),
        _share(summary.error_rate),
        *(_length(summary.wait(share)) for _, share in SHARES),
        *(_length(summary.run(share)) for _, share in SHARES),
    )


def _queue_row(view: QueueView, seen: Overview) -> tuple[object, ...]:
    return (
        view.queue,
        _count(view.pending, capped=seen.capped),
        _count(view.running),
        _count(view.dead, capped=seen.capped),
        UNKNOWN if seen.heads is None else _length(view.oldest_wait),
        _count(view.slots),
        UNKNOWN if view.done is None else f"{view.done.done * 60 / seen.since:.1f}",
        UNKNOWN if view.done is None else _length(view.done.wait(0.95)),
        _target(view),
        UNKNOWN if view.done is None else _share(view.done.error_rate),
    )


def _queue_record(view: QueueView, seen: Overview) -> dict[str, Any]:
    return {
        "queue": view.queue,
        "pending": view.pending,
        "running": view.running,
        "dead": view.dead,
        "capped": seen.capped,
        "oldest_wait": view.oldest_wait,
        "slots": view.slots,
        "target": view.target,
        "late": view.late,
        "figures": None if view.done is None else _summary(view.done),
        "unknown": dict(seen.unknown),
    }


def _target(view: QueueView) -> str:
    if view.target is None:
        return ""
    return span(view.target) + {True: " late", False: " ok", None: " unknown"}[view.late]


def _tenant_row(total: TenantTotal, since: float) -> tuple[object, ...]:
    return (
        total.tenant or "-",
        total.jobs,
        f"{total.jobs * 60 / since:.1f}",
        total.faults,
        _share(total.faults / total.jobs if total.jobs else None),
        span(total.run_sum),
    )


def _words(seen: Overview) -> list[str]:
    """The whole in a few sentences."""
    pending, running, dead = (seen.jobs(state) for state in (State.PENDING, State.RUNNING, State.DEAD))
    oldest = (
        UNKNOWN
        if seen.heads is None
        else ("nothing is due" if seen.oldest_wait is None else span(seen.oldest_wait))
    )
    counts = (
        f"pending {_count(pending, capped=seen.capped)}, running {_count(running)}, "
        f"dead {_count(dead, capped=seen.capped)}; oldest due: {oldest}."
    )
    lines = [counts]
    lines += [f"lane {lane.lane}: {_share(lane.used)} of its slots busy." for lane in seen.lanes or ()]
    if seen.workers is not None:
        slots = sum(worker.slots for worker in seen.workers)
        lines.append(f"{many(len(seen.workers), 'living worker')}, {many(slots, 'slot')}.")
    lines += [f"{what}: unknown ({why})" for what, why in seen.unknown.items()]
    return lines


def _say_unknown(call: Call, seen: Overview) -> None:
    for what, why in seen.unknown.items():
        call.output.words(f"{what}: unknown ({why})")


def _whole(seen: Overview) -> dict[str, Any]:
    """All of it as JSON; null is unknown."""
    figures = seen.figures
    oldest = seen.oldest_wait
    return {
        "since_seconds": seen.since,
        "pending": seen.jobs(State.PENDING),
        "retrying": None if seen.retrying is None else seen.retrying.jobs,
        "processing": seen.jobs(State.RUNNING),
        "dead": seen.jobs(State.DEAD),
        "failed": None if figures is None else figures.whole().endings.get("failed", 0),
        "capped": seen.capped,
        "oldest_pending_minutes": None
        if seen.heads is None
        else (0.0 if oldest is None else oldest.total_seconds() / 60),
        "workers": None if seen.workers is None else len(seen.workers),
        "lanes": None if seen.lanes is None else {lane.lane: lane.used for lane in seen.lanes},
        "tasks": None
        if figures is None
        else {name: _summary(each) for name, each in figures.by_task().items()},
        "queues": None
        if figures is None
        else {name: _summary(each) for name, each in figures.by_queue().items()},
        "unknown": dict(seen.unknown),
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "attempts": summary.attempts,
        "endings": dict(summary.endings),
        "error_rate": summary.error_rate,
        "wait": {name: summary.wait(share) for name, share in SHARES},
        "run": {name: summary.run(share) for name, share in SHARES},
    }


def _count(number: int | None, *, capped: bool = False) -> str:
    if number is None:
        return UNKNOWN
    return f"{number:,}+" if capped else f"{number:,}"


def _length(length: float | timedelta | None) -> str:
    return "" if length is None else span(length)


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)
