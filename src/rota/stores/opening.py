"""open_store(url): the one place that names concrete stores."""

from __future__ import annotations

import asyncio
import inspect
import logging
import shlex
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rota.config import checked_url, masked
from rota.errors import RotaError, StoreUnavailable

if TYPE_CHECKING:
    from rota.config import Settings
    from rota.stores.contract import Store
    from rota.stores.postgres.embedded import EmbeddedServer
    from rota.stores.postgres.probe import Probe

log = logging.getLogger("rota")

AGAIN = 5.0
"""Seconds after which an embedded server that could not be started again is tried once more."""
EMBEDDED_PATH = ".rota"
"""Where the embedded server keeps its files unless told: in the current directory."""


def open_store(url: str | None, settings: Settings, *, clock: Callable[[], datetime] | None = None) -> Store:
    """The store at an address; None: the address that the settings give. Nothing is connected yet.

    `clock` replaces the store's own clock in tests; an embedded server keeps its own.
    """
    if url is None:
        address = settings.address()
    else:
        address = checked_url(url, settings.origin("url") if url == settings.url else "argument")
    kind = address.partition(":")[0]
    if kind == "memory":
        from rota.stores.memory import MemoryStore

        return MemoryStore(clock=clock)
    if kind == "embedded":
        from rota.stores.postgres import PostgresStore

        path = embedded_path(address)
        return cast(
            "Store", LateStore(f"embedded:{path}", PostgresStore, lambda: _start_embedded(path, settings))
        )
    return _postgres(address, settings, clock)


def address_of(store: Store) -> str | None:
    """Under which another process opens the same store; of an embedded one its place, because its `url` may change."""
    return getattr(store, "address", None) or getattr(store, "url", None)


def embedded_path(address: str) -> Path:
    """The directory of an embedded server: `embedded:`, `embedded:path` or `embedded:///path`."""
    given = address.partition(":")[2].removeprefix("//")
    return Path(given or EMBEDDED_PATH).expanduser().absolute()


class Starting:
    """Who is told that an embedded server is about to be started, before the seconds that it takes."""

    tell: ClassVar[Callable[[Path, bool], None] | None] = None
    """Its directory, and whether it is made anew; None: nobody looks. A library prints nothing, a command does."""


def start_embedded(path: Path) -> tuple[EmbeddedServer, str]:
    """The embedded server in `path`, running, and its address. Whoever looks is told before it is made. Blocks."""
    from rota.stores.postgres.embedded import EmbeddedServer

    server = EmbeddedServer(path)
    if Starting.tell is not None and not server.running():
        Starting.tell(server.path, not server.data_path.exists())
    return server, server.start()


def open_running(settings: Settings) -> Store:
    """The store of the settings as it is now: an embedded server is neither made, started nor migrated for it."""
    address = settings.address()
    if not address.startswith("embedded:"):
        return open_store(None, settings)
    from rota.stores.postgres.embedded import EmbeddedServer

    server = EmbeddedServer(embedded_path(address))
    if not server.running():
        raise EmbeddedStopped(server.path, address, made=server.data_path.exists())
    return _postgres(server.url(), settings)


class EmbeddedStopped(StoreUnavailable):
    """The embedded server is not running, and it was not ours to start."""

    def __init__(self, path: Path, address: str, *, made: bool) -> None:
        self.what = f"the embedded PostgreSQL in {path} is not running"
        if not made:
            self.what += " (none was made there yet: is this the right directory?)"
        self.fix = f"`{start_command(address)}` starts it."
        super().__init__(f"{self.what}; {self.fix}")


def start_command(address: str) -> str:
    """What to type to start the embedded server of an address."""
    return "rota db start" if address == "embedded:" else f"rota db start --url {shlex.quote(address)}"


def migration_sql(since: int = 0, to: int | None = None) -> str:
    """The migrations after version `since` (up to `to`), as one script for psql; needs no database."""
    from rota.stores.postgres.migrate import sql

    return sql(since) if to is None else sql(since, to)


def latest_migration() -> int:
    """The schema version that this code needs; needs no database."""
    from rota.stores.postgres.migrate import LATEST

    return LATEST


def scratch_database(server: str, prefix: str | None = None) -> AbstractContextManager[str]:
    """The address of an empty database of one's own on a server, for as long as the block runs."""
    from rota.stores.postgres.scratch import PREFIX, scratch_database

    return scratch_database(server, PREFIX if prefix is None else prefix)


