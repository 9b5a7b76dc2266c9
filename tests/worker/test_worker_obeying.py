"""Orders from afar to a worker inside a program: it ends by itself, as after `stop()`."""

from __future__ import annotations

import asyncio

import pytest
from worker_stage import Stage, until

from rota._core.actions import Audit
from rota._core.job import State
from rota._core.worker_order import OrderVerb
from rota.stores.contract import SessionRecord
from rota.stores.memory import MemoryStore

DRAIN, STOP = OrderVerb.DRAIN, OrderVerb.STOP


async def session_of(stage: Stage) -> SessionRecord:
    """The only living session, once it is there."""
    alive: list[SessionRecord] = []

    async def found() -> bool:
        alive[:] = [one for one in await stage.store.sessions() if one.ended_at is None]
        return len(alive) == 1

    await until(found)
    return alive[0]


async def order(stage: Stage, verb: OrderVerb) -> None:
    session = await session_of(stage)
    assert await stage.store.order_worker(session.id, verb, Audit("ann", verb.value, None))


async def test_a_worker_that_is_drained_finishes_what_runs_takes_nothing_new_and_ends(stage):
    begun: list[int] = []
    finish = asyncio.Event()

    @stage.app.task
    async def work(n: int) -> None:
        begun.append(n)
        await finish.wait()

    worker = await stage.work(lanes={"general": 1})
    running = await work.enqueue(1)
    await until(lambda: begun == [1])
    await order(stage, DRAIN)
    await until(lambda: worker.stopping)
    later = await work.enqueue(2)
    finish.set()

    assert await stage.gone(worker) == 0
    assert (await stage.job(running)).state is State.COMPLETED
    assert ((await stage.job(later)).state, begun) == (State.PENDING, [1])
    assert (await stage.store.sessions())[0].ended_at is not None


async def test_a_drained_worker_waits_for_its_jobs_longer_than_the_grace():
    stage = Stage(MemoryStore(), grace=0.05)

    @stage.app.task
    async def long() -> str:
        await asyncio.sleep(0.6)
        return "finished"

    worker = await stage.work()
    handle = await long.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    await order(stage, DRAIN)

    assert await stage.gone(worker) == 0
    assert (await stage.job(handle)).result == "finished"


@pytest.mark.parametrize("before", [None, DRAIN])
async def test_a_worker_that_is_stopped_hands_back_what_does_not_end_within_the_grace(before):
    stage = Stage(MemoryStore(), grace=0.1)

    @stage.app.task
    async def endless() -> None:
        await asyncio.sleep(3600)

    worker = await stage.work()
    handle = await endless.enqueue()
    await stage.seen(handle, lambda job: job.state is State.RUNNING)
    if before is not None:
        await order(stage, before)
        await until(lambda: worker.stopping)
    await order(stage, STOP)

    assert await stage.gone(worker) == 1
    job = await stage.job(handle)
    assert (job.state, job.attempt) == (State.PENDING, 0)


async def test_an_order_is_acted_on_once_however_many_beats_tell_of_it(in_memory):
    heard: list[OrderVerb] = []
    finish = asyncio.Event()

    @in_memory.app.task
    async def work() -> None:
        await finish.wait()

    worker = await in_memory.work()
    worker.on_order = heard.append
    handle = await work.enqueue()
    await in_memory.seen(handle, lambda job: job.state is State.RUNNING)
    await order(in_memory, DRAIN)
    await until(lambda: heard)
    lease = (await session_of(in_memory)).lease_until

    async def beaten_twice() -> bool:
        return ((await session_of(in_memory)).lease_until - lease).total_seconds() > 0.2

    await until(beaten_twice)
    finish.set()
    assert await in_memory.gone(worker) == 0
    assert heard == [DRAIN]


async def test_a_worker_says_that_it_hears_orders_and_how_much_memory_its_process_uses(stage):
    await stage.work()

    session = await session_of(stage)
    assert session.hears
    assert session.memory is not None
    assert session.memory > 5_000_000


async def test_memory_is_told_again_with_later_beats(in_memory, monkeypatch):
    await in_memory.work()
    await session_of(in_memory)
    monkeypatch.setattr("rota.worker.heart.memory_used", lambda: 987_654_321)

    async def told() -> bool:
        return (await session_of(in_memory)).memory == 987_654_321

    await until(told)


async def test_memory_that_the_system_does_not_tell_stays_unknown(in_memory, monkeypatch):
    for module in ("heart", "session"):
        monkeypatch.setattr(f"rota.worker.{module}.memory_used", lambda: None)
    await in_memory.work()

    assert (await session_of(in_memory)).memory is None
