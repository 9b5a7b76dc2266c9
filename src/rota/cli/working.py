"""The two sides of a supervised `rota worker`: the supervisor's process, and that of a child."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from rota.cli import draining, exits, logs
from rota.cli.commands import Call
from rota.cli.worker import bring_up_to_date, choose, load
from rota.errors import ConfigError, RotaError

if TYPE_CHECKING:
    from rota.cli.output import Output
    from rota.config import Settings
    from rota.stores.contract import Store
    from rota.worker.supervisor.health import Page
    from rota.worker.supervisor.supervisor import Supervisor


def supervise(
    call: Call, settings: Settings, named: str, options: dict[str, Any], *, drain: bool, migrate: bool
) -> int:
    """Be the supervisor; the exit code. The app is imported in children only, so nothing of it can bring this down."""
    from rota.worker.supervisor.health import Address
    from rota.worker.supervisor.supervisor import Plan, StartFailed

    logs.configure(settings, verbose=call.verbose)
    plan = Plan(
        command(call, named, options, drain=drain, migrate=migrate),
        settings.processes,
        settings.max_jobs,
        settings.max_rss,
        None if settings.health_port is None else Address.parse(settings.health_port),
        os.environ.get("ROTA_METRICS_TOKEN") or None,  # a secret: from nowhere else, and shown nowhere
    )
    try:
        return asyncio.run(_supervise(plan, settings, call.output if drain else None))
    except StartFailed as failed:
        if failed.shown is not None:
            click.echo(failed.shown, err=True, nl=False)
        else:
            call.output.words(f"rota: {failed}")
        return failed.code


async def _supervise(plan: Any, settings: Settings, drained: Output | None) -> int:
    from rota.stores.observed import observed
    from rota.stores.opening import open_store
    from rota.worker.supervisor.supervisor import Supervisor

    def reach(url: str) -> Store:
        return observed(open_store(url, settings))

    supervisor = Supervisor(
        plan,
        reach,
        when_ready=None if drained is None else lambda one: stop_when_drained(one, drained),
        metrics=tell_metrics if find_spec("prometheus_client") else None,
    )
    loop = asyncio.get_running_loop()
    # Where a terminal is, SIGHUP says that it was closed: nobody is there to stop the worker later.
    hung_up = supervisor.stop if sys.stdin is not None and sys.stdin.isatty() else supervisor.renew
    actions = {
        signal.SIGTERM: supervisor.stop,
        signal.SIGINT: supervisor.stop,
        signal.SIGHUP: hung_up,
        signal.SIGUSR1: supervisor.tell,
    }
    for number, action in actions.items():
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                loop.add_signal_handler(number, action)
    return await supervisor.run()


async def tell_metrics(store: Store) -> Page:
    """The store's numbers as Prometheus reads them."""
    from rota.admin import Admin
    from rota.contrib.prometheus import WINDOW, exposition
    from rota.worker.supervisor.health import Page

    return Page(*exposition(await Admin(store, actor="metrics").overview(WINDOW)))


async def stop_when_drained(supervisor: Supervisor, output: Output) -> None:
    """`--drain` under a supervisor: watch what is left, and stop everybody when nothing is."""
    facts, store = supervisor.facts, supervisor.watch.store
    assert facts is not None
    assert store is not None, "a child whose store is inside its process refuses to drain"
    scope = draining.Scope(facts.only or tuple(facts.tasks), facts.queues, facts.tenant)
    await draining.until_empty(store, scope, output)
    supervisor.stop()


def command(
    call: Call, named: str, options: dict[str, Any], *, drain: bool, migrate: bool
) -> tuple[str, ...]:
    """The command line of a child."""
    parts = [sys.executable, "-m", "rota.cli", "worker", named]
    for flag, name in (("--lane", "lanes"), ("--queue", "queues"), ("--tasks", "tasks")):
        for value in options[name]:
            parts += [flag, value]
    for flag, name in (("--tenant", "tenant"), ("--concurrency", "concurrency")):
        if options[name] is not None:
            parts += [flag, str(options[name])]
    parts += ["--url", call.url] if call.url is not None else []
    parts += ["--drain"] if drain else []
    parts += ["--migrate"] if migrate else []
    return (*parts, "-v") if call.verbose else tuple(parts)


def be_child(
    call: Call, app: str | None, ends: str, *, drain: bool, migrate: bool, options: dict[str, Any]
) -> int:
    """Be a child of a supervisor; the exit code. What keeps it from starting is told to the supervisor, who says it."""
    from rota.worker.entry import run_child
    from rota.worker.supervisor.leash import Ends, Leash
    from rota.worker.supervisor.wire import Failed

    try:
        leash = Leash(Ends.parse(ends))
    except (ValueError, TypeError, OSError) as error:
        raise exits.Wrong("--child is for the supervisor of `rota worker` only; leave it out.") from error
    try:
        found = load(call, app, quietly=leash.number > 1)
        if migrate:
            asyncio.run(bring_up_to_date(call, found))
        if drain:  # when nothing is left is the supervisor's to see
            if found.store.name == "memory":
                raise ConfigError(
                    "--drain needs a store that the supervisor can reach, and this app's (memory) lives in its "
                    "process. Add --processes 0."
                )
            draining.without_schedules(found)
        return run_child(found, leash, **choose(found.settings, **options))
    except SystemExit as error:
        why = f"{app} ended the process while it was imported: sys.exit({error.code!r})"
        leash.failed(Failed(f"{why}. Let it raise an error that says what is missing.", exits.PROBLEMS))
        return exits.PROBLEMS
    except click.ClickException as error:
        leash.failed(Failed(error.format_message(), error.exit_code, _usage(error)))
        return error.exit_code
    except RotaError as error:
        leash.failed(Failed(str(error), exits.code_of(error)))
        return exits.code_of(error)


def _usage(error: click.ClickException) -> str | None:
    """What click would print: a usage error begins with how it is used."""
    if not isinstance(error, click.UsageError):
        return None
    text = io.StringIO()
    error.show(text)
    return text.getvalue()
