"""The drivers that tx= knows: how each tells that it cannot carry a job, and how it runs a statement of ours.

A kind is recognised by the module of its type; nothing is imported that the
caller has not imported.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from rota.errors import NotSupported, TransactionUnusable
from rota.stores.postgres.sqlfiles import statement

Rows: TypeAlias = Sequence[Sequence[Any]]
Values: TypeAlias = Mapping[str, str | None]

PARAMETER = re.compile(r"%\((\w+)\)s")
KNOWN = (
    "Pass a connection or session of psycopg, asyncpg or SQLAlchemy, or django.db.transaction (or the name of one of "
    "Django's databases) as tx=."
)
NEARLY = {
    (
        "asyncpg",
        "Pool",
    ): "Take a connection of it: `async with pool.acquire() as connection:`, and pass that.",
    ("asyncpg", "Transaction"): "Pass the connection that the transaction belongs to.",
    ("psycopg", "Transaction"): "Pass the connection that the transaction belongs to.",
    ("psycopg", "AsyncTransaction"): "Pass the connection that the transaction belongs to.",
    ("psycopg_pool", "ConnectionPool"): "Take a connection of it: `with pool.connection() as connection:`.",
    (
        "psycopg_pool",
        "AsyncConnectionPool",
    ): "Take a connection of it: `async with pool.connection() as it:`.",
    (
        "sqlalchemy",
        "Engine",
    ): "Begin a transaction on it: `with engine.begin() as connection:`, and pass that.",
    ("sqlalchemy", "AsyncEngine"): "Begin a transaction on it: `async with engine.begin() as connection:`.",
    ("sqlalchemy", "sessionmaker"): "Make a session with it, and pass that.",
    ("sqlalchemy", "async_sessionmaker"): "Make a session with it, and pass that.",
}
"""What people pass by mistake, and what they meant."""


class Driver(Protocol):
    """One caller's connection, whose statements are done when they return."""

    def look(self) -> Hashable:
        """Where it leads and as whom (None: it does not say). TransactionUnusable if it cannot carry a job."""
        ...

    def fetch(self, verb: str, values: Values, /) -> Rows: ...


class AsyncDriver(Protocol):
    """One caller's connection, whose statements are awaited."""

    async def ready(self) -> None: ...

    def look(self) -> Hashable: ...

    async def fetch(self, verb: str, values: Values, /) -> Rows: ...


