"""Listen: hear of new work and of cancels. Hints only; a lost one costs a poll, never a job."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
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
        ear = Ear(connection, lambda payload: self._tell(payload, on_hint))
        async with asyncio.timeout(ANSWER_WITHIN):
            await connection.execute("LISTEN rota")
        if self._url is not None:
            await self._hear_home(ear)
        on_hint(ResyncHint())
        self.hearing, self._told = True, False
        while True:
            async with asyncio.timeout(ANSWER_WITHIN):
                await connection.execute("SELECT pg_notify('rota', %s)", [ear.new_word()])
            await ear.listen(PING_EVERY)
            if not ear.heard:
                raise OSError("the listening connection is silent")

    async def _hear_home(self, ear: Ear) -> None:
        """What is said at the jobs' own address must be heard here: hints do not leave their database."""
        word = ear.new_word()

        async def say(home: Connection, _: bool) -> None:
            await home.execute("SELECT pg_notify('rota', %s)", [word])

        await self._connections.run(say)
        await ear.listen(ANSWER_WITHIN, only_for_the_word=True)
        if not ear.heard:
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


class Ear:
    """Hands on each notice in the very moment in which it can be read.

    psycopg's own wait wakes up ten times a second, news or not, and a task that
    waits for news here would cost each hint one more turn of the event loop.
    """

    def __init__(self, connection: Connection, tell: Callable[[str], None]) -> None:
        self._connection, self._tell = connection, tell
        self.heard = False
        """Whether our word was heard."""
        self._word = ""
        self._over: asyncio.Future[None] | None = None
        self._for_the_word = False
        self._descriptor: int | None = None
        connection.add_notify_handler(lambda notice: self._hear(notice.payload))  # comes with an answer

    def new_word(self) -> str:
        """A word that nobody else says; `heard` tells when it is heard."""
        self._word, self.heard = f"p:{uuid4()}", False
        return self._word

    async def listen(self, seconds: float, *, only_for_the_word: bool = False) -> None:
        """Hand on what is heard within so many seconds, or until our word is."""
        self._for_the_word = only_for_the_word
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        self._take()  # what was read together with an answer
        self._descriptor = self._connection.fileno()
        loop.add_reader(self._descriptor, self._read)
        try:
            async with asyncio.timeout(seconds):
                if not (only_for_the_word and self.heard):
                    await self._over
        except TimeoutError:
            pass
        finally:
            self._let_go()
            self._over = None

    def _read(self) -> None:
        try:
            self._connection.pgconn.consume_input()
            self._take()
        except psycopg.Error as error:
            self._let_go()  # at once: libpq has closed the descriptor, and the next one to open gets its number
            if self._over is not None and not self._over.done():
                self._over.set_exception(error)

    def _let_go(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._descriptor = None

    def _take(self) -> None:
        while notice := self._connection.pgconn.notifies():
            self._hear(notice.extra.decode(self._connection.info.encoding, "replace"))

    def _hear(self, payload: str) -> None:
        if payload != self._word:
            self._tell(payload)
            return
        self.heard = True
        if self._for_the_word and self._over is not None and not self._over.done():
            self._over.set_result(None)
