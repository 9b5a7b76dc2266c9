"""What PostgreSQL's errors mean for Rota: repeat it, or tell the caller in plain words."""

from __future__ import annotations

import re

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from rota.errors import PermissionMissing, SchemaOutdated, StoreError, StoreFull, StoreUnavailable

# Classes of errors after which the same statement may simply be sent again.
REPEATABLE = ("08", "57P", "57014", "53", "40", "55P03")
FULL = "53100"
# libpq gives no code for what happens while it connects, only the server's words.
LOGIN = re.compile(
    r'authentication failed|no password supplied|no pg_hba\.conf entry|role ".*" (does not exist|is not permitted)'
)
NO_DATABASE = re.compile(r'database ".*" does not exist|no such database: ')
CROWDED = re.compile(
    r"too many (connections|clients)|connection slots are reserved|no more connections allowed"
)
# PgBouncer's own words. It gives them all the code of a broken connection, and none of them passes by itself.
STATEMENT_MODE = "transaction blocks not allowed in statement pooling mode"
CONSOLE = re.compile(r"not supported by admin console|invalid command '.*', use SHOW HELP", re.DOTALL)
STARTUP = re.compile(r"unsupported startup parameter( in options)?: (\S+)")
# Tables that rota.grant_to() lets an app read only.
OWNERS = {"tokens": "Access tokens", "retention": "Retention policies"}
OWNED = re.compile(r"permission denied for table (tokens|retention)$")
# What libpq says around the reason, over and over.
AROUND = re.compile(
    r"connection failed: |connection to server (at|on) .*? failed: |FATAL: |\s*Is the server running .*?\?",
    re.DOTALL,
)


def repeatable(error: BaseException) -> bool:
    """Whether the fault lies in the connection, the server's mood or a race, not in what was asked."""
    if isinstance(error, (PoolTimeout, TooManyRequests, TimeoutError, OSError)):
        return True
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return True  # the primary has moved: this connection was closed, and the next one finds it
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) or _by_pooler(str(error)):
        return False
    state = getattr(error, "sqlstate", None)
    if state is None:
        return not (LOGIN.search(str(error)) or NO_DATABASE.search(str(error)))
    return bool(state != FULL and state.startswith(REPEATABLE))


def statement_mode(error: BaseException) -> bool:
    """Whether a pooler refused it because it hands out a server for one statement only."""
    return STATEMENT_MODE in str(error)


def _by_pooler(words: str) -> bool:
    """Whether a pooler refuses what we do, and always will."""
    return bool(STATEMENT_MODE in words or CONSOLE.search(words) or STARTUP.search(words))


def bad_row(error: BaseException) -> bool:
    """Whether one of the rows cannot be stored, whoever sends it and how often."""
    return isinstance(error, (pg.DataError, pg.IntegrityError)) and not missing_day(error)


def missing_day(error: BaseException) -> bool:
    """Whether the day of finished jobs that a row belongs to has not been made yet."""
    return isinstance(error, pg.CheckViolation) and "no partition" in str(error)


def address(url: str) -> str:
    """The server of a URL, without its password, for messages."""
    parts = _parts(url) or {}
    host = parts.get("host") or parts.get("hostaddr") or "the local socket"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{host}{port}, database {parts.get('dbname') or parts.get('user') or 'default'!r}"


def _parts(url: str) -> dict[str, object] | None:
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        return None


def _reason(error: BaseException) -> str:
    """What the server or the driver said, as part of a sentence."""
    # The server's own sentence, without the piece of our statement that it points at.
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    said = " ".join((primary or AROUND.sub("", str(error))).split())
    return said.rstrip(".") or type(error).__name__


def explained(error: BaseException, url: str) -> StoreError:
    """The error in Rota's words: what, where, and what to do next."""
    if _parts(url) is None:
        from rota.config import masked

        error.args = (
            str(error).replace(url, masked(url)),
        )  # it goes into tracebacks, and quotes the password
        return StoreError(
            f"the address {masked(url)!r} is not one that PostgreSQL understands. "
            "Write postgresql://user:password@host:5432/database, with special characters percent-encoded."
        )
    where, reason = address(url), _reason(error)
    return (
        _of_pooler(where, reason)
        or _of_connecting(error, where, reason)
        or _of_statement(error, where, reason)
    )


