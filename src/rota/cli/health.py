"""`rota health`: yes or no, quickly, for container probes and load balancers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import Length
from rota.cli.words import many, span
from rota.errors import StoreUnavailable

if TYPE_CHECKING:
    from rota.admin import Admin

PATIENCE = 5.0


@click.command("health", cls=Command, examples=("rota health", "rota health --workers 2 --timeout 2s"))
@click.option(
    "--workers", type=click.IntRange(0), default=0, metavar="N", help="At least so many living workers."
)
@click.option(
    "--timeout", type=Length(), default=PATIENCE, show_default="5s", help="How long the store may take."
)
@with_admin
async def health(call: Call, admin: Admin, *, workers: int, timeout: float) -> None:  # noqa: ASYNC109 - the option
    """Answer quickly whether all is well, for probes.

    Exit 0: the store answers, its schema fits, and enough workers live. Exit 3: the store cannot be reached.
    Exit 1: anything else.
    """
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
