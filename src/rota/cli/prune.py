"""`rota prune`: let go of ended jobs now, as the policies say or older than told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.retention import PRUNED, Pruning
from rota.cli import exits
from rota.cli.commands import Call, Command, with_admin
from rota.cli.params import Length
from rota.cli.words import ago, many

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rota._core.retention import Foreseen, Pruned
    from rota.admin import Admin

HEADERS = ("policy", "state", "jobs", "stay", "oldest", "newest")


@click.command(
    "prune",
    cls=Command,
    examples=(
        "rota prune --dry-run                                   what is past its time, by policy",
        "rota prune --state completed --older-than 1d --yes     make room now",
        "rota prune --tenant acme --older-than 0 --reason 'contract ended'",
    ),
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(PRUNED, case_sensitive=False),
    help="Only jobs that ended so; may be repeated.",
)
@click.option("--task", help="Only jobs of this task.")
@click.option("--tenant", help="Only jobs of this tenant.")
@click.option(
    "--older-than",
    type=Length(),
    help="So long after their end (12h, 3d), in place of what the policies say.",
)
@click.option("--reason", help="Why; kept in the audit.")
@click.option("--dry-run", is_flag=True, help="Say what would go; change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@with_admin
async def prune(
    call: Call,
    admin: Admin,
    *,
    states: tuple[str, ...],
    older_than: float | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    **only: Any,
) -> None:
    """Move ended jobs that are past their time to the archive.

    Workers do so about once an hour. Arguments, results, attempts and logs are gone then; a summary stays for a year.
    Never goes: what waits for review or is being reprocessed, what unfinished jobs refer to, and what a policy keeps
    for ever.

    Columns: policy, state, jobs that go, jobs that stay because unfinished ones refer to them, oldest, newest.
    """
    wanted = Pruning(states, older_than=older_than, **only)
    found = await admin.foresee(wanted)
    total = sum(one.jobs for one in found)
    if dry_run or not call.output.as_json:
        _show(call, found, await admin.store.now())
    if not total:
        call.output.words("No job is past its time.")
        exits.leave(exits.NOTHING)
    if dry_run:
        call.output.words(f"{many(total, 'job')} would go to the archive. Nothing was changed.")
        return
    call.output.confirm(f"Move {many(total, 'job')} to the archive, for good?", yes=yes)
    with call.output.progress("prune", total) as advance:
        pruned = await admin.prune(wanted, reason=reason, on_progress=advance)
    _answer(call, pruned)


def _answer(call: Call, pruned: Pruned) -> None:
    if call.output.as_json:
        call.output.value(
            {"archived": pruned.jobs, "finished": pruned.finished, "dead": pruned.dead, "busy": pruned.busy}
        )
    if pruned.busy:
        call.output.words(
            "Somebody else purges at the moment (a worker, or another `rota prune`); "
            f"{many(pruned.jobs, 'job')} went to the archive here. Try again in a minute."
        )
        exits.leave(exits.PROBLEMS)
    call.output.words(
        f"{many(pruned.jobs, 'job')} went to the archive; `rota jobs show ID` has their summaries."
    )


def _show(call: Call, found: Sequence[Foreseen], now: datetime) -> None:
    call.output.table(
        HEADERS,
        [(*_named(one), one.jobs, one.bound, one.oldest, one.newest) for one in found],
        shown=[
            (*_named(one), f"{one.jobs:,}", f"{one.bound:,}", ago(one.oldest, now), ago(one.newest, now))
            for one in found
        ],
        records=[
            one._asdict() | {"policy": None if one.policy is None else one.policy.words} for one in found
        ],
    )


def _named(one: Foreseen) -> tuple[str, str]:
    return "default" if one.policy is None else one.policy.words, one.state
