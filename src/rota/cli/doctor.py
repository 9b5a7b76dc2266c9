"""`rota doctor`: look at everything that is usually wrong, and say what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call, with_running_admin
from rota.cli.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.admin import Admin
    from rota.stores.contract import Finding

HEADERS = ("level", "what", "fix")


@click.command("doctor", cls=Command, examples=("rota doctor", "rota doctor --url postgresql://… --json"))
@with_call
def doctor(call: Call) -> None:
    """Examine the store and say what to fix.

    Columns: level (ok, warn or bad), what was found, how to fix it. Exit 1 if anything is bad. It changes nothing: an
    embedded server that does not run is not started.
    """
    from rota.stores.contract import Finding
    from rota.stores.opening import EmbeddedStopped

    try:
        _examine()
    except EmbeddedStopped as stopped:
        _tell(call, [Finding("bad", f"store: {stopped.what}", stopped.fix), _where(call), _probes(call)])


@with_running_admin
async def _examine(call: Call, admin: Admin) -> None:
    _tell(call, [_where(call), *await admin.examine(), _probes(call)])


def _tell(call: Call, found: Sequence[Finding]) -> None:
    call.output.table(
        HEADERS,
        [tuple(finding) for finding in found],
        records=[finding._asdict() for finding in found],
    )
    bad = sum(finding.level == "bad" for finding in found)
    warned = sum(finding.level == "warn" for finding in found)
    if bad:
        call.output.words(f"{many(bad, 'problem')}, {many(warned, 'warning')}.")
        exits.leave(exits.PROBLEMS)
    call.output.words("All is well." if not warned else f"No problem, {many(warned, 'warning')}.")


def _where(call: Call) -> Finding:
    """Embedded or server, and who says so: the first thing that is wrong is usually the address."""
    from rota.config import EMBEDDED, masked
    from rota.stores.contract import Finding
    from rota.stores.opening import embedded_path

    settings = call.settings()
    address, origin = settings.address(), settings.origin("url")
    if not address.startswith(EMBEDDED):
        return Finding("ok", f"store: {masked(address)} (from {origin})")
    path = embedded_path(address)
    if settings.production is not None:
        return Finding(
            "warn",
            f"store: the embedded server in {path}, and this is production ({settings.production})",
            "Jobs live and die with this machine; set ROTA_URL to a PostgreSQL server.",
        )
    return Finding("ok", f"store: the embedded server in {path} (from {origin})")


def _probes(call: Call) -> Finding:
    """Whether a worker that is started with these settings tells others how it is."""
    from rota.stores.contract import Finding

    port = call.settings().health_port
    if port is not None:
        return Finding("ok", f"health port: {port}")
    return Finding("ok", "health port: none", "For probes and Prometheus: rota worker --health-port 8081.")
