"""The admin service on each store in turn, and a worker's hands for the stories."""

from __future__ import annotations

from uuid import UUID

import pytest

from build import ANY, Clock, a_job, claim, completed, failed, new_id
from rota._core.failure import ErrorClass
from rota._core.job import Job
from rota.admin import Admin
from rota.stores.contract import SessionStart, Store


class Shop:
    """Jobs come, run and end here: the stories of the tests in one word each."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.session: UUID | None = None

    async def add(self, task: str = "mail", **fields: object) -> UUID:
        job = a_job(task, **fields)
        await self.store.enqueue([job])
        return job.id

    async def open(self, *tasks: str, lease: float = 1e6) -> UUID:
        self.session = new_id()
        start = SessionStart(self.session, "host", 1, {"general": 5}, tasks or ("mail",))
        await self.store.open_session(start, lease=lease)
        return self.session

    async def run(self, job_id: UUID) -> Job:
        """A worker claims the job."""
        session = self.session or await self.open()
        claimed = await claim(self.store, session, ANY)
        return next(job for job in claimed if job.id == job_id)

    async def finish(self, job: Job) -> None:
        await self.store.settle([completed(job, 1)])

    async def dead(self, task: str = "mail", **fields: object) -> UUID:
        job_id = await self.add(task, **fields)
        job = await self.run(job_id)
        await self.store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such address", now=self.clock())])
        return job_id


@pytest.fixture
def shop(store: Store, clock: Clock) -> Shop:
    return Shop(store, clock)


@pytest.fixture
def admin(store: Store) -> Admin:
    return Admin(store, actor="ann@office")
