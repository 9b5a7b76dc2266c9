"""The worker: claims jobs, runs them, and records how they ended, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from difflib import get_close_matches
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from rota._core.worker_order import OrderVerb
from rota.current import home, keeper
from rota.errors import ConfigError, StoreError
from rota.worker import capture
from rota.worker.chores.janitor import Janitor
from rota.worker.chores.parking import Parking
from rota.worker.chores.reporter import Reporter
from rota.worker.chores.rescuer import Rescuer
from rota.worker.chores.reviewer import Reviewer
from rota.worker.chores.roller import Roller
from rota.worker.chores.sampler import Sampler
from rota.worker.chores.scheduler import Scheduler
from rota.worker.chores.unparker import Unparker
from rota.worker.code import code_version
from rota.worker.custody import Custody
from rota.worker.desk import Desk
from rota.worker.ending import end_all
from rota.worker.exchanger import Exchanger
from rota.worker.execution import Run, Stop
from rota.worker.heart import Beats, Heart, Trust
from rota.worker.host import Host
from rota.worker.lanes import Lane, Lanes, LaneSpec, lane_specs
from rota.worker.listener import Listener
from rota.worker.log_place import log_place
from rota.worker.logbook import Logbook
from rota.worker.opening import Opening, close_all, open_all
from rota.worker.poller import Poller
from rota.worker.runner import Runner
from rota.worker.service import Service
from rota.worker.session import introduce
from rota.worker.stall import StallDetector

if TYPE_CHECKING:
    from rota.stores.contract import Wakeable
    from rota.worker.supervisor.shown import Shown

log = logging.getLogger("rota.worker")

EXCHANGES = 2
"""One writes and fetches while the other's jobs run."""
LAST_CALL = 1.0
"""Seconds that a handler has to end after the grace of a shutdown; then it is left behind."""
FLUSH = 3.0
"""Seconds that a shutdown waits for the last ends to be written; what is not is rescued by others."""

GRACEFUL, INTERRUPTED = 0, 1


