"""One producer process: enqueues as it was told and keeps a journal. `python -m chaos.producer '{"mode": …}'`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from chaos.journal import Journal
from chaos.orders import Order
from chaos.tasks import app, flaky, in_line, threaded, work
from rota import RotaError


class Producer:
    def __init__(self, order: Order, journal: Journal) -> None:
        self._order, self._journal = order, journal
        self._dice = random.Random(f"{order.seed}/{order.name}")

    async def run(self) -> None:
        order = self._order
        numbers = range(order.count)
        size = 1 if order.mode == "single" else order.batch
        for start in range(0, order.count, size):
            keys = [f"{order.name}-{number}" for number in numbers[start : start + size]]
            self._journal.intend(keys)
            await getattr(self, f"_{order.mode}")(keys)
            await asyncio.sleep(order.pause * self._dice.uniform(0.5, 1.5))

    async def _single(self, keys: list[str]) -> None:
        for key in keys:
            await self._once(key, self._enqueue(key))

    async def _together(self, keys: list[str]) -> None:
        """All at once: they travel in one statement."""
        await asyncio.gather(*(self._once(key, self._enqueue(key)) for key in keys))

    async def _bulk(self, keys: list[str]) -> None:
        try:
            handles = await self._terms(work).enqueue_many([{"key": key, "ms": self._ms()} for key in keys])
        except RotaError as error:
            self._journal.refuse(keys, error)
        else:
            self._journal.ack({key: str(handle.id) for key, handle in zip(keys, handles, strict=True)})

    async def _newcomers(self, keys: list[str]) -> None:
        from chaos.tasks import newcomer

        await asyncio.gather(*(self._once(key, newcomer.enqueue(key, self._ms())) for key in keys))

    async def _delayed(self, keys: list[str]) -> None:
        await asyncio.gather(
            *(self._once(key, work.using(delay=1.5).enqueue(key, self._ms())) for key in keys)
        )

    async def _keyed(self, keys: list[str]) -> None:
        """With an idempotency key an enqueue may be repeated until it is acknowledged."""
        pads = {key: self._dice.randbytes(self._order.pad // 2).hex() for key in keys}
        await asyncio.gather(*(self._until_acked(key, self._ms(), pads[key]) for key in keys))

    async def _until_acked(self, key: str, ms: int, pad: str) -> None:
        give_up = time.monotonic() + self._order.patience
        while not await self._once(key, work.using(key=key, **self._whose).enqueue(key, ms, pad)):
            if time.monotonic() > give_up:
                raise TimeoutError(f"{key} was not acknowledged in {self._order.patience:g} s")
            await asyncio.sleep(0.05)

    async def _once(self, key: str, enqueueing: Awaitable[Any]) -> bool:
        try:
            handle = await enqueueing
        except RotaError as error:
            self._journal.refuse([key], error)
            return False
        self._journal.ack({key: str(handle.id)})
        return True

    def _enqueue(self, key: str) -> Awaitable[Any]:
        ms = self._ms()
        match self._dice.random() if self._order.mix else 1.0:
            case chance if chance < 0.1:
                return self._terms(threaded).enqueue(key, ms)
            case chance if chance < 0.2:
                return self._terms(flaky).enqueue(key, ms)
            case chance if chance < 0.3:
                return self._terms(in_line).enqueue(key, ms, group=f"group-{self._dice.randrange(4)}")
            case _:
                return self._terms(work).enqueue(key, ms)

    @property
    def _whose(self) -> dict[str, str]:
        return {} if self._order.tenant is None else {"tenant": self._order.tenant}

    def _terms(self, task: Any) -> Any:
        """The task, for the tenant that this producer works for."""
        return task.using(**self._whose) if self._whose else task

    def _ms(self) -> int:
        return round(self._order.ms * self._dice.uniform(0.5, 1.5))


async def main(order: Order) -> None:
    journal = Journal(Path(os.environ["CHAOS_JOURNAL"]))
    try:
        await Producer(order, journal).run()
    finally:
        await app.close()
        journal.close()


if __name__ == "__main__":
    asyncio.run(main(Order(**json.loads(sys.argv[1]))))