@contextmanager
def bench_database(settings: Settings) -> Iterator[str]:
    """A database that `rota bench` may fill: on the server of the settings, or on an embedded server of its own.

    An embedded one is made beside the user's, so that it is on the same disk. All of it is gone after the block.
    """
    address = settings.address()
    if not address.startswith("embedded"):
        with scratch_database(address, "rota_bench_") as url:
            yield url
        return
    from rota.stores.postgres.embedded import EmbeddedServer

    try:
        place = Path(tempfile.mkdtemp(prefix=".rota-bench-", dir=embedded_path(address).parent))
    except OSError:  # there is no such directory yet, or it is not ours
        place = Path(tempfile.mkdtemp(prefix="rota-bench-"))
    server = EmbeddedServer(place / "server")
    try:
        yield server.start()
    finally:
        server.destroy()
        shutil.rmtree(place, ignore_errors=True)


def probe(url: str) -> Probe:
    """What the server at this address can do by plain SQL, to compare with."""
    from rota.stores.postgres.probe import Probe

    return Probe(url)


def empty_database(url: str) -> None:
    """Remove everything that Rota keeps in a database that belongs to tests."""
    from rota.stores.postgres.scratch import empty

    empty(url)


def _postgres(
    url: str,
    settings: Settings,
    clock: Callable[[], datetime] | None = None,
    find: Callable[[], str | None] | None = None,
) -> Store:
    from rota.stores.postgres import PostgresStore

    return PostgresStore(url, clock=clock, listen_url=settings.listen_url, find=find)


def _start_embedded(path: Path, settings: Settings) -> Store:
    """Start the server, or find it, and bring its schema up to date. Blocks."""
    server, url = start_embedded(path)
    log.info("jobs are kept in the embedded PostgreSQL at %s (%s)", server.data_path, masked(url))
    store = _postgres(url, settings, find=Keeper(server))

    async def prepare() -> None:
        await store.migrate()
        await store.close()

    asyncio.run(prepare())
    return store


class Keeper:
    """Nobody else looks after an embedded server: whoever misses it starts it again. Says where it is. Blocks."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self._failed = False
        self._next = 0.0
        """When a revival that failed is tried again, on this process's own clock."""

    def __call__(self) -> str | None:
        if time.monotonic() < self._next:
            return None
        try:
            if self._server.revive():
                log.warning(
                    "the embedded PostgreSQL at %s had died; it was started again", self._server.data_path
                )
            self._failed = False
            return self._server.url() if self._server.running() else None
        except RotaError as error:
            self._next = time.monotonic() + AGAIN
            if not self._failed:  # once is enough
                self._failed = True
                log.warning("the embedded PostgreSQL is away and cannot be started again: %s", error)
            return None


class LateStore:
    """A store that is made at the first call: starting a server takes seconds, and naming an address must not.

    `like` is the class of the real store. Once that is there, its verbs are used with nothing in between.
    """

    def __init__(self, address: str, like: type, start: Callable[[], Store]) -> None:
        self.address = address
        self.name: str = like.name  # type: ignore[attr-defined]
        self._like, self._start = like, start
        self._lock = threading.Lock()
        self._real: Store | None = None

    @property
    def starting(self) -> bool:
        """Whether a call must still wait for the real store to be made."""
        return self._real is None

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            raise AttributeError(verb)
        if self._real is not None:
            found = getattr(self._real, verb)
            setattr(self, verb, found)
            return found
        kind = getattr(self._like, verb)  # AttributeError where the real store has no such verb
        if not inspect.iscoroutinefunction(kind):
            return getattr(self._begun(), verb)

        async def call(*args: Any, **kwargs: Any) -> Any:
            real = self._real or await asyncio.to_thread(self._begun)
            return await getattr(real, verb)(*args, **kwargs)

        return call

    async def close(self) -> None:
        if self._real is not None:
            await self._real.close()

    def _begun(self) -> Store:
        with self._lock:
            if self._real is None:
                # In a thread of its own, because the caller's may run an event loop.
                with ThreadPoolExecutor(max_workers=1, thread_name_prefix="rota-start") as alone:
                    self._real = alone.submit(self._start).result()
            return self._real