class Worker:
    """One worker in this process. `await run()` works until `stop()`; afterwards it cannot be used again."""

    def __init__(
        self,
        host: Host,
        *,
        lanes: Lanes | None = None,
        tasks: Iterable[str] | None = None,
        tenant: str | None = None,
        queues: Iterable[str] | None = None,
        stop_grace: float | None = None,
        shown: Shown | None = None,
    ) -> None:
        self.host = host
        self._shown = shown
        self.lanes: list[LaneSpec] = lane_specs(
            host.settings.lanes if lanes is None else lanes, queues=queues
        )
        self._only = _known(host, tasks)
        self._tenant = tenant
        self._stop_grace = host.settings.stop_grace if stop_grace is None else stop_grace
        self._stop, self._now = asyncio.Event(), asyncio.Event()
        self._patience_ends = inf
        self._ready = asyncio.Event()
        self.on_order: Callable[[OrderVerb], None] | None = None
        """Hears what somebody asked of this worker from afar, when it is about to act on it."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> int:
        """Work until stopped. 0: every job that was begun has ended; 1: some were interrupted and handed back."""
        self._loop = asyncio.get_running_loop()
        self._build()
        opened = await open_all(self.host.resources)
        try:
            if await self._unless_stopped(Opening(self.host).once()):
                return await self._work()
            return GRACEFUL
        finally:
            await close_all(opened)

    def stop(self, *, now: bool = False, patiently: bool = False) -> None:
        """Stop: claim nothing more, finish what runs within the grace. `now`: hand back what runs at once.

        `patiently`: finish what runs however long it takes; a later stop still sets the grace.
        """
        if not patiently:
            self._patience_ends = min(self._patience_ends, monotonic() + self.host.settings.grace)
        self._stop.set()
        if now:
            self._now.set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    async def ready(self) -> None:
        """Wait until it claims jobs."""
        await self._ready.wait()

    # Its life

    def _build(self) -> None:
        host, settings, store = self.host, self.host.settings, self.host.store
        self.desk = Desk(
            [Lane(spec) for spec in self.lanes], host.tasks, only=self._only, tenant=self._tenant
        )
        self._logbook = Logbook(store, log_place(getattr(settings, "log_location", None)))
        keeper.set(self._logbook.keep)  # in the context of all that this worker runs from here on
        home.set(store)
        shown = self._shown
        make_runner = Runner if shown is None else shown.make_runner
        self.runner = make_runner(self.desk, host.tasks, host.middleware, stop_grace=self._stop_grace)
        self.runner.isolation.host = host
        self.custody = Custody(self.desk, self.runner, self._obey)
        self._stall = StallDetector(self.runner.run_of, settings.stall, shown)
        self._beats = Beats(
            store,
            self._introduce,
            self.desk.held,
            self._tell,
            self.custody,
            lease=settings.lease,
            every=settings.beat,
            shown=shown,
        )
        trust = Trust(self._beats, self._stall, every=self._stall.every, shown=shown)
        self._heart = Heart(store, [self._beats, trust])
        self._services = self._wire()

    def _wire(self) -> list[Service]:
        """Every loop of this worker but the heart's, in one place."""
        settings, store, desk = self.host.settings, self.host.store, self.desk
        self._reporter = Reporter(store, desk)
        wakeable = cast("Wakeable", store) if hasattr(store, "listen") else None
        listener = None if wakeable is None else Listener(wakeable, desk, self.custody.cancel)
        services: list[Service] = [
            Exchanger(store, desk, self.runner, number + 1) for number in range(EXCHANGES)
        ]
        services.append(Poller(store, desk, listener, poll=settings.poll, idle_poll=settings.idle_poll))
        services.append(Rescuer(store, desk, self.host.tasks, lease=settings.lease))
        services.append(Janitor(store))
        services.append(Unparker(store, desk))
        services += [self._reporter, Roller(store), Sampler(store)]
        services.append(Reviewer(store, desk))
        services.append(self._logbook)
        services.append(self._parking())
        if self.host.schedules and settings.schedules:
            services.append(Scheduler(store, desk, tuple(self.host.schedules)))
        return services if listener is None else [*services, listener]

    def _parking(self) -> Parking:
        host = self.host
        version, limit = code_version(host), host.settings.crash_limit
        parking = Parking(host.store, self.desk, version, limit=limit, alerts=host.alerts)
        self.runner.isolation.on_crash = parking.crashed
        return parking

    async def _work(self) -> int:
        self._heart.start()
        self._stall.start()
        capture.start()
        loops = [
            asyncio.create_task(service.run(), name=f"rota-{service.name}") for service in self._services
        ]
        self._say_hello()
        self._ready.set()
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([stopped, *loops], return_when=asyncio.FIRST_COMPLETED)
            for loop in loops:
                if loop.done():
                    loop.result()  # a loop never ends by itself: say why it did
            return await self._drain()
        except asyncio.CancelledError:
            self.stop(now=True)
            await self._drain()
            raise
        finally:
            await self._end([stopped, *loops])

    def _obey(self, verb: OrderVerb) -> None:
        """Somebody asked from afar that this worker goes: it ends by itself, as after `stop()`."""
        log.info(
            "asked from afar to %s: no more jobs are taken, and what runs is finished first.", verb.value
        )
        if self.on_order is not None:
            self.on_order(verb)
        self.stop(patiently=verb is OrderVerb.DRAIN)

    async def _drain(self) -> int:
        """Finish what runs within the grace, interrupt the rest, and write how everything ended."""
        desk, runner = self.desk, self.runner
        desk.claiming = False
        runner.hand_back_unstarted()
        await self._until(lambda: not desk.busy or monotonic() > self._patience_ends, inf, cut_short=True)
        running = [run for run in desk.held if run.started and not run.ended]
        for run in running:
            runner.stop(run, Stop.SHUTDOWN)
        await self._until(lambda: not desk.busy, LAST_CALL)
        for run in running:
            runner.abandon(run)
        if not await self._until(lambda: desk.written, FLUSH):
            log.warning(
                "%d ends could not be written before the stop; other workers will rescue these jobs.",
                len(desk.held),
            )
        interrupted = sum(_interrupted(run) for run in running)
        if interrupted:
            log.warning("stopped; %d running jobs were interrupted and handed back.", interrupted)
            return INTERRUPTED
        log.info("stopped; every job that was begun has ended.")
        return GRACEFUL

    async def _end(self, loops: list[asyncio.Task[Any]]) -> None:
        await end_all(loops)
        capture.stop()
        self._stall.stop()
        await self._heart.stop()
        await self.runner.isolation.close()
        self.runner.close()
        with suppress(StoreError, TimeoutError):  # their leases run out by themselves
            async with asyncio.timeout(FLUSH):
                await self._logbook.flush()
                for session in self._beats.begun:
                    await self.host.store.end_session(session)
                await self._reporter.tell()

    # Small things

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do this, unless told to stop first."""
        doing, stopped = asyncio.create_task(work), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([doing, stopped], return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            await end_all([doing, stopped])

    async def _until(self, done: Callable[[], bool], seconds: float, *, cut_short: bool = False) -> bool:
        """Wait until `done`, at most so long; a second stop cuts it short."""
        end = monotonic() + seconds
        while not done() and monotonic() < end and not (cut_short and self._now.is_set()):
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await (self._now.wait() if cut_short else asyncio.sleep(0.02))
        return done()

    def _tell(self, hear: Callable[..., None], *news: Any) -> None:
        """Bring news from the heart's thread to this loop."""
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop was closed without a goodbye
            self._loop.call_soon_threadsafe(hear, *news)

    def _introduce(self) -> Any:
        lanes = {spec.name: spec.slots for spec in self.lanes}
        queues = {spec.name: spec.queues for spec in self.lanes}
        tasks = self._only or tuple(self.host.tasks)
        return introduce(lanes, tasks, code_version(self.host), queues, self._tenant)

    def _say_hello(self) -> None:
        lanes = ", ".join(
            f"{lane.name}={lane.slots} ({', '.join(lane.queues) if lane.queues else 'every queue'})"
            for lane in self.lanes
        )
        tasks = self._only or tuple(self.host.tasks)
        log.info(
            "worker started: lanes %s; %d slots in all; %d tasks%s; store %s.",
            lanes, sum(lane.slots for lane in self.lanes), len(tasks),
            f"; only tenant {self._tenant}" if self._tenant else "", self.host.store.name,
        )  # fmt: skip


def _interrupted(run: Run) -> bool:
    return run.transition is None or run.transition.verb == "hand back" or run.transition.lost


def _known(host: Host, tasks: Iterable[str] | None) -> tuple[str, ...] | None:
    if tasks is None:
        return None
    names = tuple(tasks)
    if not names:
        raise ConfigError(
            "tasks is empty, so this worker would never find work. Name a task, or leave tasks out."
        )
    for name in names:
        if name not in host.tasks:
            near = get_close_matches(name, host.tasks, n=1)
            raise ConfigError(
                f"this worker was told to run only {', '.join(names)}, but no task is named {name!r} here"
                + (f"; did you mean {near[0]!r}?" if near else f" ({len(host.tasks)} others are).")
                + " Import the module that defines it, or correct the name."
            )
    return names
