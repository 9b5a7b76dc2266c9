"""What stands between us and the server: nothing, or a pooler, and in which mode.

Seen from a client. A pooler greets with a process number of its own, so another
one answers the first question; then two connections of ours, asked in turn,
show whether each keeps its server connection for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from enum import StrEnum
from typing import TYPE_CHECKING

import psycopg

from rota.stores.postgres.faults import statement_mode

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection

TURNS = (0, 1, 0, 0, 1, 1, 0, 1)
"""Not in strict turns: a pool of two that hands its connections round would look as if each kept its own."""
PATIENCE = 3.0


class Pooling(StrEnum):
    """How a connection reaches its server."""

    DIRECT = "direct"
    SESSION = "session"  # a pooler; the server connection is ours until we close
    TRANSACTION = "transaction"  # a pooler; each transaction may meet another server connection
    STATEMENT = "statement"  # a pooler that allows no transactions: of no use to us

    @property
    def kept(self) -> bool:
        """Whether what is said on a connection (LISTEN) is still true in its next transaction."""
        return self in (Pooling.DIRECT, Pooling.SESSION)


async def pooling(connect: Callable[[], Awaitable[Connection]]) -> Pooling:
    """Look at where `connect` leads. Leaves nothing behind there."""
    async with AsyncExitStack() as opened:

        async def another() -> Connection:
            connection = await connect()
            opened.push_async_callback(_close, connection)
            return connection

        first = await another()
        if await is_direct(first):
            return Pooling.DIRECT
        if await is_by_statement(first):
            return Pooling.STATEMENT
        try:
            async with asyncio.timeout(PATIENCE):
                two = first, await another()
                seen = [(turn, await _backend(two[turn])) for turn in TURNS]
        except TimeoutError:
            return Pooling.TRANSACTION  # it has no second connection for us now; the careful answer
    # Each its own, always the same: two pairs in all, and two servers.
    pairs = set(seen)
    kept = len(pairs) == 2 and len({backend for _, backend in pairs}) == 2
    return Pooling.SESSION if kept else Pooling.TRANSACTION


async def is_direct(connection: Connection) -> bool:
    """Whether it leads to a server. Behind a pooler another backend answers than the one that greeted us."""
    return await _backend(connection) == connection.info.backend_pid


async def is_by_statement(connection: Connection) -> bool:
    """Whether a pooler refuses transactions; it closes the connection then."""
    try:
        async with connection.transaction():
            pass
    except psycopg.Error as error:
        if statement_mode(error):
            return True
        raise
    return False


async def _backend(connection: Connection) -> int:
    row = await (await connection.execute("SELECT pg_backend_pid()", prepare=False)).fetchone()
    assert row is not None
    backend: int = row[0]
    return backend


async def _close(connection: Connection) -> None:
    with suppress(psycopg.Error):
        await connection.close()
