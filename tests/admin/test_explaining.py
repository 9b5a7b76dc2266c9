"""Explained from what a store really holds: each story ends with why the job is not running."""

from __future__ import annotations

import pytest

from build import Clock, a_job, a_session, claim, new_id, read
from rota import Rota
from rota._core.actions import Audit
from rota._core.explanation import Cause
from rota._core.suspects import Crash
from rota.errors import JobNotFound
from rota.stores.contract import SessionStart


def causes(said) -> list[Cause]:
    return [said.cause, *(other.cause for other in said.also)]


async def worker(store, *tasks: str, **fields):
    start = SessionStart(new_id(), "web1", 311, {"general": 5}, tasks or ("mail",), **fields)
    await store.open_session(start, lease=60.0)
    return start.id


async def test_nothing_is_alive_then_a_worker_is_and_then_it_runs_and_ends(admin, shop):
    job_id = await shop.add()
    assert causes(await admin.explain(job_id)) == [Cause.NO_WORKER]

    await shop.open()
    assert causes(await admin.explain(job_id)) == [Cause.DUE]

    job = await shop.run(job_id)
    assert (await admin.explain(job_id)).why.startswith("It is running on host (process 1) since")

    await shop.finish(job)
    assert (await admin.explain(job_id)).cause is Cause.ENDED


async def test_the_filters_of_living_workers_are_looked_at(admin, shop, store, clock: Clock):
    job_id = await shop.add(queue="reports", tenant="acme")
    await worker(store, "other")
    assert causes(await admin.explain(job_id)) == [Cause.TASK_UNKNOWN]

    await worker(store, queues={"fast": ("fast",)})
    assert causes(await admin.explain(job_id)) == [Cause.QUEUE_UNSERVED]

    await worker(store, queues={"fast": ("fast",), "spare": None}, tenant="globex")
    assert causes(await admin.explain(job_id)) == [Cause.TENANT_UNSERVED]

    await worker(store, queues={"reports": ("reports",)}, tenant="acme")
    assert causes(await admin.explain(job_id)) == [Cause.DUE]

    clock.advance(61)  # all their leases are past
    assert causes(await admin.explain(job_id)) == [Cause.NO_WORKER]


async def test_who_held_a_job_is_read_from_the_audit(admin, shop):
    job_id = await shop.add()
    await admin.hold(job_id, reason="wait for legal")

    said = await admin.explain(job_id)
    assert said.cause is Cause.HELD
    assert said.why.startswith("ann@office held it at ")
    assert said.why.endswith(": wait for legal.")


async def test_the_job_that_holds_the_gate_is_named(admin, shop, store):
    first = await shop.add(gate="serial::site-7")
    await shop.run(first)
    second = await shop.add(gate="serial::site-7")
    await claim(store, shop.session)

    said = await admin.explain(second)
    assert causes(said) == [Cause.GATE]
    assert f"job {first} (mail)" in said.why


async def test_a_parked_task_keeps_its_jobs_until_it_is_released(admin, shop, store, clock: Clock):
    job_id = await shop.add()
    await shop.open()
    for _ in range(3):
        await store.note_crash(Crash("mail", "v1", new_id(), 1, "SIGSEGV"), limit=3, within=60)
    assert causes(await admin.explain(job_id)) == [Cause.TASK_PARKED]

    await store.release_task("mail", Audit("ann", "release", None, about="task:mail"))
    assert causes(await admin.explain(job_id)) == [Cause.DUE]


async def test_a_running_job_whose_worker_is_gone_is_lost(admin, shop, store, clock: Clock):
    await shop.open(lease=15.0)
    job_id = await shop.add()
    await shop.run(job_id)
    clock.advance(16)

    assert causes(await admin.explain(job_id)) == [Cause.LOST]


async def test_those_before_it_are_counted(admin, shop, store):
    await store.enqueue([a_job("mail") for _ in range(4)])
    job_id = await shop.add(priority=200)
    await shop.open()

    said = await admin.explain(job_id)
    assert causes(said) == [Cause.BEHIND]
    assert said.why.startswith("4 due jobs are before it in the queue 'default', and 5 slots")


async def test_a_job_that_is_not_there_cannot_be_explained(admin):
    with pytest.raises(JobNotFound):
        await admin.explain(new_id())


async def test_a_handle_explains_its_job(store, clock):
    app = Rota(store=store)

    @app.task
    async def mail() -> None: ...

    handle = await mail.using(delay="5m").enqueue()
    said = await handle.explain()

    assert causes(said) == [Cause.SCHEDULED, Cause.NO_WORKER]
    assert "(in 5m)" in str(said)
    assert said.job_id == handle.id == (await read(store, handle.id)).id
    await a_session(store)


def test_a_sync_handle_explains_its_job():
    app = Rota("memory://")

    @app.task
    def mail() -> None: ...

    assert mail.enqueue_sync().explain_sync().cause is Cause.NO_WORKER
