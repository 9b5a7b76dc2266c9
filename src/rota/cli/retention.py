"""`rota retention`: how long ended jobs are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.retention import KEPT, Policy
from rota.cli import exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.params import Length
from rota.cli.words import ago, span

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.admin import Admin

FOR_EVER = ("forever", "for ever")
HEADERS = ("about", "keep", "set by", "when", "reason")


class Keep(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A length of time in seconds, or `forever`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        return -1.0 if value.strip().lower() in FOR_EVER else Length().convert(value, param, ctx)


@click.group(
    "retention",
    cls=Group,
    examples=(
        "rota retention list",
        "rota retention set --state completed --keep 30d --reason 'support asks for a month'",
        "rota retention set --tenant acme --keep forever --reason 'legal hold, ticket 12'",
        "rota retention remove --tenant acme",
    ),
)
def retention() -> None:
    """Say how long ended jobs are kept."""


def _about(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option(
                "--state",
                type=click.Choice(KEPT, case_sensitive=False),
                help="Only jobs that ended so; archived: the summaries of all.",
            ),
            click.option("--task", help="Only jobs of this task."),
            click.option("--tenant", help="Only jobs of this tenant."),
        )
    ):
        command = option(command)
    return command


@retention.command("list", examples=("rota retention list", "rota retention list --json"))
@with_admin
async def list_policies(call: Call, admin: Admin) -> None:
    """List the policies, the most specific first; the first that fits a job counts for it.

    Columns: what it is about, keep (seconds), set by, when, reason.
    """
    from rota.admin.retention import default_policies

    now = await admin.store.now()
    found = [*await admin.policies(), *default_policies()]
    rows = [(p.words, _keep(p), p.set_by or "default", p.set_at, p.reason) for p in found]
    call.output.table(
        HEADERS,
        rows,
        shown=[(p.words, kept(p), p.set_by or "default", ago(p.set_at, now), p.reason or "") for p in found],
        records=[record(policy) for policy in found],
    )


@retention.command(
    "set",
    examples=(
        "rota retention set --keep 30d                                  everything, a month",
        "rota retention set --state completed --task ping --keep 1h",
        "rota retention set --tenant acme --keep forever --reason 'legal hold'",
        "rota retention set --state archived --keep 730d                summaries, two years",
    ),
)
@_about
@click.option("--keep", type=Keep(), required=True, help="How long after their end: 12h, 30d, forever.")
@click.option("--reason", help="Why; kept with the policy and in the audit.")
@with_admin
async def set_policy(call: Call, admin: Admin, *, keep: float, reason: str | None, **about: Any) -> None:
    """Say how long such jobs are kept; dead ones from the end of their review on.

    A policy for a tenant counts before one for a task, and that before one for a state.
    """
    policy = await admin.set_policy(Policy(None if keep < 0 else keep, **about), reason=reason)
    if call.output.as_json:
        call.output.value(record(policy))
    call.output.words(
        f"Jobs ({policy.words}) are kept {kept(policy)}. `rota prune --dry-run` shows what that lets go now."
    )


@retention.command(
    "remove", examples=("rota retention remove --tenant acme", "rota retention remove --task ping")
)
@_about
@click.option("--reason", help="Why; kept in the audit.")
@with_admin
async def remove(call: Call, admin: Admin, *, reason: str | None, **about: Any) -> None:
    """Remove the policy about exactly these jobs; the next more general one counts then."""
    wanted = Policy(None, **about)
    removed = await admin.remove_policy(wanted, reason=reason)
    if removed is None:
        call.output.words(
            f"There is no policy about {wanted.words}. `rota retention list` shows what there is."
        )
        exits.leave(exits.NOTHING)
        return
    if call.output.as_json:
        call.output.value(record(removed))
    call.output.words(f"Removed: {removed.words}, kept {kept(removed)}.")


def record(policy: Policy) -> dict[str, Any]:
    """A policy as JSON."""
    return {
        "state": policy.state,
        "task": policy.task,
        "tenant": policy.tenant,
        "keep": policy.keep,
        "reason": policy.reason,
        "set_by": policy.set_by or None,
        "set_at": policy.set_at,
    }


def kept(policy: Policy) -> str:
    """How long a policy keeps, for people."""
    return "for ever" if policy.keep is None else span(policy.keep)


def _keep(policy: Policy) -> str:
    return "forever" if policy.keep is None else f"{policy.keep:.10g}"
