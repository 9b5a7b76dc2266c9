"""An app on each store in turn, and the smallest thing that runs its jobs."""

from __future__ import annotations

import inspect

import pytest

from build import ANY, a_session
from rota import Rota
from rota._core.job import Job
from rota._core.outcome import Returned, decide
from rota.current import RunningJob, running
from rota.stores.contract import Store
from rota.stores.memory import MemoryStore

CONFIGURED = ("ROTA_URL", "ROTA_ENV", "DATABASE_URL", "PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch, tmp_path):
    """No setting of the machine reaches a test, and files land in a directory of its own."""
    for name in CONFIGURED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def app(store: Store) -> Rota:
    """An app on each store in turn."""
    return Rota(store=store)


@pytest.fixture
def memory_app() -> Rota:
    """An app for what no store has a part in."""
    return Rota(store=MemoryStore())


@pytest.fixture
def work():
    """Run what is due, once, and settle it: a worker's walk without the worker."""

    async def run(app: Rota) -> list[Job]:
        session = await a_session(app.store)
        jobs = await app.store.claim(ANY, session=session)
        for job in jobs:
            task = app.tasks[job.task]
            args, kwargs = task.arguments(job.payload_json)
            token = running.set(RunningJob(job))
            try:
                value = task.fn(*args, **kwargs)
                value = await value if inspect.isawaitable(value) else value
            finally:
                running.reset(token)
            moment = await app.store.now()
            await app.store.settle(
                [decide(job, Returned(task.dump_result(value)), retry=task.retry, now=moment)]
            )
        return jobs

    return run
