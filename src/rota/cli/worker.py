"""`rota worker`: run the jobs of an app until told to stop."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import click

from rota.cli import draining, exits, logs
from rota.cli.commands import Call, Command, with_call
from rota.cli.locate import find_app, reference
from rota.cli.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.app import Rota
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
@click.option("--queue", "-q", "queues", multiple=True, help="Serve only this queue; may be repeated.")
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
@click.option("--child", hidden=True)
@with_call
def worker(
    call: Call,
    *,
    app: str | None,
    drain: bool,
    migrate: bool,
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
    if settings.processes > 0:
        from rota.cli.working import supervise

        named = reference(app, settings.app)
        choose(settings, **options)  # what makes no sense is said before anything starts
        exits.leave(supervise(call, settings, named, options, drain=drain, migrate=migrate))
    if health_port is not None:
        raise click.UsageError("--health-port needs a supervisor to answer there; leave out --processes 0.")
    found = load(call, app)
    if migrate:
        asyncio.run(bring_up_to_date(call, found))
    chosen = choose(found.settings, **options)
    if drain:
        draining.without_schedules(found)
        draining.stop_when_empty(found.store, _scope(found, chosen))
    from rota.worker import run

    exits.leave(run(found, **chosen))


def load(call: Call, app: str | None, *, quietly: bool = False) -> Rota:
    """Import the app and set up the log."""
    if call.url is not None:
        os.environ["ROTA_URL"] = call.url  # before the app is imported: it reads its settings by itself
    found = find_app(app, call.settings().app)
    _check_url(call, found)
    logs.configure(found.settings, verbose=call.verbose)
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
        wanted = {GENERAL: concurrency or settings.lanes.get(GENERAL, 5)}
    elif concurrency is not None:
        wanted = {**settings.lanes, GENERAL: concurrency}
    names = tuple(name.strip() for text in tasks for name in text.split(",") if name.strip())
    return {"lanes": wanted, "queues": queues or None, "tasks": names or None, "tenant": tenant}


def _scope(app: Rota, chosen: Mapping[str, Any]) -> draining.Scope:
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
