"""The kit on a real PostgreSQL, with a real worker in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from socket import gethostname
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from rota._core.durations import Duration
from rota._core.job import Job, State
from rota.config import Settings, masked
from rota.errors import ConfigError, RotaError
from rota.stores.opening import empty_database, open_store, scratch_database
from rota.testing.bench import Bench, Errors
from rota.testing.burial import dying
from rota.testing.clock import RunningClock
from rota.testing.front import Front
from rota.testing.kit import Kit
from rota.testing.line import Line
from rota.testing.running import LOOK, StillRunning, waiting
from rota.testing.server import server_url
from rota.worker.worker import Worker

if TYPE_CHECKING:
    from datetime import datetime

    from rota.app import Rota
    from rota.stores.contract import SessionRecord, Store

T = TypeVar("T")

log = logging.getLogger("rota.testing")

LAST_WAIT = 30.0
LEFTOVERS = 1.0
RENEWAL = 30.0
"""Seconds after which a worker that does not make room for the next one is a failure."""


class Hopping:
    """A store whose every call is made on one event loop, whichever loop asks: so one loop has all connections."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.name = store.name
        self._store, self._loop = store, loop

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._store, verb)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            if asyncio.get_running_loop() is self._loop:
                return await found(*args, **kwargs)
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(found(*args, **kwargs), self._loop)
            )

        return call

    async def close(self) -> None:
        """Nothing: the loop with the connections closes them when the kit ends."""