def recognised(tx: Any) -> Psycopg | Alchemy | Django | AsyncPsycopg | Asyncpg | AsyncAlchemy:
    """The driver of what was given as tx=."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(tx).__mro__}
    if kinds & {("psycopg", "AsyncConnection"), ("psycopg", "AsyncCursor")}:
        return AsyncPsycopg(tx)
    if kinds & {("psycopg", "Connection"), ("psycopg", "Cursor")}:
        return Psycopg(tx)
    if kinds & {("asyncpg", "Connection"), ("asyncpg", "PoolConnectionProxy")}:
        return Asyncpg(tx)
    if kinds & {("sqlalchemy", "AsyncSession"), ("sqlalchemy", "AsyncConnection")}:
        return AsyncAlchemy(tx)
    if kinds & {("sqlalchemy", "async_scoped_session")}:
        return AsyncAlchemy(tx())
    if kinds & {("sqlalchemy", "Session"), ("sqlalchemy", "Connection"), ("sqlalchemy", "scoped_session")}:
        return Alchemy(tx)
    if kinds & {
        ("django", "ConnectionProxy"),
        ("django", "BaseDatabaseWrapper"),
        ("django", "CursorWrapper"),
    }:
        return Django(tx)
    if (
        tx is True
        or isinstance(tx, str)
        or (isinstance(tx, ModuleType) and tx.__name__ == "django.db.transaction")
    ):
        return Django(tx)
    hints = [NEARLY[kind] for kind in kinds if kind in NEARLY]
    raise NotSupported("PostgreSQL", f"enqueue within {named(tx)}", hints[0] if hints else KNOWN)


def named(tx: Any) -> str:
    """What was given, for messages."""
    name = f"{type(tx).__module__}.{type(tx).__qualname__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def closed(tx: Any, why: str = "is closed") -> TransactionUnusable:
    return TransactionUnusable(
        f"tx= got {named(tx)} that {why}. Nothing was stored. Enqueue inside your transaction, or without tx=."
    )


def autocommit(tx: Any, instead: str) -> TransactionUnusable:
    return TransactionUnusable(
        f"tx= got {named(tx)} in autocommit mode and outside a transaction: the job would be stored at once, whatever "
        f"becomes of your work. Nothing was stored. {instead}, or leave tx= out."
    )


class Psycopg:
    """psycopg's own connections and cursors."""

    def __init__(self, tx: Any) -> None:
        self._tx, self._connection = tx, getattr(tx, "connection", tx)

    def look(self) -> Hashable:
        connection = self._connection
        if connection.closed:
            raise closed(self._tx)
        info, wire = connection.info, connection.pgconn
        if (
            connection.autocommit
            and info.transaction_status == TransactionStatus.IDLE
            # A pipeline has not heard yet of the transaction that was begun in it.
            and wire.pipeline_status == PipelineStatus.OFF
        ):
            word = "async with" if isinstance(connection, psycopg.AsyncConnection) else "with"
            raise autocommit(self._tx, f"Enqueue inside `{word} connection.transaction():`")
        return "psycopg", info.host, info.port, info.dbname, info.user

    def fetch(self, verb: str, values: Values) -> Rows:
        # A plain cursor of our own: the caller's may make other rows, or read other placeholders.
        with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
            return cursor.execute(statement(verb), values).fetchall()


class AsyncPsycopg:
    """The same, awaited."""

    def __init__(self, tx: Any) -> None:
        self._connection = getattr(tx, "connection", tx)
        self.look = Psycopg(tx).look

    async def ready(self) -> None: ...

    async def fetch(self, verb: str, values: Values) -> Rows:
        async with psycopg.AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(statement(verb), values)
            return await cursor.fetchall()


class Asyncpg:
    """asyncpg's connections, and what its pools give out."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    async def ready(self) -> None: ...

    def look(self) -> Hashable:
        tx = self._tx
        if getattr(tx, "_con", tx) is None:
            raise closed(tx, "was given back to its pool")
        if tx.is_closed():
            raise closed(tx)
        if not tx.is_in_transaction():
            raise autocommit(tx, "Enqueue inside `async with connection.transaction():`")
        known = getattr(tx, "_params", None)
        if known is None:
            return None
        return "asyncpg", getattr(tx, "_addr", None), known.database, known.user

    async def fetch(self, verb: str, values: Values) -> Rows:
        text, names = numbered(verb)
        rows: Rows = await self._tx.fetch(text, *[values[name] for name in names])
        return rows


class Alchemy:
    """SQLAlchemy's connections and sessions, whatever driver is below."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self._connection: Any = None

    def look(self) -> Hashable:
        tx = self._tx
        # A session takes its connection now, and begins, as it does for the caller's own statements.
        self._connection = tx.connection() if hasattr(tx, "get_bind") else tx
        return looked_at(tx, self._connection)

    def fetch(self, verb: str, values: Values) -> Rows:
        rows: Rows = self._connection.execute(clause(verb), values).all()
        return rows


