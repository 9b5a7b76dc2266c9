"""`rota db`: the embedded PostgreSQL, and the tools that came with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Group, with_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.stores.postgres.embedded import EmbeddedServer


@click.group(
    "db",
    cls=Group,
    examples=("rota db start", "rota db psql -- -c 'SELECT * FROM rota.all_jobs'", "rota db dump > jobs.sql"),
)
def db() -> None:
    """Start, stop and use the embedded PostgreSQL.

    psql and dump also work on a server that --url or the settings name.
    """


@db.command("start", examples=("rota db start", "rota db start --url embedded:/var/lib/jobs"))
@with_call
def start(call: Call) -> None:
    """Start the server, or find it running; print its address."""
    from rota.stores.opening import start_embedded

    server = _server(call)
    running = server.running()
    call.announce_starts()
    server, url = start_embedded(server.path)
    call.output.words(
        f"PostgreSQL {server.version()} {'was running already' if running else 'is running'} in {server.path}."
    )
    _answer(call, url=url)


@db.command("stop", examples=("rota db stop",))
@with_call
def stop(call: Call) -> None:
    """Stop the server, for everybody who uses it; nothing that is stored is lost."""
    server = _server(call)
    stopped = server.stop()
    call.output.words(
        f"Stopped the server in {server.path}." if stopped else f"No server runs in {server.path}."
    )
    if not stopped:
        exits.leave(exits.NOTHING)


@db.command("status", examples=("rota db status || rota db start",))
@with_call
def status(call: Call) -> None:
    """Say whether the server runs, and where; exit 1 if it does not."""
    server = _server(call)
    running = server.running()
    record = {
        "running": running,
        "path": str(server.path),
        "data": str(server.data_path),
        "log": str(server.log_path),
        "url": server.url() if running else None,
    }
    if call.output.as_json:
        call.output.value(record)
    else:
        call.output.fields(list(record.items()))
    if not running:
        from rota.stores.opening import start_command

        call.output.words(f"It is not running; start it with `{start_command(call.settings().address())}`.")
        exits.leave(exits.PROBLEMS)


@db.command("path", examples=('du -sh "$(rota db path)"',))
@with_call
def path(call: Call) -> None:
    """Print the directory that holds the data."""
    _answer(call, path=str(_server(call).data_path))


@db.command(
    "psql",
    context_settings={"ignore_unknown_options": True},
    examples=("rota db psql", "rota db psql -- -c 'SELECT count(*) FROM rota.jobs'"),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@with_call
def psql(call: Call, arguments: tuple[str, ...]) -> None:
    """Open psql on the store; what follows -- goes to psql."""
    _hand_over(call, "psql", arguments)


@db.command(
    "dump",
    context_settings={"ignore_unknown_options": True},
    examples=("rota db dump > jobs.sql", "rota db dump -- --data-only --format=custom --file=jobs.dump"),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@with_call
def dump(call: Call, arguments: tuple[str, ...]) -> None:
    """Write the jobs as SQL to stdout, by pg_dump; what follows -- goes to pg_dump."""
    _hand_over(call, "pg_dump", ("--schema=rota", *arguments))


def _server(call: Call) -> EmbeddedServer:
    """The embedded server that the settings name, or a clear no where they name another."""
    from rota.config import masked
    from rota.stores.opening import embedded_path
    from rota.stores.postgres.embedded import EmbeddedServer

    settings = call.settings()
    address = settings.address()
    if not address.startswith("embedded:"):
        raise exits.Wrong(
            f"the store is {masked(address)} (from {settings.origin('url')}), which is no embedded server. "
            "Name one with --url embedded: or --url embedded:PATH."
        )
    return EmbeddedServer(embedded_path(address))


def _answer(call: Call, **value: str) -> None:
    if call.output.as_json:
        call.output.value(value)
    else:
        call.output.text(next(iter(value.values())))


def _hand_over(call: Call, program: str, arguments: tuple[str, ...]) -> None:
    """Run a PostgreSQL program in our place, on the embedded server or on the one that the settings name."""
    address = call.settings().address()
    if address.startswith("embedded:"):
        from rota.stores.opening import start_embedded

        call.announce_starts()
        server, url = start_embedded(_server(call).path)
        command = str(server.psql_path() if program == "psql" else server.dump_path())
    elif address.startswith("memory:"):
        raise exits.Wrong(f"the memory store has no database for {program}. Name one with --url.")
    else:
        url, command = address, _installed(program)
    sys.stdout.flush()
    # The password travels by the environment: other users of this machine can read arguments.
    bare, secret = _without_password(url)
    with _interrupts_left_to_it():
        ended = subprocess.run([command, bare, *arguments], env={**os.environ, **secret}, check=False)  # noqa: S603
    if ended.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    if ended.returncode:
        exits.leave(exits.PROBLEMS)


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Ctrl-C goes to the program as well, and is its own to answer: psql gives up a line or a query and stays.

    A handler that does nothing, because to ignore the signal would be inherited by the program.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _installed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise exits.Refused(
            f"{program} is not installed here. Install the PostgreSQL client programs (postgresql-client)."
        )
    return found


def _without_password(url: str) -> tuple[str, dict[str, str]]:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, password = login.partition(":")
    if not colon:
        return url, {}
    return parts._replace(netloc=f"{user}{at}{host}").geturl(), {"PGPASSWORD": unquote(password)}
