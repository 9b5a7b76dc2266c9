"""A task that was renamed while its jobs wait: they wait on, unharmed and in sight, until somebody knows them again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from build import a_job, a_session, claim, completed
from rota import Rota, State
from rota.admin.service import Admin
from rota.config import Settings
from rota.stores.contract import JobFilter, Wanted
from rota.worker import Worker

QUICK = {"lease": 5.0, "beat": 0.2, "poll": 0.05, "idle_poll": 0.1}


@asynccontextmanager
async def working(app: Rota):
    worker = Worker(app, lanes={"general": 5})
    running = asyncio.create_task(worker.run())
    await worker.ready()
    yield
    worker.stop()
    await running


async def test_a_claim_for_the_new_name_leaves_the_old_jobs_to_those_who_know_them(store):
    old, new = a_job("send_mail"), a_job("send_email")
    await store.enqueue([old, new])
    session = await a_session(store)

    assert [job.id for job in await claim(store, session, Wanted(10, tasks=("send_email",)))] == [new.id]
    [waiting] = await store.find(JobFilter(states=(State.PENDING,), task="send_mail"))
    assert (waiting.id, waiting.version, waiting.attempt) == (old.id, 1, 0)
    [job] = await claim(store, session, Wanted(10, tasks=("send_mail", "send_email")))
    assert (await store.settle([completed(job)]))[0].state is State.COMPLETED


async def test_a_worker_with_the_new_name_leaves_them_and_the_doctor_lists_them(store):
    old_jobs = [a_job("send_mail", {"to": f"{number}"}) for number in range(3)]
    await store.enqueue(old_jobs)
    app = Rota(store=store, settings=Settings.load(url="memory://", **QUICK))
    sent = []

    @app.task
    async def send_email(to: str) -> None:
        sent.append(to)

    async with working(app):
        await (await send_email.enqueue("new"))
        jobs = await store.get([job.id for job in old_jobs])
        unserved = await Admin(store, actor="ada").unserved()

    assert {(job.state, job.attempt, job.error_class) for job in jobs} == {(State.PENDING, 0, None)}
    assert unserved == {"send_mail": 3}
    assert sent == ["new"]

    restored = Rota(store=store, settings=app.settings)

    @restored.task(name="send_mail")
    async def under_its_old_name(to: str) -> None:
        sent.append(to)

    async with working(restored), asyncio.timeout(10):
        while await store.find(JobFilter(states=(State.PENDING, State.RUNNING))):
            await asyncio.sleep(0.02)

    assert sorted(sent) == ["0", "1", "2", "new"]
