"""Migrations: numbered SQL files, applied in order under a lock, each once."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import errors as pg

from rota.errors import StoreUnavailable
from rota.stores.migration_contract import Migrated, SchemaState
from rota.stores.postgres.faults import address

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('rota.migrate', 0))"
PREPARE = """
CREATE SCHEMA IF NOT EXISTS rota;
CREATE TABLE IF NOT EXISTS rota.migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""
LOCK_TRIES = 30


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """All migrations that this code knows, in order."""
    found = []
    for entry in files("rota.stores.postgres").joinpath("migrations").iterdir():
        number = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if number:
            found.append(Migration(int(number[1]), entry.name.removesuffix(".sql"), entry.read_text("utf-8")))
    return sorted(found)


LATEST = max(migration.version for migration in migrations())


def sql(since: int = 0, to: int = LATEST) -> str:
    """The migrations after version `since`, up to version `to`, as one script that psql can run."""
    parts = ["BEGIN;", PREPARE.strip()] if since == 0 else ["BEGIN;"]
    for migration in migrations():
        if since < migration.version <= to:
            parts += [f"-- {migration.name}", migration.sql.strip(), _record(migration)]
    return "\n\n".join([*parts, "COMMIT;"]) + "\n"


async def applied(connection: Connection) -> int:
    """The version that the database has; 0 when it has none."""
    return max((one.version for one in await _recorded(connection)), default=0)


async def state(connection: Connection) -> SchemaState:
    """How far the database is, and what it lacks."""
    there = await _recorded(connection)
    version = max((one.version for one in there), default=0)
    known = {one.version: Migrated(one.version, one.name, None) for one in migrations()}
    known.update({one.version: one for one in there})
    return SchemaState(version, LATEST, tuple(known[number] for number in sorted(known)))


async def _recorded(connection: Connection) -> list[Migrated]:
    try:
        rows = await connection.execute(
            "SELECT version, name, applied_at FROM rota.migrations ORDER BY version"
        )
    except (pg.UndefinedTable, pg.InvalidSchemaName):
        return []
    return [Migrated._make(row) for row in await rows.fetchall()]


async def migrate(connection: Connection, url: str, to: int | None = None) -> list[str]:
    """Apply what is missing up to `to`; the names of what was applied. Several at once are harmless: one waits."""
    done = []
    for migration in migrations():
        if to is not None and migration.version > to:
            break
        for attempt in range(LOCK_TRIES):
            try:
                if await _apply(connection, migration):
                    done.append(migration.name)
                break
            except pg.LockNotAvailable as error:
                # Somebody holds a table. Waiting in line would block everybody behind us: step back, try again.
                if attempt == LOCK_TRIES - 1:
                    raise StoreUnavailable(
                        f"PostgreSQL at {address(url)}: migration {migration.name} found its tables locked by others "
                        f"{LOCK_TRIES} times. Nothing was changed. See pg_stat_activity for a transaction that was "
                        "left open, end it, and run `rota migrate` again."
                    ) from error
                await asyncio.sleep(0.2)
    return done


async def _apply(connection: Connection, migration: Migration) -> bool:
    async with connection.transaction():
        await connection.execute(LOCK)
        await connection.execute("SET LOCAL lock_timeout = '2s'")
        await connection.execute("SET LOCAL client_min_messages = warning")
        await _script(connection, PREPARE)
        if await applied(connection) >= migration.version:
            return False
        await _script(connection, migration.sql)
        await _script(connection, _record(migration))
        return True


def _record(migration: Migration) -> str:
    return f"INSERT INTO rota.migrations (version, name) VALUES ({migration.version}, '{migration.name}');"  # noqa: S608


async def _script(connection: Connection, text: str) -> None:
    """Run our own SQL of many statements, which only a cursor that asks for text answers can."""
    await psycopg.AsyncCursor(connection).execute(text.encode())
