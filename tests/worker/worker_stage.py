"""A stage for workers: an app on a real store, short times, and every worker stopped when the test ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from rota.app import Rota
from rota.config import Settings
from rota.errors import StoreUnavailable
from rota.handle import Handle
from rota.stores.contract import Beat, Job, Settled
from rota.stores.memory import MemoryStore
from rota.worker import Worker

QUICK = {"lease": 2.0, "beat": 0.1, "poll": 0.05, "idle_poll": 0.2, "grace": 2.0, "stall": 1.0}


class Stage:
    """An app, and workers that run beside the test."""

    def __init__(self, store: Any, **settings: Any) -> None:
        self.store = store
        self.app = Rota(store=store, settings=Settings.load(url="memory://", **(QUICK | settings)))
        self._running: dict[Worker, asyncio.Task[int]] = {}

    async def work(self, app: Rota | None = None, **options: Any) -> Worker:
        """Start a worker; it claims when this returns."""
        worker = Worker(app or self.app, **({"lanes": {"general": 5}} | options))
        task = asyncio.create_task(worker.run())
        self._running[worker] = task
        ready = asyncio.create_task(worker.ready())
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if task.done():
            task.result()
        return worker

    async def stop(self, worker: Worker, *, now: bool = False) -> int:
        """Stop a worker, and wait until it has: its exit code."""
        worker.stop(now=now)
        return await self._running.pop(worker)

    async def gone(self, worker: Worker, within: float = 10.0) -> int:
        """Wait until a worker has ended by itself: its exit code."""
        async with asyncio.timeout(within):
            return await self._running.pop(worker)

    async def crash(self, worker: Worker) -> None:
        """Let a worker disappear as a killed process does: no hand-back, no goodbye to its session."""
        worker.desk.session = None
        worker.desk.held.clear()
        worker.desk.outbox.clear()
        task = self._running.pop(worker)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def job(self, handle: Handle[Any] | UUID) -> Job:
        [job] = await self.store.get([handle if isinstance(handle, UUID) else handle.id])
        return job

    async def ended(self, handle: Handle[Any] | UUID, within: float = 5.0) -> Job:
        """The job, once it is terminal."""
        return await self.seen(handle, lambda job: job.state.terminal, within)

    async def seen(
        self, handle: Handle[Any] | UUID, as_told: Callable[[Job], bool], within: float = 5.0
    ) -> Job:
        """The job, once it is as told."""
        await until(lambda: self._is(handle, as_told), within)
        return await self.job(handle)

    async def _is(self, handle: Handle[Any] | UUID, as_told: Callable[[Job], bool]) -> bool:
        return as_told(await self.job(handle))

    async def close(self) -> None:
        for worker in list(self._running):
            if not self._running[worker].done():
                await self.stop(worker, now=True)


async def until(true: Callable[[], Any], within: float = 5.0) -> None:
    """Wait until something is true; it is an error if it does not become so."""
    async with asyncio.timeout(within):
        while True:
            found = true()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.005)


class FaultyStore(MemoryStore):
    """A memory store whose line can be cut, before a call is heard or after it was done."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.down = False
        self.refused: set[str] = set()
        """Verbs that do not get through."""
        self.deaf_to: set[str] = set()
        """Verbs that are done, but whose answer is lost."""
        self.calls: list[str] = []

    async def _through(self, verb: str, call: Any) -> Any:
        self.calls.append(verb)
        if self.down or verb in self.refused:
            call.close()
            raise StoreUnavailable("the line is cut")
        answer = await call
        if verb in self.deaf_to:
            raise StoreUnavailable(f"the answer to {verb} was lost")
        return answer

    async def open(self) -> None:
        await self._through("open", super().open())

    async def claim(self, *given: Any, **options: Any) -> list[Job]:
        return await self._through("claim", super().claim(*given, **options))

    async def settle(self, *given: Any, **options: Any) -> list[Settled]:
        return await self._through("settle", super().settle(*given, **options))

    async def exchange(self, *given: Any, **options: Any) -> tuple[list[Settled], list[Job]]:
        return await self._through("exchange", super().exchange(*given, **options))

    async def beat(self, *given: Any, **options: Any) -> Beat:
        return await self._through("beat", super().beat(*given, **options))

    async def open_session(self, *given: Any, **options: Any) -> None:
        await self._through("open_session", super().open_session(*given, **options))

    async def next_due(self, *given: Any, **options: Any) -> float | None:
        return await self._through("next_due", super().next_due(*given, **options))

    async def end_expired(self) -> float | None:
        return await self._through("end_expired", super().end_expired())

    async def lost(self, **options: Any) -> list[Job]:
        return await self._through("lost", super().lost(**options))

    async def tidy(self, *given: Any) -> Any:
        return await self._through("tidy", super().tidy(*given))

    async def unpark(self) -> int:
        return await self._through("unpark", super().unpark())

    async def roster(self, *given: Any) -> Any:
        return await self._through("roster", super().roster(*given))

    async def fire(self, *given: Any) -> Any:
        return await self._through("fire", super().fire(*given))

    async def end_session(self, *given: Any) -> None:
        await self._through("end_session", super().end_session(*given))
