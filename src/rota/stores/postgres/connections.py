"""Connections to PostgreSQL: one pool per event loop, statements that survive a lost connection.

Nothing here depends on a session: no prepared statements and no settings behind
a pooler, no session locks anywhere. So every statement may run on any backend.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.rows import TupleRow

from rota.errors import SchemaOutdated, StoreError
from rota.stores.postgres.address import Address
from rota.stores.postgres.faults import bad_row, explained, missing_day, repeatable
from rota.stores.postgres.migrate import LATEST
from rota.stores.postgres.pool import EndingPool
from rota.stores.postgres.prompt import PromptConnection
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from psycopg.abc import Buffer

Connection: TypeAlias = PromptConnection
T = TypeVar("T")

CONNECT_SECONDS = 5
CALL_SECONDS = 6.0
"""How long one try may take. Short enough that a network which swallowed it costs less than ten seconds."""
REPEAT_SECONDS = 8.0
"""How long a statement is repeated after connection faults before the caller hears of it. Longer than one try:
what was swallowed by the network is asked once more, on another connection."""
POOL_SIZE = 10
SEARCHES = 4
"""So many connections at most are busy with looking for jobs, which may take seconds each."""
WARM = 3
KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class BinaryCursor(psycopg.AsyncCursor[TupleRow]):
    """Answers come in binary: cheaper to read, and times are free of the server's zone."""

    def __init__(self, connection: Any, *, row_factory: Any = None) -> None:
        super().__init__(connection, row_factory=row_factory or connection.row_factory)
        self.format = Format.BINARY


class UtcLoader(Loader):
    """A timestamptz is microseconds since 2000 in UTC; it stays UTC, whatever zone the server is set to."""

    format = Format.BINARY
    _micros, _moment = 0, datetime(2000, 1, 1, tzinfo=UTC)

    def load(self, data: Buffer) -> datetime:
        (micros,) = _INT8.unpack(data)
        if micros != self._micros:  # the rows of one batch mostly share their times
            self._micros, self._moment = micros, Y2K + timedelta(microseconds=micros)
        return self._moment


_INT8 = struct.Struct("!q")
Y2K = datetime(2000, 1, 1, tzinfo=UTC)
# psycopg's own loader gives times in the server's zone and is four times as fast: right where that zone is UTC.
UTC_NAMES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "Universal", "UCT"})
TYPES = psycopg.adapt.AdaptersMap(psycopg.adapters)
TYPES.register_loader("timestamptz", UtcLoader)


