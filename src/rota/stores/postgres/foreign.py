"""`tx=`: store jobs on a connection of the caller's, so that they commit or roll back with the caller's own work.

The kind of connection is recognised by the module of its type; nothing is
imported that the caller has not imported. One statement, on the caller's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from rota._core.job import NewJob
from rota.errors import NotSupported
from rota.stores.contract import Enqueued, Stored
from rota.stores.postgres import encoding

POSITIONAL = 'SELECT "position", id, stored FROM rota.enqueue_jobs(%s::text::jsonb, %s::timestamptz)'
NAMED = (
    'SELECT "position", id, stored FROM rota.enqueue_jobs('
    "CAST(CAST(:jobs AS text) AS jsonb), CAST(CAST(:at AS text) AS timestamptz))"
)


def enqueue_within(
    tx: Any, jobs: Sequence[NewJob], now: datetime | None
) -> list[Enqueued] | Awaitable[list[Enqueued]]:
    """Store jobs through `tx`; the answers, or an awaitable of them where `tx` is asynchronous."""
    text = encoding.as_json(jobs)
    at = None if now is None else now.isoformat()
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(tx).__mro__}
    if kinds & {("psycopg", "AsyncConnection"), ("psycopg", "AsyncCursor")}:
        return _awaited_psycopg(tx, text, at)
    if kinds & {("psycopg", "Connection"), ("psycopg", "Cursor")}:
        with psycopg.Cursor(getattr(tx, "connection", tx), row_factory=tuple_row) as cursor:
            return _answers(cursor.execute(POSITIONAL, (text, at)).fetchall())
    if ("sqlalchemy", "AsyncSession") in kinds or ("sqlalchemy", "AsyncConnection") in kinds:
        return _awaited_sqlalchemy(tx, text, at)
    if kinds & {("sqlalchemy", "Session"), ("sqlalchemy", "Connection"), ("sqlalchemy", "scoped_session")}:
        return _answers(tx.execute(_clause(), {"jobs": text, "at": at}).all())
    raise NotSupported(
        "PostgreSQL",
        f"enqueue within a {type(tx).__module__}.{type(tx).__qualname__}",
        "Pass a psycopg connection or cursor, or a SQLAlchemy connection or session (sync or async) as tx=.",
    )


async def _awaited_psycopg(tx: Any, text: str, at: str | None) -> list[Enqueued]:
    # A plain cursor of our own: the caller's may make other rows, or read other placeholders.
    async with psycopg.AsyncCursor(getattr(tx, "connection", tx), row_factory=tuple_row) as cursor:
        await cursor.execute(POSITIONAL, (text, at))
        return _answers(await cursor.fetchall())


async def _awaited_sqlalchemy(tx: Any, text: str, at: str | None) -> list[Enqueued]:
    result = await tx.execute(_clause(), {"jobs": text, "at": at})
    return _answers(result.all())


def _clause() -> Any:
    from sqlalchemy import text

    return text(NAMED)


def _answers(rows: Sequence[Any]) -> list[Enqueued]:
    """Rows of three columns; drivers differ in what they make of an id."""
    found = [(place, id_ if isinstance(id_, UUID) else UUID(str(id_)), stored) for place, id_, stored in rows]
    return [Enqueued(id_, Stored(stored)) for _, id_, stored in sorted(found)]
