"""What a worker counts of its jobs, and tells the store now and then."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from worker_stage import until

from build import claim
from rota import Cancel, Retry, Snooze
from rota._core.job import State
from rota._core.numbers import Ending
from rota.worker import tally
from rota.worker.chores import reporter
from rota.worker.tally import ending_of


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(reporter, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(reporter, "TELL_EVERY", 0.05)


async def counted(stage) -> dict[tuple[str, str, str], int]:
    return {total[:3]: total.jobs for total in (await stage.store.figures(300.0)).totals}


@pytest.mark.req("L31", "L5")
async def test_every_end_is_counted_by_queue_task_and_how_it_ended(stage):
    @stage.app.task(queue="mail")
    async def send(number: int) -> None: ...

    @stage.app.task(retry=Retry(attempts=2, base=0.01))
    async def broken() -> None:
        raise ValueError("no")

    @stage.app.task
    async def unwanted() -> None:
        raise Cancel("not any more")

    await stage.work()
    handles = [await send.using(tenant="acme").enqueue(number) for number in range(20)]
    handles += [await broken.enqueue(), await unwanted.enqueue()]
    for handle in handles:
        await stage.ended(handle)

    wanted = {
        ("mail", "send", "completed"): 20,
        ("default", "broken", "failed"): 1,
        ("default", "broken", "dead"): 1,
        ("default", "unwanted", "cancelled"): 1,
    }
    await until(lambda: _equal(counted(stage), wanted))
    figures = await stage.store.figures(300.0)
    assert sum(figures.by_task()["send"].runs.values()) == 20
    assert sum(figures.by_task()["send"].waits.values()) == 20
    assert {(total.tenant, total.jobs, total.faults) for total in figures.tenants} == {
        ("acme", 20, 0),
        ("", 3, 2),
    }


async def _equal(found, wanted) -> bool:
    return await found == wanted


async def test_nobody_waits_before_the_job_is_there(stage):
    @stage.app.task
    async def greet() -> None: ...

    await stage.work()
    await stage.ended(await greet.using(at=datetime(2020, 1, 1, tzinfo=UTC)).enqueue())
    await until(lambda: _equal(counted(stage), {("default", "greet", "completed"): 1}))

    assert (await stage.store.figures(300.0)).whole().wait(0.95) < 60


async def test_a_snooze_is_no_verdict_and_its_wait_and_run_are_counted(stage):
    asked = []

    @stage.app.task
    async def patient() -> None:
        asked.append(1)
        if len(asked) < 3:
            raise Snooze("10ms")

    await stage.work()
    await stage.ended(await patient.enqueue())

    await until(
        lambda: _equal(
            counted(stage), {("default", "patient", "snoozed"): 2, ("default", "patient", "completed"): 1}
        )
    )
    assert (await stage.store.figures(300.0)).whole().error_rate == 0.0


async def test_how_long_jobs_run_is_measured(stage):
    @stage.app.task
    async def slow() -> None:
        await asyncio.sleep(0.1)

    await stage.work()
    await stage.ended(await slow.enqueue())
    await until(lambda: _equal(counted(stage), {("default", "slow", "completed"): 1}))

    [total] = (await stage.store.figures(300.0)).totals
    assert 0.09 < total.run_sum < 2.0
    assert 0.08 < (await stage.store.figures(300.0)).whole().run(0.5) < 2.0


async def test_what_was_counted_last_is_told_at_the_end(stage, monkeypatch):
    monkeypatch.setattr(reporter, "TELL_EVERY", 1e6)

    @stage.app.task
    async def quick() -> None: ...

    worker = await stage.work()
    await stage.ended(await quick.enqueue())
    await stage.stop(worker)

    assert await counted(stage) == {("default", "quick", "completed"): 1}


@pytest.mark.req("L31")
async def test_how_full_the_lanes_are_is_looked_at(stage):
    begun, done = asyncio.Event(), asyncio.Event()

    @stage.app.task(queue="fast")
    async def wait() -> None:
        begun.set()
        await done.wait()

    worker = await stage.work(lanes={"fast": 1, "other": 3})
    handle = await wait.enqueue()
    await begun.wait()
    pages = worker.desk.tally._pages
    await until(lambda: sum(page.lanes["fast"][1] for page in list(pages.values()) if page.lanes) >= 3)
    done.set()
    await stage.ended(handle)
    await stage.stop(worker)

    used = {lane.lane: lane.used for lane in (await stage.store.figures(300.0)).lanes}
    assert used["other"] == 0.0
    assert used["fast"] is not None
    assert used["fast"] > 0.0


async def test_an_end_that_was_not_written_is_not_counted(in_memory):
    @in_memory.app.task
    async def quick() -> None: ...

    worker = await in_memory.work()
    await in_memory.ended(await quick.enqueue())
    before = worker.desk.tally.unwritten(await in_memory.store.now())
    worker.desk._examine([], [])

    assert worker.desk.tally.unwritten(await in_memory.store.now()) == before


async def test_a_store_that_could_not_be_told_is_told_again(faulty):
    @faulty.app.task
    async def quick() -> None: ...

    worker = await faulty.work()
    await faulty.ended(await quick.enqueue())
    told = worker._reporter

    async def refuse(*_given):
        raise ConnectionError("the line is cut")

    right, faulty.store.note_minutes = faulty.store.note_minutes, refuse
    worker.desk.tally._page(await faulty.store.now()).ends += 1  # there is something to tell
    with pytest.raises(ConnectionError):
        await told.tell()
    faulty.store.note_minutes = right
    await told.tell()

    assert await counted(faulty) == {("default", "quick", "completed"): 1}


async def test_too_many_tenants_of_a_minute_are_counted_together(in_memory, monkeypatch):
    monkeypatch.setattr(tally, "TENANTS", 3)

    @in_memory.app.task
    async def quick() -> None: ...

    await in_memory.work()
    for number in range(6):
        await in_memory.ended(await quick.using(tenant=f"t{number}").enqueue())
    await until(lambda: _equal(counted(in_memory), {("default", "quick", "completed"): 6}))

    tenants = {total.tenant: total.jobs for total in (await in_memory.store.figures(300.0)).tenants}
    assert tenants == {"t0": 1, "t1": 1, "t2": 1, "(others)": 3}


def test_what_was_handed_back_is_no_attempt():
    assert ending_of("hand back", State.PENDING) is None
    assert ending_of("park", State.PENDING) is None
    assert ending_of("suspect", State.PENDING) is Ending.FAILED
    assert ending_of("complete", State.PARTIAL) is Ending.PARTIAL


async def test_an_attempt_that_was_lost_with_its_worker_is_counted_by_who_rescues_it(stage):
    @stage.app.task
    async def quick() -> None: ...

    await stage.app.open()
    handle = await quick.using(tenant="acme").enqueue()
    [job] = await claim(stage.store)
    await stage.store.end_session(job.session_id)
    await stage.work()
    await stage.ended(handle)

    wanted = {("default", "quick", "failed"): 1, ("default", "quick", "completed"): 1}
    await until(lambda: _equal(counted(stage), wanted))
    [tenant] = (await stage.store.figures(300.0)).tenants
    assert (tenant.tenant, tenant.jobs, tenant.faults) == ("acme", 2, 1)
