"""Children: as many child processes as runs need at once, kept warm between jobs, replaced when they are used up."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from rota._core.outcome import HandedBack, Outcome, Returned
from rota._core.process import Process
from rota.task import Task
from rota.worker.endings import abandoned
from rota.worker.execution import Run, Stop
from rota.worker.executors.process import ends, family
from rota.worker.executors.process.keeping import Kept
from rota.worker.executors.process.place import Place, place_of, surroundings_of
from rota.worker.executors.process.wire import Header, from_job
from rota.worker.host import Host

log = logging.getLogger("rota.worker")

OnBegun: TypeAlias = "Callable[[Run], None]"
OnEnd: TypeAlias = "Callable[[Run, Outcome], None]"

MEMORY = "memory"
"""The store that no other process can reach."""
STARTS = max(2, os.cpu_count() or 1)
"""Children that may be starting at once: more would only wait for the same processors."""
START_WITHIN = 60.0
"""Seconds that a child has to import the app and open its resources."""
IDLE = 60.0
"""Seconds after which a child that nobody needs goes."""
LEAVE_WITHIN = 3.0
"""Seconds that a child has to close its resources."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds before a job is tried again whose child could not start."""


class Order(NamedTuple):
    """A run that waits for a child."""

    run: Run
    options: Process
    place: Place