def _of_pooler(where: str, reason: str) -> StoreError | None:
    """What a pooler will never let us do."""
    if STATEMENT_MODE in reason:
        return StoreError(
            f"the pooler at {where} is in statement mode, which allows no transactions ({reason}). Set pool_mode = "
            "transaction in its configuration, or give the server's own address."
        )
    if CONSOLE.search(reason):
        return StoreError(
            f"the address {where} leads to the console of a PgBouncer, not to a database ({reason}). "
            "Put the name of your database at its end."
        )
    if found := STARTUP.search(reason):
        return StoreError(
            f"the pooler at {where} does not take the setting {found[2].rstrip('.,')!r} of the address ({reason}). "
            "Remove it there, or name it in the pooler's ignore_startup_parameters."
        )
    return None


def _of_connecting(error: BaseException, where: str, reason: str) -> StoreError | None:
    """Why there is no connection; None if there is one."""
    words = reason if getattr(error, "sqlstate", None) is None else ""
    if isinstance(error, pg.InvalidAuthorizationSpecification) or LOGIN.search(words):
        return StoreUnavailable(
            f"PostgreSQL at {where} refused the login: {reason}. Check user and password in the URL."
        )
    if isinstance(error, pg.InvalidCatalogName) or NO_DATABASE.search(words):
        return StoreUnavailable(
            f"PostgreSQL at {where}: {reason}. Create it (`createdb`), or correct the URL."
        )
    if isinstance(error, pg.TooManyConnections) or CROWDED.search(words):
        return StoreUnavailable(
            f"PostgreSQL at {where} takes no more connections: {reason}. "
            "Raise max_connections, or put a pooler before it."
        )
    if "failed to resolve host" in words:
        return StoreUnavailable(
            f"cannot reach PostgreSQL at {where}: {reason}. Check the host name and port in the URL."
        )
    if isinstance(error, (pg.QueryCanceled, pg.LockNotAvailable, pg.TransactionRollback)):
        return StoreUnavailable(
            f"PostgreSQL at {where} gave up what it was asked, each time it was asked again: {reason}. Look for locks "
            "and for those who hold them (pg_stat_activity), and at lock_timeout and statement_timeout of this role."
        )
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return StoreUnavailable(
            f"PostgreSQL at {where} is read-only (a standby?). Point the address at the primary."
        )
    if repeatable(error) or isinstance(error, PoolClosed):
        return StoreUnavailable(
            f"cannot reach PostgreSQL at {where}: {reason}. Is it running? `rota doctor` looks closer."
        )
    return None


def _of_statement(error: BaseException, where: str, reason: str) -> StoreError:
    """Why the server did not do what it was asked."""
    if isinstance(error, pg.InsufficientPrivilege):
        context = error.diag.context or ""
        if "must be owner" in reason or "open_days" in context or "make_months" in context:
            of = "months of the archive" if "make_months" in context else "days of finished jobs"
            return PermissionMissing(
                f"PostgreSQL at {where} refused: {reason}. The {of} are made and dropped by the owner "
                "of schema rota only: let workers connect as that role, or make theirs a member of it "
                "(GRANT owner TO role)."
            )
        if "permission denied for database" in reason:
            return PermissionMissing(
                f"PostgreSQL at {where} refused: {reason}. To make schema rota a role must own the database, or be "
                "given the right (GRANT CREATE ON DATABASE): run `rota migrate` as such a role."
            )
        if owned := OWNED.search(reason):
            return PermissionMissing(
                f"PostgreSQL at {where} refused: {reason}. {OWNERS[owned[1]]} are made, changed and removed by the "
                "owner of schema rota only, so that no app gives itself rights: run this again with the owner's "
                "address (--url or ROTA_URL)."
            )
        return PermissionMissing(
            f"PostgreSQL at {where} refused: {reason}. Let the owner of schema rota give this role its rights (SELECT "
            "rota.grant_to('role'), after each `rota migrate`), or use another role."
        )
    if (
        isinstance(error, (pg.UndefinedTable, pg.InvalidSchemaName, pg.UndefinedFunction))
        and "rota" in reason
    ):
        from rota.stores.postgres.migrate import LATEST

        return SchemaOutdated(None, LATEST)
    if getattr(error, "sqlstate", None) == FULL or "No space left" in reason:
        return StoreFull(
            f"PostgreSQL at {where} has no disk space left ({reason}). Nothing was written. Free space on its disk; "
            "workers go on by themselves then."
        )
    return StoreError(
        f"PostgreSQL at {where} refused a statement: {reason}. `rota doctor` checks the schema and the rights."
    )