class AsyncAlchemy:
    """The same, awaited."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self._connection: Any = tx

    async def ready(self) -> None:
        if hasattr(self._tx, "get_bind"):
            self._connection = await self._tx.connection()

    def look(self) -> Hashable:
        below = self._connection.sync_connection
        if below is None:
            raise closed(self._tx, "was not begun (no `async with`, no await)")
        return looked_at(self._tx, below)

    async def fetch(self, verb: str, values: Values) -> Rows:
        rows: Rows = (await self._connection.execute(clause(verb), values)).all()
        return rows


def looked_at(tx: Any, connection: Any) -> Hashable:
    """What SQLAlchemy's own connection says of itself."""
    if connection.dialect.name != "postgresql":
        raise NotSupported(
            "PostgreSQL",
            f"enqueue within {named(tx)} of {connection.dialect.name}",
            "Jobs live in PostgreSQL: enqueue after your commit, without tx=.",
        )
    if connection.closed:
        raise closed(tx)
    level = connection.get_execution_options().get("isolation_level")
    if (level or getattr(connection.dialect, "_on_connect_isolation_level", None)) == "AUTOCOMMIT":
        raise autocommit(tx, "Use an isolation level with transactions, such as READ COMMITTED")
    url = connection.engine.url
    if url.database is None:
        return None  # a function of the caller's connects, and may lead anywhere
    return "sqlalchemy", url.host, url.port, url.database, url.username, tuple(url.query.items())


class Django:
    """Django's connections, by any of their names: `transaction`, `connection`, an alias, True (the default one).

    They belong to a thread: each is looked up on the thread that uses it.
    """

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        if "django.db" not in sys.modules:
            raise NotSupported(
                "PostgreSQL",
                f"enqueue within {tx!r}",
                f"A name or True stands for a connection of Django, which is not loaded here. {KNOWN}",
            )
        self._connections: Any = sys.modules["django.db"].connections
        self._connection: Any = None

    @property
    def elsewhere(self) -> bool:
        """Whether the caller is on an event loop, where Django's connections may not be used."""
        if os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE"):
            return False
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    async def away(self, work: Callable[[], Any]) -> Any:
        """Do it on the thread that Django keeps for what is not async: the caller's transaction is open there."""
        from asgiref.sync import sync_to_async

        return await sync_to_async(work, thread_sensitive=True)()

    def look(self) -> Hashable:
        self._connection = connection = self._found()
        if connection.vendor != "postgresql":
            raise NotSupported(
                "PostgreSQL",
                f"enqueue within Django's {connection.alias!r}, which is {connection.display_name}",
                "Jobs live in PostgreSQL: enqueue after your commit, without tx=.",
            )
        if connection.closed_in_transaction:
            raise closed(connection)
        if not connection.in_atomic_block and connection.get_autocommit():
            raise autocommit(
                connection, f"Enqueue inside `with transaction.atomic(using={connection.alias!r}):`"
            )
        said = connection.settings_dict
        return "django", *[str(said.get(name)) for name in ("HOST", "PORT", "NAME", "USER")]

    def fetch(self, verb: str, values: Values) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(statement(verb), values)
            rows: Rows = cursor.fetchall()
        return rows

    def _found(self) -> Any:
        """The connection of this thread."""
        tx = self._tx
        if tx is True or isinstance(tx, ModuleType):
            return self._connections["default"]
        if not isinstance(tx, str):
            given = getattr(tx, "db", tx)  # a cursor knows its connection
            mine = self._connections[given.alias]
            if given != mine and not given.allow_thread_sharing:
                raise TransactionUnusable(
                    f"tx= got Django's connection {given.alias!r} of another thread. Nothing was stored. Pass "
                    f"{given.alias!r} or django.db.transaction: then the connection of the right thread is used."
                )
            return given
        known = list(self._connections)
        if tx not in known:
            raise TransactionUnusable(
                f"tx= got {tx!r}, and Django has no such database. Nothing was stored. Name one of {', '.join(known)}."
            )
        return self._connections[tx]


AWAITED = (AsyncPsycopg, Asyncpg, AsyncAlchemy)


@cache
def numbered(verb: str) -> tuple[str, list[str]]:
    """A statement with $1, $2 for its parameters, and their names in this order."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return PARAMETER.sub(number, statement(verb)), list(names)


@cache
def clause(verb: str) -> Any:
    """A statement as SQLAlchemy wants it."""
    from sqlalchemy import text

    return text(PARAMETER.sub(r":\1", statement(verb)))
