"""`rota config`: each setting, its value, and who says so."""

from __future__ import annotations

import click

from rota.cli.commands import Call, Command, with_call


@click.command("config", cls=Command, examples=("rota config", "ROTA_LANES=general=20 rota config --json"))
@with_call
def config(call: Call) -> None:
    """Show each setting and where it comes from.

    Columns: setting, value, origin. Passwords are masked.
    """
    from rota.config import masked

    settings = call.settings()
    rows = [(row.name, row.value, row.origin) for row in settings.shown()]
    rows.append(("store", masked(settings.address()), "in effect"))
    headers = ("setting", "value", "origin")
    call.output.table(headers, rows, records=[dict(zip(headers, row, strict=True)) for row in rows])
