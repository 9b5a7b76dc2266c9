"""A worker says what it serves, so that people can be told why a job waits."""

from __future__ import annotations

from worker_stage import until

from rota import Queue
from rota._core.explanation import Cause


async def test_a_worker_says_which_queues_its_lanes_serve_and_which_tasks_and_tenant(stage):
    @stage.app.task
    async def mail() -> None: ...

    @stage.app.task
    async def report() -> None: ...

    await stage.work(lanes={"fast": 3, "big": "2:reports,exports"}, tasks=["mail"], tenant="acme")

    await until(stage.store.sessions)
    [session] = await stage.store.sessions()
    assert session.queues == {"fast": ("fast",), "big": ("reports", "exports")}
    assert (session.tasks, session.tenant) == (("mail",), "acme")


async def test_a_job_that_a_real_worker_leaves_aside_is_explained_by_its_options(stage):
    @stage.app.task(queue="mail")
    async def mail() -> None: ...

    await stage.work(lanes={"fast": 1})
    await until(stage.store.sessions)
    handle = await mail.enqueue()
    said = await handle.explain()

    assert said.cause is Cause.QUEUE_UNSERVED
    assert "they serve fast" in said.why


async def test_what_an_app_expects_of_its_queues_is_made_known(stage):
    stage.app.queues["mail"] = Queue("mail", target="30s")
    await stage.work()

    assert await stage.store.queues() == [Queue("mail", target=30.0)]
