"""`rota health`: yes or no, quickly, for container probes and load balancers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call, with_running_admin
from rota.cli.params import Length
from rota.cli.words import many, span
from rota.errors import StoreUnavailable

if TYPE_CHECKING:
    from rota.admin import Admin

PATIENCE = 5.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to ask one that listens there


@click.command(
    "health",
    cls=Command,
    examples=("rota health", "rota health --workers 2 --timeout 2s", "rota health --port 8081"),
)
@click.option(
    "--workers", type=click.IntRange(0), metavar="N", help="Ask the store: at least so many living workers."
)
@click.option("--port", metavar="[HOST:]PORT", help="Ask the worker behind this health port, not the store.")
@click.option(
    "--timeout", type=Length(), default=PATIENCE, show_default="5s", help="How long the answer may take."
)
@with_call
def health(call: Call, *, workers: int | None, port: str | None, timeout: float) -> None:
    """Answer quickly whether all is well, for probes.

    Asks the worker of this machine where a health port is set (--port, ROTA_HEALTH_PORT, rota.toml), else the store.
    Exit 0: the worker is ready; or the store answers, its schema fits, and enough workers live. Exit 3: nobody
    answers. Exit 1: anything else. It starts nothing: an embedded server that does not run is nobody.
    """
    if workers is not None and port is not None:
        raise click.UsageError("--workers asks the store and --port asks one worker; give one of them.")
    if port is None and workers is None:
        port = call.settings().health_port
    if port is not None:
        _ask_worker(call, port, timeout)
    else:
        _ask_store(workers=workers or 0, timeout=timeout)


def _ask_worker(call: Call, port: str, timeout: float) -> None:
    import http.client

    from rota.worker.supervisor.health import Address

    address = Address.parse(port)
    here = address._replace(host=EVERYWHERE.get(address.host, address.host))
    line = http.client.HTTPConnection(here.host, here.port, timeout=timeout)
    try:
        line.request("GET", "/readyz")
        answer = line.getresponse()
        words = answer.read().decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise StoreUnavailable(
            f"no worker answers at {here} ({error}). Start one with `rota worker --health-port {port}`, or correct "
            "the port."
        ) from error
    finally:
        line.close()
    well = answer.status == 200
    call.output.table(
        ("healthy", "says"), [("yes" if well else "no", words)], records=[{"healthy": well, "says": words}]
    )
    if not well:
        exits.leave(exits.PROBLEMS)


@with_running_admin
async def _ask_store(call: Call, admin: Admin, *, workers: int, timeout: float) -> None:  # noqa: ASYNC109 - the option
    try:
        async with asyncio.timeout(timeout):
            await admin.store.open()
            living = len(await admin.living())
    except TimeoutError as error:
        raise StoreUnavailable(
            f"the store did not answer within {span(timeout)}. See whether it is up, or allow more with --timeout."
        ) from error
    well = living >= workers
    call.output.table(
        ("healthy", "workers"),
        [("yes" if well else "no", living)],
        records=[{"healthy": well, "workers": living}],
    )
    if not well:
        call.output.words(
            f"{many(living, 'worker')} living, {workers} wanted. Start more with `rota worker`."
        )
        exits.leave(exits.PROBLEMS)
