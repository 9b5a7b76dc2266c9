"""What `rota doctor` asks of PostgreSQL: each finding with its remedy."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg

from rota.stores.contract import Finding
from rota.stores.postgres.faults import address, explained
from rota.stores.postgres.listen import is_direct
from rota.stores.postgres.migrate import LATEST, applied

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

OLDEST = 140_000
LONG_TRANSACTION = 300.0


async def diagnose(connections: Connections, listen_url: str | None) -> list[Finding]:
    """Look at the server, the schema, the rights, the pooler, the hints, the clock and what holds vacuum back."""
    try:
        connection = await connections.connect()
    except (psycopg.Error, OSError) as error:
        return [
            Finding(
                "bad",
                f"connection: {explained(error, connections.url)}",
                "Start PostgreSQL or correct the URL.",
            )
        ]
    found = [Finding("ok", f"connection: {address(connections.url)}")]
    try:
        found.append(await _server(connection))
        found.append(await _schema(connection))
        if found[-1].level != "bad":
            found.append(await _rights(connection))
            direct = await is_direct(connection)
            found.append(_pooler(listen_url, direct=direct))
            if direct or listen_url:
                found.append(await _hints(connections, listen_url))
        found.append(await _clock(connection))
        found.append(await _oldest_transaction(connection))
    except (psycopg.Error, OSError, TimeoutError) as error:
        found.append(
            Finding(
                "bad", f"a check failed: {explained(error, connections.url)}", "Look at the server's log."
            )
        )
    finally:
        with suppress(psycopg.Error):
            await connection.close()
    return found


async def _one(connection: Connection, query: str) -> tuple[object, ...]:
    row = await (await connection.execute(query.encode())).fetchone()
    assert row is not None
    return tuple(row)


async def _server(connection: Connection) -> Finding:
    number = connection.info.server_version
    name = f"{number // 10_000}.{number % 10_000}"
    if number < OLDEST:
        return Finding("bad", f"server: PostgreSQL {name} is too old", "Rota needs PostgreSQL 14 or newer.")
    return Finding("ok", f"server: PostgreSQL {name}")


async def _schema(connection: Connection) -> Finding:
    version = await applied(connection)
    if version == LATEST:
        return Finding("ok", f"schema: version {version}")
    if version > LATEST:
        return Finding(
            "bad",
            f"schema: version {version} is newer than this code ({LATEST})",
            "Upgrade the rota package.",
        )
    return Finding("bad", f"schema: version {version}, this code needs {LATEST}", "Run `rota migrate`.")


async def _rights(connection: Connection) -> Finding:
    lacking, role, owner, owns = await _one(
        connection,
        "SELECT array_agg(t.relname::text || ' ' || p.right_) FILTER (WHERE NOT has_table_privilege(t.oid, p.right_)),"
        " current_user::text, min(t.relowner::regrole::text) FILTER (WHERE t.relname = 'finished_jobs'),"
        " bool_and(pg_has_role(t.relowner, 'USAGE')) FILTER (WHERE t.relname = 'finished_jobs')"
        " FROM pg_class t, unnest(ARRAY['SELECT','INSERT','UPDATE','DELETE']) AS p (right_)"
        " WHERE t.relnamespace = 'rota'::regnamespace AND t.relname IN"
        " ('jobs','finished_jobs','dead_jobs','keys','tasks','sessions','failed_attempts')",
    )
    if lacking:
        names = ", ".join(lacking) if isinstance(lacking, list) else str(lacking)
        return Finding(
            "bad", f"rights: role {role} lacks {names}", "GRANT them, or connect as the owner of schema rota."
        )
    if not owns:
        return Finding(
            "warn",
            f"rights: role {role} may do its work, but not make and drop the days of finished jobs",
            f"Let one worker connect as the owner of schema rota, or GRANT {owner} TO {role}.",
        )
    return Finding("ok", f"rights: role {role} may do its work")


def _pooler(listen_url: str | None, *, direct: bool) -> Finding:
    if direct:
        return Finding("ok", "pooler: none, prepared statements are used")
    if listen_url:
        return Finding("ok", "pooler: one stands between; hints come by listen_url")
    return Finding(
        "warn",
        "pooler: one stands between, so new jobs are found by polling only",
        "Set listen_url (ROTA_LISTEN_URL) to a direct address for prompt starts.",
    )


async def _hints(connections: Connections, listen_url: str | None) -> Finding:
    listener = await connections.connect(listen_url)
    try:
        if not await is_direct(listener):
            return Finding(
                "warn",
                "hints: listen_url leads to a pooler, which keeps them to itself",
                "Set listen_url (ROTA_LISTEN_URL) to the server's own address.",
            )
        await listener.execute("LISTEN rota")
        word, began = f"p:{uuid4()}", time.monotonic()
        await listener.execute("SELECT pg_notify('rota', %s)", [word])
        async for notice in listener.notifies(timeout=2.0):
            if notice.payload == word:
                return Finding("ok", f"hints: a round trip took {(time.monotonic() - began) * 1000:.1f} ms")
    finally:
        await listener.close()
    return Finding(
        "warn", "hints: none came back within 2 s", "Jobs start by polling; check listen_url and the pooler."
    )


async def _clock(connection: Connection) -> Finding:
    before = datetime.now(UTC)
    (server,) = await _one(connection, "SELECT clock_timestamp()")
    assert isinstance(server, datetime)
    ahead = (server - before).total_seconds()
    if abs(ahead) > 2:
        return Finding(
            "warn",
            f"clock: this machine differs by {-ahead:+.1f} s from the server",
            "Jobs follow the server's clock; logs do not. Check NTP.",
        )
    return Finding("ok", f"clock: within {abs(ahead):.1f} s of the server")


async def _oldest_transaction(connection: Connection) -> Finding:
    row = await (
        await connection.execute(
            "SELECT pid, extract(epoch FROM now() - xact_start)::float8, coalesce(application_name, '')"
            " FROM pg_stat_activity WHERE xact_start IS NOT NULL AND datname = current_database()"
            " AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1"
        )
    ).fetchone()
    if row is not None and row[1] > LONG_TRANSACTION:
        return Finding(
            "warn",
            f"vacuum: a transaction of {row[2] or 'an unnamed client'} (pid {row[0]}) is {row[1] / 60:.0f} minutes old",
            f"It holds dead rows back; end it if it is forgotten: SELECT pg_terminate_backend({row[0]}).",
        )
    return Finding("ok", "vacuum: nothing old holds it back")