class Connections:
    """The connections of one event loop."""

    def __init__(self, server: Address, clock: Callable[[], datetime] | None = None) -> None:
        self._server = server
        self._clock = clock
        self.direct = False
        """Whether we talk to the server itself, so that it may keep our statements prepared."""
        self.in_utc = False
        self.searches = asyncio.Semaphore(SEARCHES)
        self._lock = asyncio.Lock()
        self._pool: EndingPool | None = None
        self._made: WeakSet[Connection] = WeakSet()
        self._warm: list[Connection] = []
        """Connections that were just used: the next call takes one without asking the pool."""
        self._silence = 0.0
        """When the newest call began that got no answer at all: who was last heard before it is not asked again."""

    @property
    def url(self) -> str:
        return self._server.url

    def now(self) -> datetime | None:
        """The time that statements use in place of the server's; None (the server's own) but in tests."""
        return self._clock() if self._clock else None

    async def pool(self) -> EndingPool:
        """The pool, opened at first use after one look at the server: reachable, schema right, pooler or not."""
        if self._pool is None:
            async with self._lock:
                if self._pool is None:
                    await self._look()
                    pool = EndingPool(
                        self._server.now,
                        connection_class=PromptConnection,
                        min_size=0,
                        max_size=POOL_SIZE,
                        open=False,
                        kwargs=self._options(),
                        configure=self._configure,
                        timeout=CONNECT_SECONDS,
                        reconnect_timeout=2.0,
                        max_idle=60.0,
                        max_lifetime=3600.0,
                    )
                    await pool.open()
                    self._pool = pool
        return self._pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        pool = await self.pool()
        connection = await self._take(pool)
        try:
            async with connection:
                yield connection
        finally:
            await pool.putconn(connection)

    async def _take(self, pool: EndingPool) -> Connection:
        """A connection that was heard since the last silence: a network that swallowed one call swallowed them all.

        Without this each of the pool's silent connections would cost the next caller a whole try.
        """
        while True:
            connection = self._warm.pop() if self._warm else await pool.getconn()
            if connection.heard >= self._silence:
                return connection
            connection.pgconn.finish()
            await pool.putconn(connection)

    async def connect(self, url: str | None = None) -> Connection:
        """A connection of one's own, outside the pool."""
        if url is not None:  # what stands before another address is not known: nothing may be kept there
            connection = await PromptConnection.connect(url, **self._options())
            self._made.add(connection)
            return connection
        connection = await PromptConnection.connect(self.url, **self._options())
        await self._configure(connection)
        return connection

    async def _configure(self, connection: Connection) -> None:
        self._made.add(connection)
        connection.heard = time.monotonic()
        connection.keeps_statements = self.direct
        if self.direct:
            # Beside a large backlog the server thinks that planning anew pays, and plans every exchange anew: that
            # took as long as a third of the exchange itself.
            try:
                # The pool has three hands that connect. Connections that fall silent here would keep all of them.
                async with asyncio.timeout(CONNECT_SECONDS):
                    await connection.execute("SET plan_cache_mode = force_generic_plan")
            except BaseException:  # who waits no longer leaves no open connection behind
                connection.pgconn.finish()
                raise

    def _options(self) -> dict[str, Any]:
        return {
            "autocommit": True,
            "prepare_threshold": None,  # what should stay prepared is asked by PromptConnection.ask()
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "rota",
            "cursor_factory": BinaryCursor,
            "context": None if self.in_utc else TYPES,
            **KEEPALIVE,
        }

    async def _look(self) -> None:
        connection = await self.connect()
        try:
            greeted_by = connection.info.backend_pid
            self.in_utc = connection.info.parameter_status("TimeZone") in UTC_NAMES
            row = await (await connection.execute(statement("schema_version"))).fetchone()
            assert row is not None
            self.direct = row[1] == greeted_by
            if not self.direct:
                async with connection.transaction():
                    pass  # a pooler in statement mode says no: better now than in the middle of something
        finally:
            await connection.close()
        if row[0] != LATEST:
            raise SchemaOutdated(row[0], LATEST)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        warm, self._warm = self._warm, []
        if pool is not None:
            for connection in warm:
                await pool.putconn(connection)
            with suppress(psycopg.Error):
                await pool.close(timeout=2.0)

    def abandon(self) -> None:
        """Let the server know that we are gone. Their event loop is closed, so nothing can be awaited."""
        self._pool = None
        for connection in self._made:
            connection.pgconn.finish()

    async def run(
        self,
        call: Callable[[Connection, bool], Awaitable[T]],
        *,
        within: float = REPEAT_SECONDS,
        seconds: float = CALL_SECONDS,
    ) -> T:
        """Run `call(connection, repeated)`; after a connection fault run it again, for up to `within` seconds.

        `repeated` is True when an earlier try may have been carried out without
        its answer reaching us: only what is safe to repeat may be run here. A
        try that takes longer than `seconds` is given up.
        """
        began = time.monotonic()
        tries = 0
        days_made = False
        while True:
            try:
                async with asyncio.timeout(seconds):
                    pool = self._pool or await self.pool()
                    connection = await self._take(pool)
                    asked = time.monotonic()
                    try:
                        answer = await call(connection, tries > 0)
                    except BaseException as error:
                        if isinstance(error, asyncio.CancelledError) and connection.closed:
                            self._silence = max(self._silence, asked)  # not even a cancellation was answered
                        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                            await connection.close()  # the primary has moved: the next connection finds it
                        # What happened to this one may have happened to all; the pool throws away what is broken.
                        warm, self._warm = [connection, *self._warm], []
                        for used in warm:
                            await pool.putconn(used)
                        raise
                    connection.heard = time.monotonic()
                    if self._pool is pool and len(self._warm) < WARM:
                        self._warm.append(connection)
                    else:
                        await pool.putconn(connection)
                    return answer
            except StoreError:
                raise
            except (psycopg.Error, OSError, TimeoutError) as error:
                if bad_row(error):
                    raise  # the caller knows which row, and what to do
                if missing_day(error) and not days_made:
                    # Nobody has made today's table yet: no worker ran for a week, or a test moved the clock.
                    days_made = True
                    await self._make_days()
                    continue
                if repeatable(error):
                    await self._server.renew(within - (time.monotonic() - began))
                pause = min(0.05 * 2**tries, 1.0) * random.uniform(0.5, 1.5)  # noqa: S311
                if not repeatable(error) or time.monotonic() + pause - began > within:
                    raise await self._explained(error) from error
                tries += 1
                await asyncio.sleep(pause)

    async def _make_days(self) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS), self.connection() as connection:
                await connection.execute(statement("make_days"), {"now": self.now()})
        except (psycopg.Error, OSError) as error:
            raise explained(error, self.url) from error

    async def _explained(self, error: BaseException) -> StoreError:
        """The pool only knows that it timed out; one connection of our own knows why."""
        if type(error).__module__.startswith("psycopg_pool"):
            try:
                await (await self.connect()).close()
            except (psycopg.Error, OSError) as real:
                error = real
        return explained(error, self.url)


class Closable(Protocol):
    async def close(self) -> None: ...

    def abandon(self) -> None: ...


C = TypeVar("C", bound=Closable)


class PerLoop(Generic[C]):
    """One of something for whichever event loop asks."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._known: dict[asyncio.AbstractEventLoop, C] = {}
        self._lock = threading.Lock()

    def __call__(self) -> C:
        loop = asyncio.get_running_loop()
        found = self._known.get(loop)
        if found is None:
            with self._lock:
                for old in [old for old in self._known if old.is_closed()]:
                    self._known.pop(old).abandon()  # asyncio.run() ended without a goodbye
                found = self._known.setdefault(loop, self._make())
        return found

    async def close(self) -> None:
        found = self._known.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.close()
