"""The exchange: one round trip that writes what has ended and fetches what comes next. A worker has two of them."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from rota._core.job import Job
from rota.stores.contract import Settled, Store
from rota.worker.desk import Desk, Order
from rota.worker.execution import Run
from rota.worker.runner import Runner
from rota.worker.service import Service


class Exchanger(Service):
    """Flushes as soon as it is free; what ends meanwhile is the next batch."""

    longest_pause = 2.0

    def __init__(self, store: Store, desk: Desk, runner: Runner, number: int) -> None:
        super().__init__()
        self.name = f"exchange {number}"
        self.store, self.desk, self.runner = store, desk, runner

    async def step(self) -> None:
        order = self.desk.next_order()
        if order is None:
            await self.desk.wait()
            return
        began = monotonic()
        settled, jobs = await self._round_trip(order, began)
        arrived = monotonic()
        if self.desk.answered(order, settled, len(jobs), now=arrived, took=arrived - began) and jobs:
            lane = order.lane
            for job in jobs:
                if job.gate is not None or job.parent_id is not None:
                    self.desk.notice(job)
            runs = [Run(job, lane, arrived) for job in jobs]
            self.desk.held.update(runs)
            self.runner.start(runs)

    async def _round_trip(self, order: Order, began: float) -> tuple[Sequence[Settled], Sequence[Job]]:
        transitions = [run.transition for run in order.batch if run.transition is not None]
        self.desk.flights[self.name] = began
        try:
            if order.lane is None:
                return await self.store.settle(transitions), ()
            wanted = self.desk.wanted(order)
            if not transitions:
                return (), await self.store.claim(wanted, session=order.session.id)
            return await self.store.exchange(transitions, wanted, session=order.session.id)
        except BaseException as error:
            self.desk.failed(order, error)
            raise
        finally:
            del self.desk.flights[self.name]
