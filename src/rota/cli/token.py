"""`rota token`: who may ask over HTTP, as what, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.token import Role
from rota.cli import exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.params import Length
from rota.cli.words import ago

if TYPE_CHECKING:
    from datetime import datetime

    from rota._core.token import Token
    from rota.admin import Admin

HEADERS = ("id", "name", "role", "tenant", "state", "by", "made", "expires", "last used")
QUARTER = 90 * 86_400.0


class Lasting(Length):
    """A length of time, or `never`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return "never" if value == "never" else super().convert(value, param, ctx)


@click.group(
    "token",
    cls=Group,
    examples=(
        "rota token create 'grafana' --role viewer",
        "rota token list",
        "rota token revoke k3f9atc42bqz --reason 'laptop lost'",
    ),
)
def token() -> None:
    """Make, list and revoke access tokens for the API and the pages."""


@token.command(
    "create",
    examples=(
        "rota token create 'ann, on call' --role operator --expires 12h",
        "rota token create 'acme portal' --tenant acme",
        "rota token create ci --role operator > token.txt     # the token alone goes to stdout",
    ),
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.VIEWER.value,
    show_default=True,
    help="viewer looks; operator also acts on jobs; manager does all.",
)
@click.option("--tenant", help="Only this tenant's jobs exist for it; else every tenant's.")
@click.option(
    "--expires",
    type=Lasting(),
    default=QUARTER,
    metavar="DURATION",
    show_default="90d",
    help="How long it counts, such as 12h or 30d; or never.",
)
@click.option("--reason", help="Why, for the audit.")
@with_admin
async def create(
    call: Call,
    admin: Admin,
    *,
    name: str,
    role: str,
    tenant: str | None,
    expires: float | str,
    reason: str | None,
) -> None:
    """Make a token and print it. This is the only time that it is shown: only its digest is stored.

    NAME says who or what uses it, for the list and for the audit.
    """
    made = await admin.create_token(
        name,
        role=Role(role),
        tenant=tenant,
        lasts=None if isinstance(expires, str) else expires,
        reason=reason,
    )
    if call.output.as_json:
        call.output.value(record(made.token, await admin.store.now()) | {"token": made.text})
        return
    call.output.text(made.text)
    until = made.token.expires_at
    ends = "until it is revoked" if until is None else f"until {until:%Y-%m-%d %H:%M} UTC"
    call.output.words(
        f"Token {made.token.id} ({made.token.name}) is {made.token}, {ends}.\n"
        "It is shown only now: put it where secrets are kept. "
        f"`rota token revoke {made.token.id}` ends it."
    )


@token.command("list", examples=("rota token list", "rota token list --all --json"))
@click.option("--all", "everything", is_flag=True, help="Those that expired or were revoked too.")
@with_admin
async def list_tokens(call: Call, admin: Admin, everything: bool) -> None:
    """List tokens that count, newest first; never their texts.

    Columns: id, name, role, tenant, state, by whom it was made, when, when it expires, when it was last used
    (to a minute).
    """
    now = await admin.store.now()
    known = await admin.tokens()
    found = [one for one in known if everything or one.state(now) == "active"]
    call.output.table(
        HEADERS,
        [_row(one, now) for one in found],
        shown=[_shown(one, now) for one in found],
        records=[record(one, now) for one in found],
    )
    if not found:
        call.output.words(
            "No token counts now; --all shows those that did."
            if known
            else "There are no tokens. `rota token create NAME` makes one."
        )
        exits.leave(exits.NOTHING)


@token.command(
    "revoke", examples=("rota token revoke k3f9atc42bqz", "rota token revoke k3f9atc42bqz --reason 'left us'")
)
@click.argument("token_id", metavar="ID")
@click.option("--reason", help="Why, for the audit.")
@with_admin
async def revoke(call: Call, admin: Admin, token_id: str, reason: str | None) -> None:
    """Let a token count no more, at once and for good.

    ID is from `rota token list`; a leaked token itself will do.
    """
    from rota.admin.tokens import TokenNotFound

    try:
        revoked = await admin.revoke_token(token_id, reason=reason)
    except TokenNotFound as error:
        call.output.words(f"rota: {error}")
        exits.leave(exits.NOTHING)
    now = await admin.store.now()
    if call.output.as_json:
        call.output.value(record(revoked, now))
        return
    used = (
        "It was never used."
        if revoked.last_used_at is None
        else f"Last used {ago(revoked.last_used_at, now)}."
    )
    call.output.words(f"Token {revoked.id} ({revoked.name}) counts no more. {used}")


def _row(one: Token, now: datetime) -> tuple[object, ...]:
    return (
        one.id,
        one.name,
        one.role.value,
        one.tenant,
        one.state(now),
        one.created_by,
        one.created_at,
        one.expires_at,
        one.last_used_at,
    )


def _shown(one: Token, now: datetime) -> tuple[str, ...]:
    return (
        one.id,
        one.name,
        one.role.value,
        one.tenant or "all",
        one.state(now),
        one.created_by,
        ago(one.created_at, now),
        "never" if one.expires_at is None else ago(one.expires_at, now),
        "never" if one.last_used_at is None else ago(one.last_used_at, now),
    )


def record(one: Token, now: datetime) -> dict[str, Any]:
    """A token as JSON, without what proves it."""
    fields = one._asdict() | {"role": one.role.value, "state": one.state(now)}
    del fields["digest"]
    return fields
