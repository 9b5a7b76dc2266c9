"""`rota worker`: run the jobs of an app until told to stop."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from rota.cli import exits, logs
from rota.cli.commands import Call, Command, with_call
from rota.cli.locate import find_app, reference
from rota.cli.tether import end_with
from rota.cli.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.app import Rota
    from rota.cli import draining
    from rota.config import Settings

GENERAL = "general"


@click.command(
    "worker",
    cls=Command,
    examples=(
        "rota worker jobs.py",
        "rota worker shop.jobs:app -c 50 --processes 2",
        "rota worker shop.jobs:app --lane fast=3 --lane reports=2:reports,exports",
        "rota worker shop.jobs:app --health-port 8081 --max-rss 1GB",
        "rota worker jobs.py -q mail:10,default             ten slots for mail, the others for default",
        "rota worker jobs.py --queue mail --drain",
    ),
)
@click.argument("app", required=False)
@click.option(
    "--lane",
    "lanes",
    multiple=True,
    metavar="NAME=SLOTS[:QUEUE,…]",
    help="A lane and its slots; may be repeated.",
)
@click.option(
    "--queue",
    "-q",
    "queues",
    multiple=True,
    metavar="QUEUE[:SLOTS],…",
    help="Serve only these queues; one with slots gets a lane of its own. May be repeated.",
)
@click.option("--tasks", multiple=True, metavar="TASK,…", help="Run only these tasks.")
@click.option("--tenant", help="Run only this tenant's jobs.")
@click.option(
    "--concurrency", "-c", type=click.IntRange(1, 10_000), metavar="N", help="Slots of the general lane."
)
@click.option("--processes", metavar="N", help="Child processes, each with these slots; 0: no supervisor.")
@click.option("--max-jobs", metavar="N", help="Replace a child after about so many jobs.")
@click.option("--max-rss", metavar="SIZE", help="Replace a child that uses more memory than, say, 512MB.")
@click.option(
    "--health-port", metavar="[HOST:]PORT", help="Answer /livez, /readyz and /startupz there, for probes."
)
@click.option(
    "--drain",
    is_flag=True,
    help="Stop when nothing is due, running or to be retried; no schedule ticks meanwhile.",
)
@click.option("--migrate", is_flag=True, help="Bring the schema up to date first.")
@click.option("--reload", is_flag=True, help="Restart when a source file changes; without a supervisor.")
@click.option("--tether", type=int, hidden=True)
@click.option("--child", hidden=True)
@with_call
def worker(
    call: Call,
    *,
    app: str | None,
    drain: bool,
    migrate: bool,
    reload: bool,
    tether: int | None,
    child: str | None,
    processes: str | None,
    max_jobs: str | None,
    max_rss: str | None,
    health_port: str | None,
    **options: Any,
) -> None:
    """Run the jobs of an app.

    A supervisor watches over the processes that run them, and replaces what dies. SIGTERM or Ctrl-C: take no more
    jobs and finish those that run; a second one hands them back at once. SIGHUP: start new processes, which import
    the app anew, and let the old ones finish. SIGUSR1: log what runs. Exit 1 says that jobs were interrupted and
    handed back.
    """
    if child is not None:
        from rota.cli.working import be_child

        exits.leave(be_child(call, app, child, drain=drain, migrate=migrate, options=options))
    settings = call.settings(processes=processes, max_jobs=max_jobs, max_rss=max_rss, health_port=health_port)
    if reload:
        if drain or health_port is not None or settings.processes > 1:
            raise click.UsageError(
                "--reload is for the desk: leave out --drain, --health-port and --processes."
            )
        from rota.cli.dev import reloading
        from rota.cli.working import command

        named = reference(app, settings.app)
        choose(settings, **options)
        again = [*command(call, named, options, drain=False, migrate=migrate), "--processes", "0"]
        exits.leave(reloading(call, named, again))
    if settings.processes > 0:
        from rota.cli.working import supervise

        named = reference(app, settings.app)
        choose(settings, **options)  # what makes no sense is said before anything starts
        exits.leave(supervise(call, settings, named, options, drain=drain, migrate=migrate))
    if health_port is not None:
        raise click.UsageError("--health-port needs a supervisor to answer there; leave out --processes 0.")
    end_with(tether)
    try:
        rota = load(call, app)
    except exits.NoApp as error:
        if tether is None:
            raise
        call.output.words(f"rota: {error.format_message()}")
        exits.leave(exits.NO_APP)
    if tether is not None:
        call.output.words(_found(rota))
    if migrate:
        import asyncio

        asyncio.run(bring_up_to_date(call, rota))
    chosen = choose(rota.settings, **options)
    from rota.worker import run

    with ExitStack() as until_it_ends:
        if drain:
            from rota.cli import draining

            draining.without_schedules(rota)
            until_it_ends.enter_context(
                draining.stopping_when_empty(rota.store, _scope(rota, chosen), call.output)
            )
        code = run(rota, **chosen)
    exits.leave(code)


def _found(app: Rota) -> str:
    """`Found 1 task, 1 schedule.`: what a schedule runs by itself is told with the schedules."""
    own = app.tasks.keys() - app.schedules.keys()
    return f"Found {many(len(own), 'task')}, {many(len(app.schedules), 'schedule')}."


def load(call: Call, app: str | None, *, quietly: bool = False) -> Rota:
    """Import the app and set up the log."""
    if call.url is not None:
        os.environ["ROTA_URL"] = call.url  # before the app is imported: it reads its settings by itself
    found = find_app(app, call.settings().app)
    _check_url(call, found)
    logs.configure(found.settings, verbose=call.verbose)
    if not quietly:
        call.announce_starts()
    if not found.tasks and not quietly:
        call.output.words(
            "The app has no tasks, so nothing will run. Import the modules that define them in it."
        )
    return found


def _check_url(call: Call, app: Rota) -> None:
    """An app that names its store in its code cannot be moved from outside, and must not seem to be."""
    from rota.config import masked

    if call.url is not None and app.settings.url != call.url:
        raise exits.Wrong(
            f"--url names {masked(call.url)}, but the app names {masked(app.settings.url or 'another store')} in its "
            "code. Write `app = Rota()` there, so that settings decide."
        )


def choose(
    settings: Settings,
    *,
    lanes: tuple[str, ...],
    queues: tuple[str, ...],
    tasks: tuple[str, ...],
    tenant: str | None,
    concurrency: int | None,
) -> dict[str, Any]:
    """The options in the words of `rota.worker.run`; None leaves the settings as they are."""
    from rota.worker import parse_lane

    slotted, shared = _queues(queues)
    if lanes and slotted:
        raise click.UsageError(
            f"--lane and --queue {next(iter(slotted))}:{next(iter(slotted.values()))} were both given; --lane says the "
            "slots of each lane."
        )
    if lanes and concurrency is not None:
        raise click.UsageError(
            "--lane and --concurrency were both given; --lane says the slots of each lane."
        )
    wanted: Mapping[str, Any] | None = None
    if lanes:
        specs = [parse_lane(lane) for lane in lanes]
        wanted = {spec.name: spec for spec in specs}
    elif queues:
        # A lane of its own for other queues would serve what was not asked for.
        wanted = {queue: f"{slots}:{queue}" for queue, slots in slotted.items()}
        if shared and GENERAL in wanted:
            raise click.UsageError(
                f"queue {GENERAL!r} has the name of the lane that {shared[0]!r} would share; say the lanes by --lane, "
                f"such as --lane a={slotted[GENERAL]}:{GENERAL} --lane b=5:{shared[0]}."
            )
        if shared:
            wanted = {**wanted, GENERAL: concurrency or settings.lanes.get(GENERAL, 5)}
    elif concurrency is not None:
        wanted = {**settings.lanes, GENERAL: concurrency}
    names = tuple(name.strip() for text in tasks for name in text.split(",") if name.strip())
    return {"lanes": wanted, "queues": shared or None, "tasks": names or None, "tenant": tenant}


def _queues(given: tuple[str, ...]) -> tuple[dict[str, int], tuple[str, ...]]:
    """`mail:10,default`: the queues that have slots of their own, and those that share the general lane."""
    slotted: dict[str, int] = {}
    shared: list[str] = []
    for text in given:
        for part in filter(None, map(str.strip, text.split(","))):
            name, _, number = part.rpartition(":")
            queue = name if name and number.isdigit() else part
            if queue in slotted or (queue in shared and queue != part):
                raise click.UsageError(f"queue {queue!r} was given twice; say its slots once.")
            if queue == part:
                shared.append(queue)
            else:
                slotted[queue] = int(number)
    if given and not slotted and not shared:
        raise click.UsageError(
            f"--queue {given[0]!r} names no queue; write it like mail, or mail:10,default."
        )
    return slotted, tuple(dict.fromkeys(shared))


def _scope(app: Rota, chosen: Mapping[str, Any]) -> draining.Scope:
    from rota.cli import draining
    from rota.worker.lanes import lane_specs

    specs = lane_specs(chosen["lanes"] or app.settings.lanes, queues=chosen["queues"])
    queues: set[str] | None = set()
    for spec in specs:
        queues = None if queues is None or spec.queues is None else queues | set(spec.queues)
    return draining.Scope(chosen["tasks"] or tuple(app.tasks), queues, chosen["tenant"])


async def bring_up_to_date(call: Call, app: Rota) -> None:
    try:
        applied = await app.migrate()
    finally:
        await app.close()
    if applied:
        call.output.words(f"{many(len(applied), 'migration')} applied.")
