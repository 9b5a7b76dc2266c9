"""Listen: hear of new work and of cancels. Hints only; a lost one costs a poll, never a job."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import psycopg

from rota.errors import StoreError
from rota.stores.contract import CancelHint, DeafHint, Hint, ResyncHint, WorkHint
from rota.stores.postgres.claim import Claims

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

log = logging.getLogger("rota.listen")

PING_EVERY = 15.0
"""A half-open connection is silent for ever: we notify ourselves, and must hear it."""
ANSWER_WITHIN = 5.0


class Listener:
    """One LISTEN connection of one event loop."""

    def __init__(self, connections: Connections, claims: Claims, listen_url: str | None) -> None:
        self._connections = connections
        self._claims = claims
        self._url = listen_url
        self.hearing = False
        """Whether hints arrive now; polls can be rarer then."""

    async def listen(self, on_hint: Callable[[Hint], None]) -> None:
        """Listen until cancelled; reconnect after every fault, and say that hints may have been missed."""
        pause = 0.2
        while True:
            try:
                async with asyncio.timeout(10):
                    await self._connections.pool()  # learns whether a pooler stands between
                if self._url is None and not self._connections.direct:
                    log.info("a pooler stands before the database and no listen_url is set: polling instead")
                    await asyncio.Event().wait()
                async with asyncio.timeout(10):
                    connection = await self._connections.connect(self._url)
                try:
                    if not await is_direct(connection):
                        log.warning(
                            "listen_url leads to a pooler, which keeps hints to itself: polling instead"
                        )
                        await asyncio.Event().wait()
                    await self._hear(connection, on_hint)
                finally:
                    with suppress(psycopg.Error):
                        await connection.close()
            except (psycopg.Error, StoreError, OSError, TimeoutError) as error:
                log.debug("listening failed: %s", error)
                if self.hearing:
                    self.hearing = False
                    on_hint(DeafHint())
                    pause = 0.2
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(pause * 2, 5.0)
            finally:
                self.hearing = False

    async def _hear(self, connection: Connection, on_hint: Callable[[Hint], None]) -> None:
        await connection.execute("LISTEN rota")
        on_hint(ResyncHint())
        self.hearing = True
        ping = f"p:{uuid4()}"
        while True:
            async with asyncio.timeout(ANSWER_WITHIN):
                await connection.execute("SELECT pg_notify('rota', %s)", [ping])
            answered = False
            async for payload in _notices(connection, PING_EVERY):
                if payload == ping:
                    answered = True
                else:
                    self._tell(payload, on_hint)
            if not answered:
                raise OSError("the listening connection is silent")

    def _tell(self, payload: str, on_hint: Callable[[Hint], None]) -> None:
        kind, _, rest = payload.partition(":")
        try:
            if kind in ("w", "g"):
                priority, _, queue = rest.partition(":")
                self._claims.hint(queue, int(priority), gated=kind == "g")
                on_hint(WorkHint(queue, int(priority)))
            elif kind == "c":
                on_hint(CancelHint(UUID(rest)))
        except ValueError:
            log.debug("a notice that is not ours: %r", payload)


async def is_direct(connection: Connection) -> bool:
    """Whether it leads to a server. Behind a pooler another backend answers than the one that greeted us."""
    row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    return row is not None and row[0] == connection.info.backend_pid


async def _notices(connection: Connection, seconds: float) -> AsyncIterator[str]:
    async for notice in connection.notifies(timeout=seconds):
        yield notice.payload
