"""An app of two tasks with its pages served, a store to look behind them, and a worker when one is wanted."""

from __future__ import annotations

import asyncio

from rota import Retry, Rota
from rota._core.ids import public_id
from rota._core.job import State
from rota.admin import Admin
from rota.stores.postgres import PostgresStore
from rota.worker import Worker


def small_app(url: str) -> Rota:
    """An app of a few tasks, one of which fails until somebody mends the world."""
    app = Rota(url)

    @app.task(queue="mail")
    async def send(to: str, copies: int = 1) -> str:
        return f"sent to {to}"

    @app.task(queue="feeds", retry=Retry(attempts=1))
    async def read_feed(url: str) -> str:
        if "broken" in url:
            raise ValueError(f"{url} is not a feed")
        return "read"

    return app


class Stage:
    """An app with its pages served, a store to look behind them, and a worker when one is wanted."""

    def __init__(self, url: str, server) -> None:
        self.app, self.server = small_app(url), server
        self.store = PostgresStore(url)
        self.admin = Admin(self.store, actor="stage")
        self._working: list[tuple[Worker, asyncio.Task]] = []

    async def work(self) -> tuple[Worker, asyncio.Task]:
        """Let a worker run what is due, from now on; it, and what ends when it does."""
        worker = Worker(self.app)
        task = asyncio.create_task(worker.run())
        await worker.ready()
        self._working.append((worker, task))
        return worker, task

    async def add(self, task: str = "send", *values, **options):
        return (await self.app.tasks[task].using(**options).enqueue(*values or ("ann",))).id

    async def dead(self, count: int = 1, **options) -> list:
        """Jobs that failed for good, run by a real worker."""
        ids = [await self.add("read_feed", f"https://broken.example/{n}", **options) for n in range(count)]
        await self.work()
        await self.until(*ids, state=State.DEAD)
        await self.rest()
        return ids

    async def until(self, *ids, state: State) -> None:
        async with asyncio.timeout(20):
            while not all(job.state is state for job in await self.store.get(list(ids))):
                await asyncio.sleep(0.05)

    async def states(self, words: str) -> set[str]:
        which = await self.admin.filter(words, limit=1000)
        return {job.state.value for job in await self.admin.list(which)}

    async def rest(self) -> None:
        for worker, task in self._working:
            worker.stop(now=True)
            await task
        self._working.clear()

    async def close(self) -> None:
        await self.rest()
        await self.app.close()
        await self.store.close()


def place(job_id) -> str:
    """The address of a job's page."""
    return f"/jobs/{public_id(job_id)}"
