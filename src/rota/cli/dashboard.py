"""`rota dashboard`: the pages and the HTTP API, for people and programs; no jobs run here."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call
from rota.cli.locate import load_function
from rota.cli.tether import end_with

if TYPE_CHECKING:
    from rota.app import Rota


@click.command(
    "dashboard",
    cls=Command,
    examples=(
        "rota dashboard",
        "rota dashboard --port 9000 --name staging",
        "rota dashboard --host 0.0.0.0 --read-only --url postgresql://db/app",
        "rota dashboard --host 0.0.0.0 --auth ops.doors:who --allow-host jobs.example.org",
        "rota dashboard --prefix /ops/jobs --proxy 127.0.0.1 --allow-host ops.example.org",
    ),
)
@click.argument("app", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; 8484 or the next free one.")
@click.option(
    "--name", default="", help="What this environment is called, e.g. production; shown on every page."
)
@click.option("--prefix", default="", metavar="/PATH", help="Serve below this path, e.g. behind a proxy.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Answer only to this name; may be repeated."
)
@click.option(
    "--proxy",
    metavar="ADDRESS",
    help="Believe the X-Forwarded headers of a proxy there: who asks, and whether by https.",
)
@click.option(
    "--auth",
    metavar="MODULE:FUNCTION",
    help="Ask a function of yours who a request is from; it answers a rota.web.User, or None for nobody.",
)
@click.option("--tether", type=int, hidden=True)
@click.option("--read-only", is_flag=True, help="Nobody changes anything here, whatever his role.")
@with_call
def dashboard(
    call: Call,
    app: str | None,
    *,
    host: str,
    port: int | None,
    name: str,
    prefix: str,
    hosts: tuple[str, ...],
    read_only: bool,
    proxy: str | None,
    auth: str | None,
    tether: int | None,
) -> None:
    """Serve the dashboard and the HTTP API.

    On this machine it prints a link that logs you in, once. Anybody else needs a token (`rota token create`) or must be
    known to --auth; without either it refuses to listen on an address that other machines can reach. It needs no code
    of yours; with APP, what people enqueue is checked by that app's own code.
    """
    end_with(tether)
    below = checked_prefix(prefix)
    shown: dict[str, Any] = {"hosts": hosts, "name": name, "read_only": read_only}
    if auth is not None:
        if not hosts:
            raise click.UsageError(
                "--auth believes what a browser sends by itself, so say by which names this is reached: "
                "--allow-host jobs.example.org"
            )
        shown["auth"] = load_function(auth, "--auth")
    quietly = tether is not None
    if not quietly:  # else the worker beside it says so
        call.announce_starts()
    exits.leave(asyncio.run(_serve(call, app, host, port, shown, prefix=below, proxy=proxy, quietly=quietly)))


async def _serve(
    call: Call,
    app: str | None,
    host: str,
    port: int | None,
    shown: dict[str, Any],
    *,
    prefix: str,
    proxy: str | None,
    quietly: bool,
) -> int:
    from rota.web import dashboard as built
    from rota.web import refuse_open_bind
    from rota.web.binding import is_loopback
    from rota.web.serving import Served, bind

    rota, near = _app(call, app), is_loopback(host)
    try:
        if not near:
            refuse_open_bind(host, guarded="auth" in shown or await _has_tokens(rota))
        # Whoever comes from elsewhere shows a token of his own, which no foreign name can make his browser send.
        names = shown["hosts"] or (None if near else ("*",))
        site = built(rota, **shown | {"hosts": names})
        server = Served(site, bind(host, port), prefix, proxy=proxy)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await server.start()
        if near:
            call.output.words(f"Dashboard: {server.link()}  (valid for 10 minutes, once)")
            if not quietly:
                call.output.words("The link logs you in once, on this machine. Stop with Ctrl-C.")
        else:
            call.output.words(f"Dashboard: {server.address}/  Log in with a token. Stop with Ctrl-C.")
        await stop.wait()
        await server.stop()
    finally:
        await rota.close()
    return exits.DONE


def _app(call: Call, app: str | None) -> Rota:
    if app is not None:
        from rota.cli.worker import load

        return load(call, app, quietly=True)
    from rota.app import Rota
    from rota.cli import logs

    settings = call.settings()
    logs.configure(settings, verbose=call.verbose)
    return Rota(settings=settings)


async def _has_tokens(rota: Rota) -> bool:
    now = await rota.store.now()
    return any(token.state(now) == "active" for token in await rota.store.tokens())


def checked_prefix(text: str) -> str:
    """`/ops/jobs`, without a slash at its end."""
    prefix = text.rstrip("/")
    if prefix and (not prefix.startswith("/") or any(letter in prefix for letter in " ?#\\\"'<>")):
        raise click.UsageError(f"--prefix {text!r} is not a path. Write it as /ops/jobs.")
    if prefix:
        from rota.web.serving import is_a_page

        if is_a_page(prefix):
            raise click.UsageError(
                f"--prefix {text!r} is the address of something on the dashboard itself: behind a proxy that takes the "
                f"prefix away, nobody could tell the two apart. Choose a free one, such as /ops{prefix}."
            )
    return prefix