class Children:
    """Runs handlers in processes of their own. All of it belongs to the event loop."""

    def __init__(self, host: Host, on_begun: OnBegun, on_end: OnEnd) -> None:
        self._host, self._on_begun, self._on_end = host, on_begun, on_end
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Order] = deque()
        self._starting: set[Kept] = set()
        self._idle: list[Kept] = []
        self._working: dict[Run, Kept] = {}
        self._leaving: set[Kept] = set()
        self._left = asyncio.Event()
        self._numbers = count(1)
        self._failures = 0
        self._closed = self._swept = False
        self._timer: asyncio.TimerHandle | None = None
        self.deaths = 0
        """Children that died under a job by themselves."""

    def __contains__(self, run: Run) -> bool:
        return run in self._working or any(order.run is run for order in self._waiting)

    def place_for(self, task: Task[..., Any]) -> Place | None:
        """Where a child finds this task; None: it cannot run in one, or could not reach the store from there."""
        if task.process is None and self._host.store.name == MEMORY:
            return None
        return place_of(task)

    def start(self, run: Run, options: Process, place: Place) -> None:
        """Run this as soon as a child is free for it. `on_begun` hears when its code begins, `on_end` of its end."""
        if not self._swept:
            self._swept = True
            self._loop.run_in_executor(None, _sweep)
        self._waiting.append(Order(run, options, place))
        self._serve()

    def stop(self, run: Run) -> None:
        """Tell the handler to stop, by whatever its run says. A job that is no longer ours is ended at once."""
        child = self._working.get(run)
        if child is None:
            self._drop(run)
        elif run.stop is Stop.LOST:
            self.kill(run)
        else:
            child.say({"is": "stop", "number": child.number})

    def kill(self, run: Run) -> bool:
        """End a run's child and all that it started; returns when they are gone. False: it has none."""
        child = self._working.get(run)
        if child is None:
            return self._drop(run)
        child.kill(dump=run.stop is Stop.TIMEOUT)
        death = child.death()
        self._forget(child)
        log.warning(
            "job %s (%s) %s; its child process %d was ended, with all it had started.",
            run.job.id, run.job.task, _why(run), child.pid,
        )  # fmt: skip
        self._on_end(run, ends.died(run, death))
        self._serve()
        return True

    async def close(self) -> None:
        """End every child: those that are idle may close their resources first."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for child in self._idle:
            self._retire(child)
        self._idle.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_WITHIN):
                while self._leaving:
                    self._left.clear()
                    await self._left.wait()
        for child in [*self._leaving, *self._starting, *self._working.values()]:
            child.kill()
            self._forget(child)
        await asyncio.sleep(0)  # the transports close in the next turn of the loop

    # Giving work to children

    def _serve(self) -> None:
        """Give waiting runs to idle children, and start more where those do not suffice."""
        if self._closed:
            return
        left: deque[Order] = deque()
        while self._waiting:
            order = self._waiting.popleft()
            child = next((child for child in self._idle if child.options == order.options), None)
            if child is None:
                left.append(order)
            else:
                self._idle.remove(child)
                self._begin(child, order)
        self._waiting = left
        for options in dict.fromkeys(order.options for order in left):
            wanted = sum(order.options == options for order in left)
            coming = sum(child.options == options for child in self._starting)
            place = next(order.place for order in left if order.options == options)
            while coming < wanted and len(self._starting) < STARTS and self._spawn(options, place):
                coming += 1

    def _begin(self, child: Kept, order: Order) -> None:
        run = order.run
        child.run, child.number, child.began = run, next(self._numbers), monotonic()
        child.forget_words()
        self._working[run] = child
        child.say({"is": "run", "number": child.number, "job": from_job(run.job), "place": list(order.place)})
        self._on_begun(run)

    def _spawn(self, options: Process, place: Place) -> bool:
        """Start another child. False: it could not be, and those who waited for it have been told."""
        settings: Any = self._host.settings
        handed = settings.handed() if hasattr(settings, "handed") else {}
        environment = options.environment(os.environ)
        if str(handed.get("url", "")).endswith("://"):  # libpq finds the server by its own variables
            environment |= {name: value for name, value in os.environ.items() if name.startswith("PG")}
        child = Kept(
            options,
            f"{family.worker_mark()}{next(self._numbers)}",
            self._hear,
            self._died,
            result_limit=getattr(settings, "result_limit", 262_144) + 1024,
        )
        try:
            child.spawn(environment)
        except OSError as error:  # no process, no memory, no descriptors: all may come back
            child.bury()
            self._not_started(options, f"it could not be started: {error}")
            return False
        self._starting.add(child)
        child.say(
            {
                "is": "boot",
                "limits": options.limits(),
                "settings": handed,
                "around": surroundings_of(self._host),
                "place": list(place),
                "store": self._host.store.name,
                "out_of_reach": self._host.store.name == MEMORY,
                "level": logging.getLogger().getEffectiveLevel(),
            }
        )
        self._loop.call_later(START_WITHIN, self._late, child)
        return True

    # What children say

    def _hear(self, child: Kept, header: Header, body: bytes) -> None:
        match header.get("is"):
            case "ready" if child in self._starting:
                self._starting.discard(child)
                self._failures = 0
                child.own = family.children_of(child.pid)
                self._rest(child)
            case "failed" if child in self._starting:
                self._failed(child, str(header.get("error")))
            case "end" if child.run is not None and header.get("number") == child.number:
                self._ended(child, header, body)
            case _:
                log.error("child process %d spoke out of turn (%.200s); it is ended.", child.pid, header)
                run = child.run
                child.kill()
                self._settle_death(child, run)

    def _ended(self, child: Kept, header: Header, body: bytes) -> None:
        run = child.run
        assert run is not None
        child.run, child.served = None, child.served + 1
        del self._working[run]
        limit = getattr(self._host.settings, "result_limit", 262_144)
        outcome = ends.said(run, header, body, limit)
        run.written = bool(header.get("written")) and isinstance(outcome, Returned)
        if child.left_behind():
            log.warning(
                "job %s (%s) has ended and left processes behind; they are ended with its child process %d.",
                run.job.id, run.job.task, child.pid,
            )  # fmt: skip
            child.kill()
            self._forget(child)
        elif child.served >= child.options.jobs or run.stop is not None or header.get("heavy"):
            self._retire(child)
        else:
            self._rest(child)
        self._on_end(run, outcome)
        self._serve()

    def _rest(self, child: Kept) -> None:
        if self._closed:
            self._retire(child)
            return
        child.idle_since = monotonic()
        self._idle.append(child)
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE / 4, self._thin_out)
        self._serve()

    def _thin_out(self) -> None:
        """Let children go that nobody has needed for a while."""
        self._timer = None
        now = monotonic()
        for child in [child for child in self._idle if now - child.idle_since > IDLE]:
            self._idle.remove(child)
            self._retire(child)
        if self._idle and not self._closed:
            self._timer = self._loop.call_later(IDLE / 4, self._thin_out)

    # Their ends

    def _retire(self, child: Kept) -> None:
        self._leaving.add(child)
        child.leave()
        self._loop.call_later(LEAVE_WITHIN, self._still_here, child)

    def _still_here(self, child: Kept) -> None:
        if child in self._leaving:
            child.kill()
            self._forget(child)

    def _died(self, child: Kept) -> None:
        """A child is gone. Under a job, that is a crash; while starting, a reason to wait."""
        if child in self._starting:
            self._failed(child, child.death().summary())
        else:
            self._settle_death(child, child.run)

    def _settle_death(self, child: Kept, run: Run | None) -> None:
        death = child.death()
        self._forget(child)
        if run is not None:
            if run.stop is None:
                self.deaths += 1
            self._on_end(run, ends.died(run, death))
        self._serve()

    def _forget(self, child: Kept) -> None:
        self._starting.discard(child)
        self._leaving.discard(child)
        self._left.set()
        if child in self._idle:
            self._idle.remove(child)
        if child.run is not None:
            self._working.pop(child.run, None)
            child.run = None
        child.bury()

    def _late(self, child: Kept) -> None:
        if child in self._starting:
            self._failed(child, f"it was not ready after {START_WITHIN:g} s")

    def _failed(self, child: Kept, why: str) -> None:
        child.kill()
        self._forget(child)
        self._not_started(child.options, why)
        self._serve()

    def _not_started(self, options: Process, why: str) -> None:
        """A child could not start, through no fault of the jobs that wait for it: they are tried again later."""
        self._failures += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10))
        log.error(
            "a child process could not start: %s. Its jobs are tried again in %g s. A child sees only part of the "
            'worker\'s environment: name what the app needs, as in executor=Process(env=["DATABASE_URL"]).',
            why, pause,
        )  # fmt: skip
        orders = [order for order in self._waiting if order.options == options]
        self._waiting = deque(order for order in self._waiting if order.options != options)
        for order in orders:
            self._on_end(order.run, HandedBack(f"its child process could not start: {why:.300}", pause))

    def _drop(self, run: Run) -> bool:
        """Take a run that still waits off the list; its end is what its stop means."""
        found = next((order for order in self._waiting if order.run is run), None)
        if found is None:
            return False
        self._waiting.remove(found)
        self._on_end(run, abandoned(run))
        return True


def _why(run: Run) -> str:
    if run.stop is Stop.LOST:
        return "is no longer ours"
    return f"was told to stop ({run.stop.value if run.stop else '?'}) and did not"


def _sweep() -> None:
    ended = family.sweep_orphans()
    if ended:
        log.warning("ended %d processes that jobs of a dead worker had left behind.", ended)
