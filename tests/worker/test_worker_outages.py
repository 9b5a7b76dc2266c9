"""A worker never exits because of the store, and loses nothing over it."""

from __future__ import annotations

import asyncio

import pytest
from worker_stage import Stage, until

from rota._core.job import State
from rota.errors import SchemaOutdated, StoreUnavailable
from rota.stores.memory import MemoryStore
from rota.worker.service import Service


async def test_a_worker_waits_for_a_store_that_is_not_there_yet(faulty, caplog):
    @faulty.app.task
    async def work() -> str:
        return "done"

    handle = await work.enqueue()
    faulty.store.down = True
    starting = asyncio.create_task(faulty.work())
    await asyncio.sleep(0.2)
    assert not starting.done()

    faulty.store.down = False
    await starting
    assert await handle == "done"
    assert "start: the store cannot be reached (the line is cut). Trying on; nothing is lost." in caplog.text


async def test_a_worker_can_be_stopped_while_it_waits_for_its_store(faulty):
    from rota.worker import Worker

    faulty.store.down = True
    worker = Worker(faulty.app, lanes={"general": 1})
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0.05)
    worker.stop()

    assert await running == 0


async def test_a_store_of_another_age_is_a_clear_error_not_a_wait(stage):
    class Old(MemoryStore):
        async def open(self) -> None:
            raise SchemaOutdated(1, 2)

    with pytest.raises(SchemaOutdated, match="Run `rota migrate`"):
        await Stage(Old()).work()


async def test_jobs_go_on_over_a_short_outage_and_nothing_is_lost_or_done_twice(faulty):
    runs: list[int] = []

    @faulty.app.task
    async def work(n: int) -> None:
        await asyncio.sleep(0.002)
        runs.append(n)

    handles = await work.enqueue_many(range(60))
    worker = await faulty.work(lanes={"general": 10})
    await until(lambda: runs)
    for _ in range(3):
        await asyncio.sleep(0.02)
        faulty.store.down = True
        await asyncio.sleep(0.1)
        faulty.store.down = False
    for handle in handles:
        await faulty.ended(handle)

    await until(lambda: not worker.desk.held)

    assert sorted(runs) == list(range(60))
    assert worker.desk.fenced == 0


async def test_an_outage_is_said_once_and_calmly(faulty, caplog):
    worker = await faulty.work()
    await until(lambda: worker.desk.session)
    faulty.store.down = True
    faulty.store.calls.clear()
    await until(lambda: faulty.store.calls.count("beat") > 4)

    said = [record for record in caplog.records if record.getMessage().startswith("heartbeat:")]
    assert [(record.levelname, record.exc_info) for record in said] == [("WARNING", None)]


class Trouble(Service):
    """A service that fails as told."""

    name = "trouble"

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.done = asyncio.Event()

    async def step(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.done.set()
        await asyncio.sleep(3600)


async def test_a_service_goes_on_after_any_error(caplog):
    service = Trouble(StoreUnavailable("gone"), ValueError("a bug"), ValueError("a bug"))
    running = asyncio.create_task(service.run())
    await asyncio.wait_for(service.done.wait(), 5)
    running.cancel()

    assert caplog.text.count("trouble: the store cannot be reached (gone). Trying on; nothing is lost.") == 1
    assert caplog.text.count("trouble: a round failed (ValueError: a bug). Trying on.") == 1


def test_the_pause_after_errors_grows_with_jitter_up_to_ten_seconds():
    service = Service()
    pauses = [service.trouble(StoreUnavailable("gone")) for _ in range(12)]

    for number, pause in enumerate(pauses):
        longest = min(10.0, 0.1 * 2**number)
        assert longest / 2 <= pause <= longest


async def test_a_settle_that_failed_is_not_lost_behind_others(faulty):
    @faulty.app.task
    async def work() -> None: ...

    await faulty.work(lanes={"general": 3})
    faulty.store.refused = {"settle", "exchange"}
    handles = [await work.enqueue() for _ in range(3)]
    await until(lambda: "exchange" in faulty.store.calls or "settle" in faulty.store.calls)
    faulty.store.refused = set()

    assert {(await faulty.ended(handle)).state for handle in handles} == {State.COMPLETED}
