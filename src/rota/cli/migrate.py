"""`rota migrate` and `rota schema`: the schema, brought up to date, checked, shown, or printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli import exits
from rota.cli.commands import Call, Command, with_call, with_store
from rota.cli.words import many

if TYPE_CHECKING:
    from rota.stores.contract import Store
    from rota.stores.migration_contract import SchemaState


@click.command(
    "migrate",
    cls=Command,
    examples=(
        "rota migrate --url postgresql://owner@host/shop",
        "rota migrate --check                         in CI and before a deploy",
        "rota migrate --sql > rota.sql                for a database administrator",
        "rota migrate --to 12                         no further than old workers allow",
    ),
)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if something is pending.")
@click.option("--sql", is_flag=True, help="Print the SQL of all migrations; needs no database.")
@click.option("--pending", is_flag=True, help="With --sql: only what this database lacks.")
@click.option("--to", type=int, metavar="N", help="Only up to version N; `rota schema` lists them.")
@with_call
def migrate(call: Call, *, check: bool, sql: bool, pending: bool, to: int | None) -> None:
    """Bring the database schema up to date.

    Safe to run from several places at once, and while workers run. Migrations only go forward.
    """
    if check and sql:
        raise click.UsageError("--check and --sql were both given; choose one.")
    if pending and not sql:
        raise click.UsageError("--pending needs --sql.")
    if to is not None:
        _known(to)
    if sql and not pending:
        _print_all(call, to)
    elif sql:
        _print_pending(to=to)
    elif check:
        _check(to=to)
    else:
        _apply(to=to)


@click.command(
    "schema",
    cls=Command,
    examples=(
        "rota schema",
        "rota schema --json | jq .pending",
        "rota schema --sql > rota.sql                 all of it, for psql",
    ),
)
@click.option("--sql", is_flag=True, help="Print the SQL that makes the whole schema; needs no database.")
@with_call
def schema(call: Call, *, sql: bool) -> None:
    """Show which version the database schema has, and what is pending.

    Columns: version, migration, applied or pending, when.
    """
    if sql:
        _print_all(call, None)
    else:
        _show()


def _known(to: int) -> None:
    from rota.stores.opening import latest_migration

    latest = latest_migration()
    if not 1 <= to <= latest:
        raise exits.Wrong(
            f"there is no schema version {to}: this code knows 1 to {latest}. `rota schema` lists them."
        )


def _print_all(call: Call, to: int | None) -> None:
    from rota.stores.opening import migration_sql

    call.output.text(migration_sql(to=to))


@with_store
async def _print_pending(call: Call, store: Store, to: int | None) -> None:
    from rota.stores.opening import migration_sql

    state = await _state(store)
    if state is not None and state.pending(to):
        call.output.text(migration_sql(state.version, to))
    else:
        call.output.words("The schema is up to date; there is no SQL to run.")


@with_store
async def _check(call: Call, store: Store, to: int | None) -> None:
    state = await _state(store)
    lacking = [] if state is None else state.pending(to)
    call.output.table(
        ("pending",), [(name,) for name in lacking], records=[{"pending": name} for name in lacking]
    )
    if lacking:
        again = "" if to is None else f" --to {to}"
        call.output.words(f"{many(len(lacking), 'migration')} pending. Run `rota migrate{again}`.")
        exits.leave(exits.PROBLEMS)
    call.output.words(
        "The schema is up to date." if to is None else f"Nothing is pending up to version {to}."
    )


@with_store
async def _apply(call: Call, store: Store, to: int | None) -> None:
    state = await _state(store)
    if state is None:
        call.output.table(("applied",), [], records=())
        call.output.words(f"The store ({store.name}) has no schema; there is nothing to apply.")
        return
    if to is not None:
        _forward(state, to)
    applied = await store.migrate(to=to)
    call.output.table(
        ("applied",), [(name,) for name in applied], records=[{"applied": name} for name in applied]
    )
    already = "The schema is up to date already." if to is None else f"The schema has version {to} already."
    call.output.words(f"{many(len(applied), 'migration')} applied." if applied else already)
    if to is not None and to < state.latest:
        call.output.words(
            f"The database has version {to}, and this code works with {state.latest} only: "
            "`rota migrate` brings the rest."
        )


def _forward(state: SchemaState, to: int) -> None:
    if to < state.version:
        raise exits.Refused(
            f"the database has schema version {state.version}, and --to {to} lies before it. Migrations only go "
            "forward: an older schema comes back with a backup that was made before."
        )


@with_store
async def _show(call: Call, store: Store) -> None:
    state = await _state(store)
    if state is None:
        call.output.words(f"The store ({store.name}) has no schema.")
        if call.output.as_json:
            call.output.value({"version": None, "latest": None, "pending": [], "migrations": []})
        return
    pending = state.pending()
    if call.output.as_json:
        call.output.value(
            {
                "version": state.version,
                "latest": state.latest,
                "pending": pending,
                "migrations": [one._asdict() for one in state.migrations],
            }
        )
        return
    rows = [
        (one.version, one.name, "pending" if one.applied_at is None else "applied", one.applied_at)
        for one in state.migrations
    ]
    shown = [(*map(str, row[:3]), "" if row[3] is None else f"{row[3]:%Y-%m-%d %H:%M %Z}") for row in rows]
    call.output.table(("version", "migration", "state", "when"), rows, shown=shown, records=())
    call.output.words(_told(state, pending))


def _told(state: SchemaState, pending: list[str]) -> str:
    if not state.version:
        return f"The database has no schema yet; this code needs version {state.latest}. Run `rota migrate`."
    if state.version > state.latest:
        return (
            f"The database has version {state.version}, and this code knows only {state.latest}: it is older than what "
            "migrated the database. Install the newer Rota."
        )
    if pending:
        lacking = many(len(pending), "migration")
        return f"Version {state.version} of {state.latest}: {lacking} pending. Run `rota migrate`."
    return f"Version {state.version}: up to date."


async def _state(store: Store) -> SchemaState | None:
    """How far the schema is; None where the store has none."""
    ask = getattr(store, "schema_state", None)
    return None if ask is None else await ask()
