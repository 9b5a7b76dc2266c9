"""`rota jobs why`: in words, why a job is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.explain import explain
from rota._core.ids import public_id
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import JobId
from rota.cli.records import error_of
from rota.cli.words import clean

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.explanation import Explanation
    from rota.admin import Admin


@click.command(
    "why",
    cls=Command,
    examples=("rota jobs why 0198c1a2-…", "rota jobs why 0198c1a2-… --json | jq -r .command"),
)
@click.argument("job_id", metavar="ID", type=JobId())
@with_admin
async def why(call: Call, admin: Admin, job_id: UUID) -> None:
    """Say why a job is not running, and what would unblock it.

    The first line is the reason, an indented line is a command to type, and each `Also:` is what would still be in its
    way after that.
    """
    from rota.explaining import facts_of

    job = await admin.job(job_id)
    named = job._replace(error_message=error_of(job, await admin.store.attempts(job_id)))
    explanation = explain(await facts_of(admin.store, named))
    if call.output.as_json:
        call.output.value(record(explanation))
    else:
        call.output.text(clean(str(explanation)))


def record(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON."""
    said = explanation._asdict()
    return said | {
        "job_id": str(explanation.job_id),
        "public_id": public_id(explanation.job_id),
        "also": [other._asdict() for other in explanation.also],
    }
