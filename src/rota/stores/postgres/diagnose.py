"""What `rota doctor` asks of PostgreSQL: each finding with its remedy."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg

from rota._core.lengths import percent
from rota.stores.contract import Finding, PrivateFinding
from rota.stores.postgres.faults import address, explained
from rota.stores.postgres.migrate import LATEST, applied
from rota.stores.postgres.pooling import Pooling, pooling

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

OLDEST = 140_000
LONG_TRANSACTION = 300.0
CROWDED_NOTICES = 0.25


async def diagnose(connections: Connections, listen_url: str | None) -> list[Finding]:
    """Look at the server, the schema, the rights, the pooler, the hints, the clock and what holds vacuum back."""
    try:
        connection = await connections.connect()
    except (psycopg.Error, OSError) as error:
        return [
            PrivateFinding(
                "bad",
                f"connection: {explained(error, connections.url)}",
                "Start PostgreSQL or correct the URL.",
            )
        ]
    found: list[Finding] = [PrivateFinding("ok", f"connection: {address(connections.url)}")]
    try:
        found.append(await _server(connection))
        found.append(await _schema(connection))
        if found[-1].level != "bad":
            found.append(await _rights(connection))
            way = await pooling(connections.connect)
            found.append(_pooler(way, listen_url))
            if listen_url or way.kept:
                found.append(await _hints(connection, connections, listen_url))
        found += await _clock_and_notices(connection)
        found.append(await _oldest_transaction(connection))
    except (psycopg.Error, OSError, TimeoutError) as error:
        found.append(
            PrivateFinding(
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


def _pooler(way: Pooling, listen_url: str | None) -> Finding:
    if way is Pooling.DIRECT:
        return Finding("ok", "pooler: none, prepared statements are used")
    if way is Pooling.STATEMENT:
        return Finding(
            "bad",
            "pooler: one in statement mode stands between, which allows no transactions",
            "Set pool_mode = transaction in its configuration, or give the server's own address.",
        )
    if listen_url:
        return Finding("ok", f"pooler: one in {way} mode stands between; hints come by listen_url")
    if way is Pooling.SESSION:
        return Finding("ok", "pooler: one in session mode stands between; it lets hints through")
    return Finding(
        "warn",
        "pooler: one in transaction mode stands between, so new jobs are found by polling only",
        "Set listen_url (ROTA_LISTEN_URL) to a direct address for prompt starts.",
    )


async def _hints(home: Connection, connections: Connections, listen_url: str | None) -> Finding:
    """Say something at the jobs' address, and hear it where workers listen."""
    try:
        if listen_url and not (await pooling(lambda: connections.connect(listen_url))).kept:
            return Finding(
                "warn",
                "hints: listen_url leads to a pooler, which keeps them to itself",
                "Set listen_url (ROTA_LISTEN_URL) to the server's own address.",
            )
        listener = await connections.connect(listen_url)
    except (psycopg.Error, OSError) as error:
        return PrivateFinding(
            "warn",
            f"hints: {explained(error, listen_url or connections.url)}",
            "New jobs are found by polling meanwhile; correct listen_url (ROTA_LISTEN_URL).",
        )
    try:
        await listener.execute("LISTEN rota")
        word, began = f"p:{uuid4()}", time.monotonic()
        await home.execute("SELECT pg_notify('rota', %s)", [word])
        async for notice in listener.notifies(timeout=2.0):
            if notice.payload == word:
                return Finding("ok", f"hints: a round trip took {(time.monotonic() - began) * 1000:.1f} ms")
    except psycopg.Error as error:
        return PrivateFinding(
            "warn",
            f"hints: {explained(error, listen_url or connections.url)}",
            "New jobs are found by polling meanwhile; let listen_url lead to the primary server.",
        )
    finally:
        with suppress(psycopg.Error):
            await listener.close()
    if listen_url:
        return PrivateFinding(
            "warn",
            f"hints: listen_url ({address(listen_url)}) does not hear what is said at {address(connections.url)}",
            "Let it lead to the same database of the same server; jobs start by polling meanwhile.",
        )
    return Finding(
        "warn", "hints: none came back within 2 s", "Jobs start by polling; look at the server's load."
    )


async def _clock_and_notices(connection: Connection) -> list[Finding]:
    before = datetime.now(UTC)
    server, usage = await _one(connection, "SELECT clock_timestamp(), pg_notification_queue_usage()")
    assert isinstance(server, datetime)
    assert isinstance(usage, float)
    return [_clock((server - before).total_seconds()), _notices(usage)]


def _notices(usage: float) -> Finding:
    if usage > CROWDED_NOTICES:
        return Finding(
            "warn",
            f"notices: the server's queue is {percent(usage)} full; from half on workers find new jobs by polling only",
            "Somebody who listens sits in a transaction: end it (pg_stat_activity, state idle in transaction).",
        )
    return Finding("ok", "notices: their queue on the server has room")


def _clock(ahead: float) -> Finding:
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
