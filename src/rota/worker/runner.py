"""The runner: from a claimed job to how its attempt ended."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from functools import partial
from time import monotonic
from typing import Any, TypeAlias

from rota._core.failure import ErrorClass
from rota._core.outcome import (
    Cancelled,
    Expired,
    HandedBack,
    Outcome,
    Parked,
    Raised,
    Returned,
    completed,
    decide,
)
from rota.current import running
from rota.errors import PayloadInvalid
from rota.task import Task
from rota.worker.committing import commit, undo
from rota.worker.deadlines import Deadlines
from rota.worker.desk import Desk
from rota.worker.endings import RETURNED_NOTHING, abandoned, failure_of, judged, tell, timed_out, unstorable
from rota.worker.execution import Run, Stop
from rota.worker.executors.aio import rest_of
from rota.worker.executors.thread import Threads
from rota.worker.host import Middleware
from rota.worker.isolation import Isolation
from rota.worker.lanes import Lane
from rota.worker.wrapping import Wrapping

log = logging.getLogger("rota.worker")

SLICE = 0.005
"""Seconds that handlers which never wait may keep the loop before others get their turn."""

PATIENCE = 0.1
"""Seconds that a job which was claimed ahead waits for a slot before it goes back to the store."""

Begun: TypeAlias = "Coroutine[Any, Any, Any]"


class Runner:
    """Runs handlers: coroutines on the loop, plain functions in threads.

    Most coroutines end without waiting. They run one after another inside one
    asyncio Task, the *lead*, which begins each by hand. The first that waits
    keeps that Task for itself, and a fresh lead takes the jobs behind it.
    """

    def __init__(
        self,
        desk: Desk,
        tasks: Mapping[str, Task[..., Any]],
        middleware: Sequence[Middleware] = (),
        *,
        stop_grace: float = 5.0,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.ready: deque[Run] = deque()
        self.current: Run | None = None
        """The run whose coroutine is in its first stretch on the loop right now."""
        self.abandoned = 0
        """Handlers that did not stop when told to, and were left behind."""
        self.threads = Threads(loop, self._thread_ended)
        self.isolation = Isolation(self._sit_down, self._limit, self._end)
        self._wrapping = Wrapping(middleware, self.threads)
        self._desk, self._tasks, self._stop_grace = desk, tasks, stop_grace
        self._closing = False
        self._deadlines = Deadlines(loop, self._overdue)
        self._loop, self._clean = loop, copy_context()
        self._lead: asyncio.Task[None] | None = None
        self._carriers: set[asyncio.Task[None]] = set()

    def start(self, runs: Iterable[Run]) -> None:
        """Run these as soon as the loop comes to it."""
        self.ready.extend(runs)
        if self._closing:
            self.hand_back_unstarted()
        if self._lead is None:
            self._appoint()

    def hand_back_unstarted(self) -> None:
        """Begin nothing more: what waits here, and what still comes, goes back to the store."""
        self._closing = True
        for lane in self._desk.lanes:
            self.ready.extend(lane.waiting)
            lane.waiting.clear()
        for run in self.ready:
            self.stop(run, Stop.SHUTDOWN)
        if self.ready and self._lead is None:
            self._appoint()

    def stop(self, run: Run, why: Stop) -> None:
        """Tell a run's handler to stop, and wait for it no longer than the grace.

        The first reason counts, but a job that is lost is lost.
        """
        if run.ended or (run.stop is not None and why is not Stop.LOST):
            return
        told = run.stop is not None
        run.stop = why
        run.cancel_requested = True
        if run.started and not told:
            self._deadlines.set(run, self._stop_grace)
            if run.carrier is not None:
                run.carrier.cancel()
        self.isolation.stop(run)

    def abandon(self, run: Run) -> None:
        """Record the end of a run that does not stop. What its handler does later changes nothing."""
        if run.ended or self.isolation.kill(run):
            return
        self.abandoned += 1
        if run.seat is not None:
            self.threads.abandon(run)
        if run.carrier is not None:
            run.carrier.cancel()  # it may have swallowed the first one
        if run.work is not None:
            run.work.cut()  # the job's next attempt must not wait for the locks of this one
        log.warning(
            "job %s (%s) was told to stop (%s) and did not; it is left behind and its slot is free. "
            "Left behind so far: %d; threads that still run: %d.",
            run.job.id, run.job.task, run.stop.value if run.stop else "?", self.abandoned, self.threads.zombies,
        )  # fmt: skip
        self._end(run, abandoned(run))

    def close(self) -> None:
        self._deadlines.close()
        self.threads.close()

    def run_of(self, task: asyncio.Task[Any] | None) -> Run | None:
        """Which run a Task of this loop works for right now. Safe to ask from another thread."""
        return self.current or next(
            (run for run in self._desk.held.copy() if run.carrier is task is not None), None
        )

    # The lead

    def _appoint(self) -> None:
        # Not create_task(): an eager task factory would begin it here, inside somebody else's Task.
        self._lead = asyncio.Task(self._work(), loop=self._loop, name="rota-lead", context=self._clean.copy())
        self._carriers.add(self._lead)
        self._lead.add_done_callback(self._carriers.discard)

    def _step_down(self) -> None:
        """The lead takes no more jobs; somebody fresh takes those that are left."""
        self._lead = self.current = None
        if self.ready:
            self._appoint()

    async def _work(self) -> None:
        me = self._lead
        assert me is not None
        try:
            await self._run_ready(me)
        finally:
            if self._lead is me:
                self._step_down()

    async def _run_ready(self, me: asyncio.Task[None]) -> None:
        ready = self.ready
        self._drop_untrusted()
        slice_end = monotonic() + SLICE
        while ready:
            run = ready.popleft()
            lane = run.lane
            if lane is not None and lane.seated >= lane.slots and run.stop is None:
                self._wait_for_a_slot(run, lane)
                continue
            self.current = run
            running.set(run)
            before = copy_context()
            try:
                begun = self._begin(run)
                if begun is None:
                    continue
                waits_for = begun.send(None)
            except StopIteration as end:
                self._returned(run, end.value)
            except BaseException as error:  # SystemExit and KeyboardInterrupt end the job, not the worker
                self._raised(run, error)
            else:
                await self._carry(run, begun, waits_for, me)
                return
            if me.cancelling() or _changed(before):
                return  # what this handler left behind must not reach the next one
            if monotonic() > slice_end:
                self.current = None
                await asyncio.sleep(0)
                self._drop_untrusted()
                slice_end = monotonic() + SLICE

    def _drop_untrusted(self) -> None:
        """After a freeze what waits here may be somebody else's already: begin none of it."""
        session = self._desk.session
        if session is None or not session.trusted:
            for run in self.ready:
                self.stop(run, Stop.LOST)

    async def _carry(self, run: Run, begun: Begun, waits_for: Any, me: asyncio.Task[None]) -> None:
        """This handler waits: from here on this Task is its own."""
        run.carrier = me
        self._step_down()
        self._limit(run)
        try:
            value = await rest_of(begun, waits_for)
        except BaseException as error:
            if run.work is not None:
                await self._conclude(run, None, error)
            else:
                self._raised(run, error)
        else:
            if run.work is not None:
                await self._conclude(run, value, None)
            else:
                self._returned(run, value)

    # Jobs that were claimed ahead

    def _wait_for_a_slot(self, run: Run, lane: Lane) -> None:
        """It was claimed ahead, and those before it take longer than they used to."""
        lane.waiting.append(run)
        if len(lane.waiting) == 1:
            self._loop.call_later(PATIENCE, self._give_up_waiting, lane)

    def _give_up_waiting(self, lane: Lane) -> None:
        """Whoever has a free slot may have what still waits here for one."""
        before = monotonic() - PATIENCE
        while lane.waiting and lane.waiting[0].arrived <= before:
            self._end(
                lane.waiting.popleft(), HandedBack("it was claimed ahead, and no slot came free for it")
            )
        if lane.waiting:
            self._loop.call_later(PATIENCE, self._give_up_waiting, lane)

    def _sit_down(self, run: Run) -> None:
        """This handler takes its time: from here on it counts as one of its lane's."""
        if run.lane is not None and not run.seated:
            run.seated = True
            run.lane.seated += 1

    def _get_up(self, lane: Lane) -> None:
        lane.seated -= 1
        if lane.waiting:
            self.ready.append(lane.waiting.popleft())
            if self._lead is None:
                self._appoint()

    # One run, step by step

    def _begin(self, run: Run) -> Begun | None:
        """Begin a run: its coroutine, or None when it has ended already or runs in a thread or a child process."""
        job = run.job
        task = run.task_run = self._tasks.get(job.task)
        if task is None:
            self._desk.unknown(job.task)
            self._end(run, HandedBack("its task is not known to the worker that met it"))
            return None
        if run.stop is not None or job.cancel_requested_at is not None or job.deadline is not None:
            outcome = self._unwanted(run)
            if outcome is not None:
                self._end(run, outcome)
                return None
        if self._desk.parked and job.task in self._desk.parked:
            self._end(run, Parked(self._desk.parked[job.task].reason))
            return None
        if (task.process is not None or job.losses) and self.isolation.takes(run, task):
            return None
        try:
            args, kwargs = task.arguments(job.payload_json)
        except PayloadInvalid as error:
            self._end(run, Raised(failure_of(error, ErrorClass.PAYLOAD_INVALID)))
            return None
        run.started = True
        if self._wrapping:
            return self._wrapping.begin(run, partial(task.fn, *args, **kwargs), is_async=task.is_async)
        if task.is_async:
            begun: Begun = task.fn(*args, **kwargs)
            return begun
        self.threads.start(run, copy_context(), partial(task.fn, *args, **kwargs))
        self._limit(run)
        return None

    def _unwanted(self, run: Run) -> Outcome | None:
        """Why a run should not begin at all."""
        job = run.job
        if run.stop is Stop.CANCEL or job.cancel_requested_at is not None:
            return Cancelled()
        if run.stop is not None:
            return HandedBack()
        if job.deadline is not None and run.store_time() >= job.deadline:
            return Expired()
        return None

    def _limit(self, run: Run) -> None:
        """Give a run that takes its time its slot and its deadline; one that ended at once needed none."""
        self._sit_down(run)
        if run.stop is not None:
            self._deadlines.set(run, self._stop_grace)
            if run.carrier is not None:
                run.carrier.cancel()
        elif (seconds := run.limit) is not None:
            self._deadlines.set(run, seconds)

    async def _conclude(self, run: Run, value: Any, error: BaseException | None) -> None:
        """End a run that has a transaction of its own, which ends with it."""
        if error is None:
            outcome = await commit(run, self._kept(run, value), self._desk.count_fenced)
        else:
            outcome = await undo(run, error)
        self._end(run, outcome)

    def _returned(self, run: Run, value: Any) -> None:
        if value is None and run.stop is not Stop.TIMEOUT:
            self._end(run, RETURNED_NOTHING)
        else:
            self._end(run, self._kept(run, value))

    def _kept(self, run: Run, value: Any) -> Outcome:
        if run.stop is Stop.TIMEOUT:
            return timed_out(run)
        if value is None:
            return RETURNED_NOTHING
        assert run.task_run is not None
        try:
            return Returned(run.task_run.dump_result(value))
        except BaseException as error:
            return unstorable(error)

    def _raised(self, run: Run, error: BaseException) -> None:
        self._end(run, judged(run, error))

    def _thread_ended(self, run: Run, value: Any, error: BaseException | None) -> None:
        if run.waiter is not None:
            run.waiter.set_result((value, error))
        elif run.work is not None:
            run.carrier = asyncio.Task(self._conclude(run, value, error), loop=self._loop)
            self._carriers.add(run.carrier)
            run.carrier.add_done_callback(self._carriers.discard)
        elif error is None:
            self._returned(run, value)
        else:
            self._raised(run, error)

    def _overdue(self, run: Run) -> None:
        if run.stop is None:
            self.stop(run, Stop.TIMEOUT)
        else:
            self.abandon(run)

    def _end(self, run: Run, outcome: Outcome) -> None:
        """Free the slot, decide what is written, and put it on its way. Once for each run."""
        if run.ended:
            return
        run.ended = True
        run.took = monotonic() - run.arrived
        lane = run.lane
        if lane is not None:
            lane.free += 1
            lane.ended += 1
            if run.seated:
                self._get_up(lane)
        if run.stop is Stop.LOST:
            self._desk.held.discard(run)  # if the session lives on, its beats must not claim to hold this
            self._desk.ring()
            return
        if outcome is RETURNED_NOTHING:
            run.transition = completed(run.job)
        else:
            # Everything but a plain success has a time in it: the store's.
            transition = run.transition = decide(run.job, outcome, retry=run.retry, now=run.store_time())
            if transition.failure is not None:
                tell(run, transition.to)
        if run.written:
            self._desk.landed(run)
        else:
            self._desk.settle(run)


def _changed(before: Context) -> bool:
    """Whether a handler left the context other than it found it."""
    try:
        return copy_context() != before
    except Exception:  # a value of the user's that cannot be compared has surely been set
        return True
