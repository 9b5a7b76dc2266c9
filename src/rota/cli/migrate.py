"""`rota migrate`: the schema, brought up to date, checked, or printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call, with_store
from rota.cli.words import many

if TYPE_CHECKING:
    from rota.stores.contract import Store


@click.command(
    "migrate",
    cls=Command,
    examples=(
        "rota migrate --url postgresql://owner@host/shop",
        "rota migrate --check                         in CI and before a deploy",
        "rota migrate --sql > rota.sql                for a database administrator",
    ),
)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if something is pending.")
@click.option("--sql", is_flag=True, help="Print the SQL of all migrations; needs no database.")
@click.option("--pending", is_flag=True, help="With --sql: only what this database lacks.")
@with_call
def migrate(call: Call, *, check: bool, sql: bool, pending: bool) -> None:
    """Bring the database schema up to date.

    Safe to run from several places at once, and while workers run.
    """
    if check and sql:
        raise click.UsageError("--check and --sql were both given; choose one.")
    if pending and not sql:
        raise click.UsageError("--pending needs --sql.")
    if sql and not pending:
        _print_all(call)
    elif sql:
        _print_pending()
    elif check:
        _check()
    else:
        _apply()


def _print_all(call: Call) -> None:
    from rota.stores.opening import migration_sql

    call.output.text(migration_sql())


@with_store
async def _print_pending(call: Call, store: Store) -> None:
    from rota.stores.opening import migration_sql

    lacking = await _pending(store)
    if lacking:
        call.output.text(migration_sql(since=int(lacking[0][:4]) - 1))
    else:
        call.output.words("The schema is up to date; there is no SQL to run.")


@with_store
async def _check(call: Call, store: Store) -> None:
    lacking = await _pending(store)
    call.output.table(
        ("pending",), [(name,) for name in lacking], records=[{"pending": name} for name in lacking]
    )
    if lacking:
        call.output.words(f"{many(len(lacking), 'migration')} pending. Run `rota migrate`.")
        exits.leave(exits.PROBLEMS)
    call.output.words("The schema is up to date.")


@with_store
async def _apply(call: Call, store: Store) -> None:
    applied = await store.migrate()
    call.output.table(
        ("applied",), [(name,) for name in applied], records=[{"applied": name} for name in applied]
    )
    call.output.words(
        f"{many(len(applied), 'migration')} applied." if applied else "The schema is up to date already."
    )


async def _pending(store: Store) -> list[str]:
    """What the schema lacks; a store without a schema lacks nothing."""
    ask = getattr(store, "pending_migrations", None)
    return [] if ask is None else list(await ask())
