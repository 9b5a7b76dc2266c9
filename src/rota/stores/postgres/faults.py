"""What PostgreSQL's errors mean for Rota: repeat it, or tell the caller in plain words."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from rota.errors import PermissionMissing, SchemaOutdated, StoreError, StoreFull, StoreUnavailable

# Classes of errors after which the same statement may simply be sent again.
REPEATABLE = ("08", "57P", "53", "40", "55P03", "25006")
FULL = "53100"


def repeatable(error: BaseException) -> bool:
    """Whether the fault lies in the connection, the server's mood or a race, not in what was asked."""
    if isinstance(error, (PoolTimeout, TooManyRequests, TimeoutError, OSError)):
        return True
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    state = getattr(error, "sqlstate", None)
    return state is None or (state != FULL and state.startswith(REPEATABLE))


def bad_row(error: BaseException) -> bool:
    """Whether one of the rows cannot be stored, whoever sends it and how often."""
    return isinstance(error, (pg.DataError, pg.IntegrityError)) and not missing_day(error)


def missing_day(error: BaseException) -> bool:
    """Whether the day of finished jobs that a row belongs to has not been made yet."""
    return isinstance(error, pg.CheckViolation) and "no partition" in str(error)


def repeated_id(error: BaseException) -> bool:
    return isinstance(error, pg.UniqueViolation)


def address(url: str) -> str:
    """The server of a URL, without its password, for messages."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the given address"
    host = parts.get("host") or parts.get("hostaddr") or "the local socket"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{host}{port}, database {parts.get('dbname') or parts.get('user') or 'default'!r}"


def explained(error: BaseException, url: str) -> StoreError:
    """The error in Rota's words: what, where, and what to do next."""
    where = address(url)
    reason = " ".join(str(error).split()) or type(error).__name__
    state = getattr(error, "sqlstate", None)
    if isinstance(error, pg.InsufficientPrivilege):
        return PermissionMissing(
            f"PostgreSQL at {where} refused: {reason}. Grant this role the rights (GRANT USAGE ON SCHEMA rota; "
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota), or use another role."
        )
    if (
        isinstance(error, (pg.UndefinedTable, pg.InvalidSchemaName, pg.UndefinedFunction))
        and "rota" in reason
    ):
        from rota.stores.postgres.migrate import LATEST

        return SchemaOutdated(None, LATEST)
    if state == FULL or "No space left" in reason:
        return StoreFull(
            f"PostgreSQL at {where} has no disk space left ({reason}). Nothing was written. Free space on its disk; "
            "workers go on by themselves then."
        )
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return StoreUnavailable(
            f"PostgreSQL at {where} is read-only (a standby?). Point the address at the primary."
        )
    if (
        isinstance(error, (pg.InvalidPassword, pg.InvalidAuthorizationSpecification))
        or "authentication failed" in reason
    ):
        return StoreUnavailable(
            f"PostgreSQL at {where} refused the login: {reason}. Check user and password in the URL."
        )
    if isinstance(error, pg.InvalidCatalogName) or ("database" in reason and "does not exist" in reason):
        return StoreUnavailable(
            f"PostgreSQL at {where}: {reason}. Create it (`createdb`), or correct the URL."
        )
    if repeatable(error) or isinstance(error, PoolClosed):
        return StoreUnavailable(
            f"cannot reach PostgreSQL at {where}: {reason}. Is it running? `rota doctor` looks closer."
        )
    return StoreError(f"PostgreSQL at {where} refused a statement: {reason}")