class Background:
    """An event loop in a thread, with a worker on it. A worker that crashes is followed by another one."""

    def __init__(self, app: Rota, store: Store, *, slots: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.kit: RealKit | None = None
        self._app, self._store, self._slots = app, store, slots
        self._stop = asyncio.Event()
        self._changed = asyncio.Event()
        self._ready: Future[None] = Future()
        """Done when a worker claims jobs with the trap that is set now."""
        context = contextvars.copy_context()  # what is replaced for the test is replaced for its worker
        self._thread = threading.Thread(
            target=context.run, args=[self._serve], name="rota-testing", daemon=True
        )

    def start(self, kit: RealKit) -> None:
        """Start, and wait until the worker claims jobs."""
        self.kit = kit
        self._thread.start()
        self._ready.result()

    def stop(self) -> None:
        """Stop the worker, close what it opened, and wait until the thread is gone."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(LAST_WAIT)
        if self._thread.is_alive():
            frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001 - the documented way in
            where = "".join(traceback.format_stack(frame)) if frame is not None else ""
            raise StillRunning(
                f"the worker of the test kit did not stop within {LAST_WAIT:g} s. It is here:\n{where}"
            )

    def renew(self) -> None:
        """Let another worker take over, one that minds the trap that is set now; wait until it claims jobs."""
        self._ready = Future()
        self.loop.call_soon_threadsafe(self._changed.set)
        self._ready.result(RENEWAL)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._work())
        except BaseException as error:
            if self._ready.done():
                log.exception("the worker of the test kit ended")
            else:
                self._ready.set_exception(error)
        finally:
            self.loop.run_until_complete(_leave())
            self.loop.close()

    async def _work(self) -> None:
        try:
            while not self._stop.is_set():
                await self._one_life()
        finally:
            await self._store.close()

    async def _one_life(self) -> None:
        kit, errors = self.kit, Errors()
        assert kit is not None
        self._changed.clear()
        line = Line(self._store, kit.ran.append, errors, kit.trap)
        bench = Bench(self._app, line, errors, trap=kit.trap)
        worker = Worker(bench, lanes={"test": f"{self._slots}:*"})
        if kit.trap is None:
            await self._live(worker, line)
        else:
            with dying(errors):
                await self._live(worker, line)

    async def _live(self, worker: Worker, line: Line) -> None:
        waited = self._ready
        life = asyncio.create_task(worker.run(), name="rota-testing")
        ready = asyncio.create_task(worker.ready())
        ending = asyncio.create_task(self._ending(line))
        try:
            await asyncio.wait([life, ready], return_when=asyncio.FIRST_COMPLETED)
            if not life.done() and not waited.done():
                waited.set_result(None)
            await asyncio.wait([life, ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
            ending.cancel()
            worker.stop(now=line.crashed or self._stop.is_set())
            await asyncio.wait([life])
        life.result()

    async def _ending(self, line: Line) -> None:
        """Wait until this worker's life is over: it crashed, the kit ends, or another trap is set."""
        stop, change = asyncio.create_task(self._stop.wait()), asyncio.create_task(self._changed.wait())
        try:
            while not line.crashed:
                done, _ = await asyncio.wait(
                    [stop, change, stirred := asyncio.ensure_future(line.stirred.wait())],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                stirred.cancel()
                line.stirred.clear()
                if stop in done or change in done:
                    return
        finally:
            stop.cancel()
            change.cancel()


async def _leave() -> None:
    """End what handlers left behind, and wait no longer than a moment for what does not want to."""
    loop = asyncio.get_running_loop()
    left = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=LEFTOVERS)
    await loop.shutdown_asyncgens()


class RealKit(Kit):
    """Jobs on a real PostgreSQL, run by a worker beside the test."""

    mode = "real"

    def __init__(
        self, app: Rota, store: Store, clock: RunningClock, background: Background, url: str, **options: Any
    ) -> None:
        super().__init__(app, cast("Store", Hopping(store, background.loop)), clock, **options)
        self.url = url
        """The address of the database."""
        self.front = Front(self.store)
        self._background = background

    @property
    def trap(self) -> Any:
        return self._trap

    def _untold(self) -> int:
        """A worker beside the test does not wait for a drain: it tells of what has run since the last one."""
        return self._told

    async def _work(self, most: int, ids: Sequence[UUID] = ()) -> None:  # noqa: ARG002 - the kit's signature
        """Wait until the worker has nothing to do."""
        end = monotonic() + self.patience
        while busy := await self._busy():
            self._check(most)
            if monotonic() > end:
                names = ", ".join(f"{job.task} (job {job.id}, {job.state})" for job in busy)
                raise StillRunning(
                    f"jobs did not come to an end within {self.patience:g} s: {names}. A handler may wait for "
                    "something that never comes; one that is only slow needs a longer timeout=."
                )
            await asyncio.sleep(LOOK)

    async def _busy(self) -> list[Job]:
        now = await self.store.now()
        return [
            job
            for job in await waiting(self.store, State.PENDING, State.RUNNING)
            if job.task in self.app.tasks
            and (job.state is State.RUNNING or (job.parked is None and job.run_at <= now))
        ]

    def _ask(self, question: Callable[[Store], Any]) -> Any:
        return self._background.call(question(self.store))

    @contextmanager
    def crash_at(self, point: str | Callable[..., Any], **options: Any) -> Iterator[Any]:
        """As `Kit.crash_at`; a worker with the trap takes over from the one that runs now, and back at the end."""
        with super().crash_at(point, **options) as trap:
            self._background.renew()
            try:
                yield trap
            finally:
                self._trap = None
                self._background.renew()


@contextmanager
def database() -> Iterator[str]:
    """The address of an empty PostgreSQL database with Rota's tables; dropped when the block ends.

    The server is an embedded one, started once for the whole test run.
    """
    with scratch_database(server_url()) as url:
        on_a_loop_of_its_own(prepare(open_store(url, Settings.load(url=url)), url, given=False, fresh=False))
        yield url


@contextmanager
def opened(app: Rota, url: str | None, *, fresh: bool, slots: int, timeout: Duration) -> Iterator[RealKit]:
    """A kit on this database, or on an empty one of an embedded server."""
    with ExitStack() as stack:
        address = for_tests(app, url) if url else stack.enter_context(scratch_database(server_url()))
        clock = RunningClock()
        store = open_store(address, app.settings, clock=clock)
        on_a_loop_of_its_own(prepare(store, address, given=url is not None, fresh=fresh))
        background = Background(app, store, slots=slots)
        kit = RealKit(app, store, clock, background, address, slots=slots, timeout=timeout)
        stack.callback(background.stop)
        background.start(kit)
        yield kit


def on_a_loop_of_its_own(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own, whatever loop the caller is on."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(asyncio.run(coroutine))
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=run, name="rota-testing-prepare")
    thread.start()
    thread.join()
    return answer.result()


async def prepare(store: Store, url: str, *, given: bool, fresh: bool) -> None:
    """Bring the schema up to date, and see that a database that was `given` may be used, or emptied if `fresh`."""
    try:
        await store.migrate()
        if not given:
            return
        if fresh:
            now = await store.now()
            living = [record for record in await store.sessions() if _lives(record, now)]
            if living:
                raise RotaError(
                    f"{masked(url)} has a living worker (session {living[0].id} on {living[0].host}), so it is not "
                    "emptied. Stop that worker, or give the tests a database of their own."
                )
            empty_database(url)
            return
        unfinished = sum(count.jobs for count in await store.counts() if count.state is not State.DEAD)
        if unfinished:
            raise RotaError(
                f"{masked(url)} holds {unfinished} unfinished jobs, which the worker of this test would run. Give the "
                "test an empty database, or say real(app, url, fresh=True) to empty Rota's tables there."
            )
    finally:
        await store.close()


def _lives(session: SessionRecord, now: datetime) -> bool:
    """Whether somebody works there. The lease of a test's worker ends in ages, also if it was killed: look for it."""
    if session.ended_at is not None or session.lease_until <= now:
        return False
    if session.host != gethostname():
        return True
    try:
        os.kill(session.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is there, and not ours
    return True


def for_tests(app: Rota, url: str) -> str:
    """The address, if tests may run jobs there."""
    sign = app.settings.production
    if sign is not None:
        raise ConfigError(
            f"this is production ({sign}), and a test worker would run jobs of {masked(url)}. Run the tests elsewhere."
        )
    if not url.startswith(("postgresql", "postgres")):
        raise ConfigError(f"a test with a real store needs a postgresql:// address, not {masked(url)!r}.")
    return url
