"""Listen: hear of new work and of cancels. Hints only; a lost one costs a poll, never a job."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import psycopg

from rota.errors import StoreError
from rota.stores.contract import CancelHint, DeafHint, Hint, ResyncHint, WorkHint
from rota.stores.postgres.claim import Claims
from rota.stores.postgres.faults import address, explained
from rota.stores.postgres.pooling import pooling

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

log = logging.getLogger("rota.listen")

PING_EVERY = 15.0
"""A half-open connection is silent for ever: we notify ourselves, and must hear it."""
ANSWER_WITHIN = 5.0


class _Deaf(Exception):
    """No hints can come this way, now or later."""

    def __init__(self, level: int, why: str) -> None:
        super().__init__(why)
        self.level = level


class Listener:
    """One LISTEN connection of one event loop."""

    def __init__(self, connections: Connections, claims: Claims, listen_url: str | None) -> None:
        self._connections = connections
        self._claims = claims
        self._url = listen_url
        self.hearing = False
        """Whether hints arrive now; polls can be rarer then."""
        self._told = False

    async def listen(self, on_hint: Callable[[Hint], None]) -> None:
        """Listen until cancelled; reconnect after every fault, and say that hints may have been missed."""
        pause = 0.2
        while True:
            try:
                async with asyncio.timeout(10):
                    await self._refuse_deaf_ways()
                    connection = await self._connections.connect(self._url)
                try:
                    await self._hear(connection, on_hint)
                finally:
                    with suppress(psycopg.Error):
                        await connection.close()
            except _Deaf as error:
                log.log(error.level, "%s: polling instead", error)
                await asyncio.Event().wait()
            except (psycopg.Error, StoreError, OSError, TimeoutError) as error:
                self._report(error)
                if self.hearing:
                    self.hearing = False
                    on_hint(DeafHint())
                    pause = 0.2
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(pause * 2, 5.0)
            finally:
                self.hearing = False

    async def _refuse_deaf_ways(self) -> None:
        """A pooler that changes servers between transactions keeps hints to itself, and LISTEN would stay in it."""
        await self._connections.pool()  # learns whether a pooler stands between
        if self._url is None and self._connections.direct:
            return
        if (await pooling(lambda: self._connections.connect(self._url))).kept:
            return
        if self._url is None:
            raise _Deaf(logging.INFO, "a pooler stands before the database and no listen_url is set")
        raise _Deaf(logging.WARNING, "listen_url leads to a pooler, which keeps hints to itself")

    def _report(self, error: Exception) -> None:
        """Once an outage: an address of its own may be away, or wrong, while all else is well."""
        if self._url is None or self._told:
            log.debug("listening failed: %s", error)
            return
        self._told = True
        why = error if isinstance(error, StoreError) else explained(error, self._url)
        log.warning("listening at listen_url failed, so new jobs are found by polling for now: %s", why)

    async def _hear(self, connection: Connection, on_hint: Callable[[Hint], None]) -> None:
        heard: deque[str] = deque()
        connection.add_notify_handler(
            lambda notice: heard.append(notice.payload)
        )  # what comes with an answer
        await connection.execute("LISTEN rota")
        if self._url is not None:
            await self._hear_home(connection, heard)
        on_hint(ResyncHint())
        self.hearing, self._told = True, False
        ping = f"p:{uuid4()}"
        while True:
            async with asyncio.timeout(ANSWER_WITHIN):
                await connection.execute("SELECT pg_notify('rota', %s)", [ping])
            answered = False
            async for payload in _notices(connection, heard, PING_EVERY):
                if payload == ping:
                    answered = True
                else:
                    self._tell(payload, on_hint)
            if not answered:
                raise OSError("the listening connection is silent")

    async def _hear_home(self, connection: Connection, heard: deque[str]) -> None:
        """What is said at the jobs' own address must be heard here: hints do not leave their database."""
        word = f"p:{uuid4()}"

        async def say(home: Connection, _: bool) -> None:
            await home.execute("SELECT pg_notify('rota', %s)", [word])

        await self._connections.run(say)
        async for payload in _notices(connection, heard, ANSWER_WITHIN):
            if payload == word:
                return
        raise StoreError(
            f"listen_url ({address(self._url or '')}) does not hear what is said at the address of the jobs "
            f"({address(self._connections.url)}). Let it lead to the same database of the same server."
        )

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


async def _notices(connection: Connection, heard: deque[str], seconds: float) -> AsyncIterator[str]:
    """What is heard within so many seconds. psycopg's own wait wakes up ten times a second; this one for news only."""
    end, encoding = time.monotonic() + seconds, connection.info.encoding
    while True:
        while heard:
            yield heard.popleft()
        if not await _readable(connection.fileno(), end - time.monotonic()):
            return
        connection.pgconn.consume_input()
        while notice := connection.pgconn.notifies():
            heard.append(notice.extra.decode(encoding))


async def _readable(descriptor: int, seconds: float) -> bool:
    """Wait until something can be read; False when nothing comes within so many seconds."""
    loop = asyncio.get_running_loop()
    news: asyncio.Future[None] = loop.create_future()

    def ring() -> None:
        if not news.done():
            news.set_result(None)

    loop.add_reader(descriptor, ring)
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await news
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True
