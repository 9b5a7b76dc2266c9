"""The command `rota`. Help needs none of the commands: each is imported when it is called."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from typing import Any, NoReturn

import click

from rota.cli import exits
from rota.cli.commands import Call, Group
from rota.cli.output import Output
from rota.errors import RotaError

# name: (module, section of the help, what it does). The words are repeated here so that help imports no command;
# a test holds them equal to the commands' own.
COMMANDS = {
    "demo": ("demo", "Begin", "Take the tour: a server, a worker and a lively mix of jobs."),
    "init": ("init", "Begin", "Write a first app: jobs.py, rota.toml and a test."),
    "dev": ("dev", "Begin", "Run a worker that restarts when a file changes, and the dashboard."),
    "worker": ("worker", "Daily work", "Run the jobs of an app."),
    "dashboard": ("dashboard", "Daily work", "Serve the dashboard and the HTTP API."),
    "enqueue": ("enqueue", "Daily work", "Enqueue one job."),
    "jobs": ("jobs", "Daily work", "Look at jobs, and act on them."),
    "failures": ("failures", "Daily work", "What failed for good, like failures together."),
    "dlq": ("dlq", "Daily work", "Look at dead letters, and acknowledge, discard or reprocess them."),
    "operations": (
        "operations",
        "Daily work",
        "Bulk work on jobs and dead letters: how far it is, stop it, go on with it.",
    ),
    "audit": ("audit", "Daily work", "Read the audit: who did what to which job, and why."),
    "tasks": ("tasks", "Daily work", "Look at tasks, and release one that is parked."),
    "top": (
        "top",
        "Daily work",
        "Watch everything on one screen: what waits, runs and fails, and what needs you.",
    ),
    "tail": ("tail", "Daily work", "Follow what happens to jobs, line by line."),
    "stats": ("stats", "Daily work", "Rates, waits, durations and errors of the last hour."),
    "queues": ("stats", "Daily work", "Each queue: what waits, how long, and who serves it."),
    "tenants": ("stats", "Daily work", "What was done for each tenant."),
    "workers": (
        "workers",
        "Daily work",
        "Who is at work: where, how full, on which queues, with which code.",
    ),
    "schedules": ("schedules", "Daily work", "Look at schedules, and act on them."),
    "deploy": ("deploy", "Store", "Check a deploy, and make new code known before its workers start."),
    "retention": ("retention", "Store", "Say how long ended jobs are kept."),
    "prune": ("prune", "Store", "Move ended jobs that are past their time to the archive."),
    "export": ("transfer", "Store", "Write jobs as lines of JSON."),
    "import": ("transfer", "Store", "Bring exported jobs into this store."),
    "migrate": ("migrate", "Store", "Bring the database schema up to date."),
    "schema": (
        "migrate",
        "Store",
        "Show which version the database schema has, and what is pending.",
    ),
    "db": ("db", "Store", "Start, stop and use the embedded PostgreSQL."),
    "token": ("token", "Store", "Make, list and revoke access tokens for the API and the pages."),
    "doctor": ("doctor", "Checks", "Examine the store and say what to fix."),
    "health": ("health", "Checks", "Answer quickly whether all is well, for probes."),
    "bench": ("bench", "Checks", "Measure Rota on this store and machine, beside plain SQL."),
    "config": ("config", "Checks", "Show each setting and where it comes from."),
    "completion": ("completion", "Checks", "Print the script that completes commands in your shell."),
}

EXAMPLES = (
    "rota demo                                    see it work",
    "rota init && rota dev                        begin an app of your own",
    "rota enqueue greet name=Ann --wait           run one job and print its result",
    "rota jobs list --state dead                  what has failed for good",
    "rota top                                     what waits, runs and fails now, and what needs you",
    "DATABASE_URL=postgresql://… rota migrate     move to a server",
)


class Root(Group):
    """The first group: it knows its commands by name and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"rota.cli.{COMMANDS[cmd_name][0]}")
        attribute = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, (_, section, words) in COMMANDS.items():
            sections.setdefault(section, []).append((name, words))
        for section, lines in sections.items():
            with formatter.section(section):
                formatter.write_dl(lines)


@click.group("rota", cls=Root, examples=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rota", message="rota %(version)s")
def root() -> None:
    """Durable background jobs, kept in PostgreSQL.

    Values go to stdout, words to stderr. Exit codes: 0 done, 1 found problems, 2 wrong usage, 3 store not
    reachable, 4 nothing matched.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code."""
    call = Call(output=Output())
    sys.exit(run(call, arguments))


def run(call: Call, arguments: list[str] | None = None) -> int:
    """Run one command; its exit code. Errors are one readable block, with the traceback only after -v."""
    try:
        code: Any = root.main(args=arguments, prog_name="rota", standalone_mode=False, obj=call)
        sys.stdout.flush()
        return code if isinstance(code, int) else exits.DONE
    except click.ClickException as error:
        _trace(call)
        if isinstance(error, click.UsageError):
            error.show()
        else:
            call.output.words(f"rota: {error.format_message()}")
        return error.exit_code
    except RotaError as error:
        return _said(call, str(error), exits.code_of(error))
    except (KeyboardInterrupt, click.Abort):
        call.output.words(f"\n{call.if_stopped}".rstrip())
        return exits.INTERRUPTED
    except exits.ReaderGone:
        # Python would complain once more while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.DONE
    except Exception as error:
        import traceback

        where = traceback.extract_tb(error.__traceback__)[-1]
        return _said(
            call,
            f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno}). "
            "This was not expected; run it again with -v for the traceback.",
            exits.PROBLEMS,
        )


def _said(call: Call, what: str, code: int) -> int:
    _trace(call)
    call.output.words(f"rota: {what}")
    return code


def _trace(call: Call) -> None:
    if call.verbose:
        import traceback

        traceback.print_exc()
