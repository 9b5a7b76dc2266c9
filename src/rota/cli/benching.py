"""The measures of `rota bench`: Rota by its public verbs, and plain SQL on the same database, in turns."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.app import Rota
from rota.stores.opening import empty_database, probe
from rota.worker import Worker

if TYPE_CHECKING:
    from rota.config import Settings

SLOTS = 100
CHUNK = 5_000
PARTS = 7
"""Measures that share the time: four of Rota, three of plain SQL that take as long."""
PAUSE = 0.02
FEWEST = 5
"""Jobs of which a pick-up is told."""


class Figure(NamedTuple):
    """One measure, beside what the server does without Rota."""

    name: str
    unit: str
    """`/s`: more is better; `s`: less is."""
    rota: float
    raw: float
    against: str

    @property
    def ratio(self) -> float | None:
        return self.rota / self.raw if self.raw else None


class Report(NamedTuple):
    """All of a run."""

    server: str
    figures: list[Figure]
    jobs: int


async def measured(url: str, settings: Settings, seconds: float, step: Callable[[int, str], Any]) -> Report:
    """Measure on an empty database; `step` is told how many of the parts are done, and what comes."""
    app = Rota(settings=settings.model_copy(update={"url": url, "listen_url": None, "schedules": False}))
    bench = Bench(app)
    each = seconds / PARTS
    figures = []
    try:
        await app.migrate()
        await bench.noop.enqueue(0.0)  # what is loaded at the first call is not measured
        with await asyncio.to_thread(probe, url) as raw:
            step(0, "insert and commit")
            plain = await asyncio.to_thread(raw.insert, each)
            step(1, "enqueue, one by one")
            one = await bench.one(each)
            figures.append(Figure("enqueue, one by one", "/s", one, plain.rate, "INSERT and commit"))
            step(2, "COPY")
            copied = await asyncio.to_thread(raw.copy, each)
            step(3, "enqueue in bulk")
            many = await bench.many(each)
            figures.append(Figure("enqueue in bulk", "/s", many, copied.rate, "COPY"))
            step(4, "take rows off")
            taken = await asyncio.to_thread(raw.take, each)
            step(5, "drain")
            drained = await bench.drain(each)
            figures.append(
                Figure(f"drain, {SLOTS} slots", "/s", drained, taken.rate, "DELETE of 100 a commit")
            )
            step(6, "pick-up")
            await asyncio.to_thread(empty_database, url)
            notices = await asyncio.to_thread(raw.notify, 50)
            picked = await bench.pick_up(each)
            figures += _picked(picked, notices)
            return Report(raw.server(), figures, bench.sent)
    finally:
        await app.close()


def _picked(picked: list[float], notices: list[float]) -> list[Figure]:
    if len(picked) < FEWEST or not notices:
        return []
    ordered = sorted(picked)
    late = ordered[min(len(ordered) - 1, round(len(ordered) * 0.95))]
    notice = statistics.median(notices)
    return [
        Figure(
            "pick-up by an idle worker, p50",
            "s",
            statistics.median(ordered),
            notice,
            "INSERT, NOTIFY and commit, p50",
        ),
        Figure("pick-up by an idle worker, p95", "s", late, notice, "INSERT, NOTIFY and commit, p50"),
    ]


class Bench:
    """An app with a task that does nothing but say when it was begun."""

    def __init__(self, app: Rota) -> None:
        self.app, self.sent = app, 1
        self.began: list[float] = []
        self.delays: list[float] = []
        self.arrived = asyncio.Event()

        @app.task(name="rota_bench_noop")
        async def noop(sent: float) -> None:
            now = time.perf_counter()
            self.began.append(now)
            if sent:
                self.delays.append(now - sent)
                self.arrived.set()

        self.noop = noop

    async def one(self, seconds: float) -> float:
        """Enqueues a second, each awaited before the next."""
        jobs, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            await self.noop.enqueue(0.0)
            jobs += 1
        self.sent += jobs
        return jobs / passed

    async def many(self, seconds: float) -> float:
        """Jobs a second by enqueue_many, thousands a call."""
        jobs, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            await self.noop.enqueue_many([(0.0,)] * CHUNK)
            jobs += CHUNK
        self.sent += jobs
        return jobs / passed

    async def drain(self, seconds: float) -> float:
        """Jobs a second that one worker in this process runs, from the first on."""
        self.began.clear()
        async with self._worker():
            end = time.perf_counter() + seconds + 5.0  # at the latest: a worker that cannot begin ends it too
            while len(self.began) < self.sent and time.perf_counter() < end:
                await asyncio.sleep(0.01)
                if self.began and time.perf_counter() - self.began[0] >= seconds:
                    break
            ran = list(self.began)
        return len(ran) / (ran[-1] - ran[0]) if len(ran) > 1 else 0.0

    async def pick_up(self, seconds: float) -> list[float]:
        """How long an idle worker takes to begin a job, from the start of the enqueue call on."""
        self.delays.clear()
        async with self._worker():
            await asyncio.sleep(min(0.5, seconds / 4))  # until it is idle
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                self.arrived.clear()
                await self.noop.enqueue(time.perf_counter())
                self.sent += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self.arrived.wait()
                await asyncio.sleep(PAUSE)
        return self.delays

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[None]:
        worker = Worker(self.app, lanes={"general": SLOTS})
        life = asyncio.create_task(worker.run())
        ready = asyncio.create_task(worker.ready())
        try:
            await asyncio.wait([ready, life], return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                life.result()
            yield
        finally:
            ready.cancel()
            worker.stop(now=True)
            await asyncio.wait([life])
