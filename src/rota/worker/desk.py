"""The desk: what the worker holds, what has ended and waits to be written, and which slots ask for work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job, State
from rota._core.outcome import Transition
from rota._core.suspects import ParkedTask
from rota.errors import StoreError, UnknownTask
from rota.stores.contract import Answer, Settled, Wanted
from rota.worker.execution import Run
from rota.worker.lanes import Lane
from rota.worker.session import Session
from rota.worker.tally import Tally

log = logging.getLogger("rota.worker")

BATCH = 500
BUSY_PAUSE = 0.5
"""Seconds until an end is written again whose unique key somebody held."""


class Order(NamedTuple):
    """One round trip: ended runs to write, and how many jobs to claim for which lane."""

    session: Session
    batch: list[Run]
    lane: Lane | None
    asked: int
    hints: int


class Desk:
    """State that the loops of one worker share. All of it belongs to the event loop; the heart only reads `held`."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        tasks: Mapping[str, Any],
        *,
        only: tuple[str, ...] | None = None,
        tenant: str | None = None,
    ) -> None:
        self.lanes = list(lanes)
        self.held: set[Run] = set()
        """Claimed runs whose end is not yet known to be written. Heartbeats name them."""
        self.outbox: list[Run] = []
        self.session: Session | None = None
        self.claiming = True
        self.fenced = 0
        """Ends that were not written, because the job had moved on."""
        self.flights: dict[str, float] = {}
        """Which exchanges wait for an answer, and since when."""
        self.stirred = asyncio.Event()
        """Something happened, and there is room for more: look again soon."""
        self.fetched_at = float("-inf")
        """When a claim last brought jobs."""
        self.gates_seen = False
        self.kin_came = asyncio.Event()
        """A job came that another one is the parent of: perhaps a dead letter waits for its end."""
        self.tally = Tally()
        """What the ends that were written add up to."""
        self.parked: Mapping[str, ParkedTask] = {}
        """Tasks whose jobs must not begin here, because too many of them killed their process."""
        self._tasks, self._only, self._tenant = tasks, only, tenant
        self._unknown: set[str] = set()
        self._busy: set[Run] = set()
        """Ends that could not be written yet, because somebody's open transaction holds the job's unique key."""
        self._alone = 0
        """How many of the next round trips carry one end only, because one of these ends cannot be written."""
        self._waiting: list[asyncio.Future[None]] = []
        self._turn = 0

    # What an exchange takes and brings

    def next_order(self) -> Order | None:
        """What the next round trip should carry, or None when there is nothing to do for now."""
        session = self.session
        if session is None or not session.trusted:
            return None
        batch = self.outbox
        most = BATCH
        if self._alone:
            self._alone -= 1
            most = 1
        if len(batch) > most:
            self.outbox = batch[most:]
            batch = batch[:most]
        else:
            self.outbox = []
        lane = self._next_lane(settling=bool(batch)) if self.claiming else None
        if lane is not None:
            order = Order(session, batch, lane, lane.reserve(), lane.hints)
        elif batch:
            order = Order(session, batch, None, 0, 0)
        else:
            return None
        return order

    def wanted(self, order: Order) -> Wanted:
        assert order.lane is not None
        tasks = self._only
        if tasks is None and self._unknown:
            tasks = tuple(self._tasks)
        return Wanted(order.asked, order.lane.queues, tasks, self._tenant)

    def answered(
        self, order: Order, settled: Sequence[Settled], got: int, *, now: float = 0.0, took: float = 0.0
    ) -> bool:
        """A round trip is back. False: its session has ended meanwhile, so what it claimed is not ours."""
        if order.batch:
            self.held.difference_update(order.batch)
            for answer in settled:
                if answer.answer is not Answer.APPLIED:
                    self._examine(order.batch, settled)
                    break
            else:
                self.tally.add(order.batch)
        if order.session is not self.session or not order.session.trusted:
            # It ended, or this process stood still past its lease: what it claimed may be somebody else's by now.
            if order.lane is not None:
                order.lane.unanswered(order.asked)
            return False
        if got:
            self.fetched_at = now
        if order.lane is not None:
            order.lane.answered(order.asked, got, order.hints, now=now, took=took)
            if got == order.asked:
                self.ring()  # there is more: the other exchange may fetch while these run
            elif got:
                self.stirred.set()
        return True

    def failed(self, order: Order, error: BaseException) -> None:
        """A round trip did not come back. Its settles are repeated: the fence makes that harmless.

        An error that is not the store's own is one end's fault: they are repeated
        one by one, and who fails alone ends dead instead. Else no end of this
        worker would ever be written again.
        """
        if order.lane is not None:
            order.lane.unanswered(order.asked)
        self.outbox[:0] = order.batch
        if not order.batch or isinstance(error, StoreError) or not isinstance(error, Exception):
            return
        self._alone = max(self._alone, len(order.batch))
        if len(order.batch) == 1:
            self.outbox.append(self.outbox.pop(0))  # the others first, whatever becomes of it
            _bury(order.batch[0], error)

    def notice(self, job: Job) -> None:
        """A job came that the chores should know of."""
        if job.gate is not None:
            self.gates_seen = True
        if job.parent_id is not None:
            self.kin_came.set()

    # What runs bring

    def settle(self, run: Run) -> None:
        """Write this run's transition with the next round trip."""
        self.outbox.append(run)
        if self._waiting:
            self.ring()

    def landed(self, run: Run) -> None:
        """This run's end is written: its own transaction has done it."""
        self.held.discard(run)
        self.tally.add([run])
        self.ring()

    def unknown(self, name: str) -> None:
        """A job of a task that is not registered here came along: from now on claim only what is."""
        if name not in self._unknown:
            self._unknown.add(name)
            log.warning(
                "%s Its jobs are handed back unharmed and stay for a worker that knows it.",
                UnknownTask(name, list(self._tasks)),
            )

    # Waiting and waking

    async def wait(self) -> None:
        """Wait until there may be something to do."""
        bell: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(bell)
        try:
            await bell
        finally:
            if bell in self._waiting:
                self._waiting.remove(bell)

    def ring(self) -> None:
        """Wake one waiting exchange. One that is on its way looks again by itself when it is back."""
        while self._waiting:
            bell = self._waiting.pop()
            if not bell.done():
                bell.set_result(None)
                return

    def ring_all(self) -> None:
        while self._waiting:
            self.ring()

    def wake(self, queue: str | None = None) -> None:
        """There may be work in this queue (None: in any)."""
        for lane in self.lanes:
            if queue is None or lane.serves(queue):
                lane.wake()
                if lane.hungry and self._waiting:
                    self.ring()

    # Questions

    @property
    def has_room(self) -> bool:
        """Whether a lane has free slots but no reason to ask for work: then polling makes sense."""
        return self.claiming and any(lane.free > 0 and lane.dry for lane in self.lanes)

    @property
    def busy(self) -> bool:
        """Whether any slot is taken or set aside."""
        return any(lane.free != lane.slots for lane in self.lanes)

    @property
    def written(self) -> bool:
        """Whether every end is known to be written."""
        return not self.outbox and not self.flights and not self._busy

    @property
    def queues(self) -> tuple[str, ...] | None:
        """The queues that any lane serves; None means all."""
        named: dict[str, None] = {}
        for lane in self.lanes:
            if lane.queues is None:
                return None
            named.update(dict.fromkeys(lane.queues))
        return tuple(named)

    def _next_lane(self, *, settling: bool) -> Lane | None:
        """Whose turn it is to ask. While something is written anyway, asking costs no round trip of its own."""
        lanes, turn = self.lanes, self._turn
        number = len(lanes)
        for step in range(number):
            lane = lanes[(turn + step) % number]
            if lane.hungry:
                self._turn = (turn + step + 1) % number
                return lane
        if settling:
            for step in range(number):
                lane = lanes[(turn + step) % number]
                if lane.may_ask:
                    self._turn = (turn + step + 1) % number
                    return lane
        return None

    def _examine(self, batch: Sequence[Run], settled: Sequence[Settled]) -> None:
        """Some ends were not simply written."""
        written: list[Run] = []
        for run, answer in zip([run for run in batch if run.transition is not None], settled, strict=True):
            if answer.answer in (Answer.APPLIED, Answer.ALREADY):
                written.append(run)
            elif answer.answer is Answer.FENCED:
                self.count_fenced(answer)
            elif answer.answer is Answer.BUSY:
                self.held.add(run)
                self._busy.add(run)
                asyncio.get_running_loop().call_later(BUSY_PAUSE, self._settle_again, run)
        self.tally.add(written)

    def _settle_again(self, run: Run) -> None:
        self._busy.discard(run)
        self.settle(run)

    def count_fenced(self, answer: Settled) -> None:
        """An end came too late."""
        self.fenced += 1
        log.warning(
            "job %s had moved on (%s now) when its end was written; nothing was changed.",
            answer.id,
            answer.state,
        )


def _bury(run: Run, error: Exception) -> None:
    """Its own end cannot be written: let it end dead, with the reason."""
    log.error("the end of job %s cannot be written (%r); it is dead now.", run.job.id, error, exc_info=error)
    failure = Failure.because(ErrorClass.NON_RETRYABLE, f"its end could not be written: {error!r}")
    run.transition = Transition(run.job, State.DEAD, "die", failure=failure)
