"""The heart: beats the session from a thread of its own, so that no handler can stop it by keeping the loop busy."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from rota._core.worker_order import OrderVerb
from rota.errors import StoreUnavailable
from rota.stores.contract import Beat, SessionStart, Store
from rota.worker.ending import end_all
from rota.worker.execution import Run
from rota.worker.memory import memory_used
from rota.worker.service import Service
from rota.worker.session import Session
from rota.worker.stall import StallDetector

if TYPE_CHECKING:
    from rota.worker.supervisor.shown import Shown

KNOWN = 10
STRAYS_EVERY = 3
"""Every so many beats the store is asked for jobs that are ours and that we do not know, and told of our memory."""


@contextlib.asynccontextmanager
async def _answered_within(seconds: float) -> AsyncIterator[None]:
    """A beat that hangs is as good as none: try again on another connection while the lease lasts."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise StoreUnavailable(f"the heartbeat was not answered within {seconds:g} s") from error


class News(Protocol):
    """Who hears what the beats bring, on the worker's loop."""

    def opened(self, session: Session) -> None: ...
    def fenced(self, session: Session, why: str) -> None: ...
    def heard(self, session: Session, beat: Beat, named: dict[UUID, Run]) -> None: ...
    def strays(self, session: Session, jobs: tuple[Any, ...]) -> None: ...
    def ordered(self, verb: OrderVerb) -> None: ...


class Beats(Service):
    """Opens a session, keeps it alive, and opens another when it is lost."""

    name = "heartbeat"
    longest_pause = 1.0
    """Shorter than other services': a lease runs out while it waits."""

    def __init__(
        self,
        store: Store,
        introduce: Callable[[], SessionStart],
        held: set[Run],
        tell: Callable[..., None],
        news: News,
        *,
        lease: float,
        every: float,
        shown: Shown | None = None,
    ) -> None:
        super().__init__()
        self.session: Session | None = None
        self.begun: deque[UUID] = deque(maxlen=KNOWN)
        """The newest sessions that may live in the store: the answer to an opening can be late, or lost."""
        self._shown = shown
        self._store, self._introduce, self._held = store, introduce, held
        self._tell, self._news = tell, news
        self._lease, self._every = lease, every
        self._next = 0.0
        self._until_strays = STRAYS_EVERY
        self._obeyed: OrderVerb | None = None

    async def step(self) -> None:
        """One session opened, or one beat after its pause."""
        session = self.session
        if session is None:
            await self._open()
            return
        await asyncio.sleep(max(0.0, self._next - monotonic()))
        if self.session is session:
            await self._beat(session)

    def give_up(self, session: Session, why: str) -> None:
        """Trust this session no longer: stop its jobs and begin another."""
        if self.session is session:
            self.session = None
            self._tell(self._news.fenced, session, why)

    async def _open(self) -> None:
        start = self._introduce()
        self.begun.append(start.id)
        sent = monotonic()
        async with _answered_within(self._every):
            await self._store.open_session(start, lease=self._lease)
        shown = self._shown
        session = Session(start.id, self._lease, sent, None if shown is None else shown.kept)
        if shown is not None:
            shown.opened(session)  # before anything is claimed: else nobody could end it for us at once
        self.session = session
        self._next = sent + self._every
        self._until_strays = STRAYS_EVERY
        self._tell(self._news.opened, session)

    async def _beat(self, session: Session) -> None:
        named = {run.job.id: run for run in self._held.copy()}  # copied in one step, whatever the loop does
        strays = self._until_strays <= 1
        sent = monotonic()
        async with _answered_within(self._every):
            beat = await self._store.beat(
                session.id,
                lease=self._lease,
                holding={job_id: run.job.version for job_id, run in named.items()},
                strays=strays,
                memory=memory_used() if strays else None,
            )
        self._next = sent + self._every
        if not beat.alive:
            self.give_up(session, "the store says that it has ended")
            return
        session.prolong(sent)
        if self._shown is not None:
            self._shown.beaten(sent)
        self._until_strays = STRAYS_EVERY if strays and not beat.strays else self._until_strays - 1
        if beat.cancel or beat.lost:
            self._tell(self._news.heard, session, beat, named)
        if strays:
            self._tell(self._news.strays, session, beat.strays)
        if beat.order is not None and beat.order is not self._obeyed:
            self._obeyed = beat.order
            self._tell(self._news.ordered, beat.order)


class Trust(Service):
    """Looks several times a second whether the session is still to be trusted, and the loop still turns."""

    name = "self-fencing"

    def __init__(
        self, beats: Beats, stall: StallDetector, *, every: float, shown: Shown | None = None
    ) -> None:
        super().__init__()
        self._beats, self._stall, self._every, self._shown = beats, stall, every, shown

    async def step(self) -> None:
        await asyncio.sleep(self._every)
        session = self._beats.session
        if session is not None and not session.trusted:
            self._beats.give_up(session, "its beats were not answered in time")
        self._stall.look()
        if self._shown is not None:
            self._shown.looked()


class Heart:
    """A thread with an event loop for the services that must go on while the worker's loop is blocked."""

    def __init__(self, store: Store, services: list[Service]) -> None:
        self._store, self._services = store, services
        self._worker_loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._worker_loop.create_future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._live, name="rota-heart", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Stop beating, and wait until the thread is gone."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # it is gone already
            self._loop.call_soon_threadsafe(self._stop.set)
        await self._gone
        self._thread.join()  # it said goodbye with its last breath

    def _live(self) -> None:
        assert self._loop is not None
        try:
            self._loop.run_until_complete(self._beat_until_stopped())
        finally:
            self._loop.close()
            with contextlib.suppress(RuntimeError):  # the worker's loop was closed without a goodbye
                self._worker_loop.call_soon_threadsafe(self._gone.set_result, None)

    async def _beat_until_stopped(self) -> None:
        tasks = [
            asyncio.create_task(service.run(), name=f"rota-{service.name}") for service in self._services
        ]
        await self._stop.wait()
        await end_all(tasks)
        await self._store.close()
