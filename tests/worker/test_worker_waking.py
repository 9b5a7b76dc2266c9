"""How a worker hears of work: hints at once, polls for what hints missed, and little noise while idle."""

from __future__ import annotations

import asyncio
import time

import pytest
from worker_stage import FaultyStore, Stage, until

from build import new_id
from rota._core.job import State
from rota.stores.contract import DeafHint, ResyncHint, WorkHint
from rota.stores.memory import MemoryStore
from rota.worker.desk import Desk
from rota.worker.lanes import Lane, LaneSpec
from rota.worker.listener import Listener
from rota.worker.poller import Poller
from rota.worker.session import Session


class Unheard(FaultyStore):
    """A store without wake-ups."""

    listen = property()  # type: ignore[assignment]


class HalfOpen(FaultyStore):
    """A store whose wake-ups began well and never come."""

    async def listen(self, on_hint):
        on_hint(ResyncHint())
        await asyncio.Event().wait()


@pytest.fixture
async def seldom():
    """A stage whose workers poll once a minute: what starts soon was not found by a poll."""
    stage = Stage(FaultyStore(), poll=60.0, idle_poll=60.0)
    yield stage
    await stage.close()


async def an_idle_worker(stage, **options):
    worker = await stage.work(**options)
    await until(lambda: worker.desk.session and all(lane.dry for lane in worker.desk.lanes))
    await asyncio.sleep(0.6)
    return worker


async def test_an_idle_worker_starts_a_new_job_at_once(seldom):
    started: list[float] = []

    @seldom.app.task
    async def work() -> None:
        started.append(time.monotonic())

    await an_idle_worker(seldom)
    began = time.monotonic()
    await seldom.ended(await work.enqueue())

    assert started[0] - began < 0.05


async def test_a_scheduled_job_starts_when_it_is_due(seldom):
    started: list[float] = []

    @seldom.app.task
    async def work() -> None:
        started.append(time.monotonic())

    await an_idle_worker(seldom)
    began = time.monotonic()
    await seldom.ended(await work.using(delay=0.6).enqueue())

    assert 0.6 <= started[0] - began < 0.75


async def test_a_hint_of_a_scheduled_job_makes_an_idle_worker_ask_when_it_is_due(seldom):
    @seldom.app.task
    async def work() -> None: ...

    desk = Desk([Lane(LaneSpec("general", 5, None))], {})
    [lane] = desk.lanes
    listener = Listener(seldom.store, desk, lambda job_id: None)
    poller = Poller(seldom.store, desk, listener, poll=60.0, idle_poll=60.0)
    poller._pause = 60.0  # nothing has come for long
    polling = asyncio.create_task(poller.run())
    await work.using(delay=0.5).enqueue()
    listener.on_hint(WorkHint("default", 100))
    lane.dry = True
    began = time.monotonic()
    await until(lambda: not lane.dry)
    polling.cancel()

    assert time.monotonic() - began < 1.0


async def test_a_full_answer_calls_the_other_exchange_to_fetch_while_these_run():
    desk = Desk([Lane(LaneSpec("general", 100, None))], {})
    desk.session = Session(new_id(), 15.0, time.monotonic())
    order = desk.next_order()
    assert desk.next_order() is None, "one claim decides whether there is work at all"
    other = asyncio.create_task(desk.wait())
    await asyncio.sleep(0)
    desk.answered(order, (), order.asked)
    await asyncio.wait_for(other, 1)

    assert desk.next_order().asked == 50


async def test_what_was_claimed_under_a_session_that_ended_meanwhile_is_not_taken_in():
    desk = Desk([Lane(LaneSpec("general", 10, None))], {})
    desk.session = Session(new_id(), 15.0, time.monotonic())
    order = desk.next_order()
    desk.session = Session(new_id(), 15.0, time.monotonic())

    assert desk.answered(order, (), order.asked) is False
    assert (desk.lanes[0].free, desk.lanes[0].asking) == (10, 0)


async def test_a_job_that_nobody_hinted_at_is_found_by_a_poll():
    stage = Stage(Unheard(), poll=0.3)

    @stage.app.task
    async def work() -> str:
        return "found"

    await an_idle_worker(stage)
    handle = await work.enqueue()

    assert (await stage.ended(handle, within=2)).state is State.COMPLETED
    await stage.close()


async def test_polls_come_oftener_while_the_store_gives_no_hints():
    heard = Stage(MemoryStore(), poll=0.3, idle_poll=60.0)
    worker = await an_idle_worker(heard)
    poller = next(service for service in worker._services if service.name == "poll")
    listener = next(service for service in worker._services if service.name == "wake-ups")

    assert poller.longest == 60.0
    listener.on_hint(DeafHint())
    assert poller.longest == 0.3
    listener.on_hint(ResyncHint())
    assert poller.longest == 60.0
    await heard.close()


async def test_while_jobs_flow_a_hint_that_is_lost_unnoticed_costs_one_short_poll():
    """A half-open connection says nothing: until its ping finds out, the listener believes that it hears."""
    stage = Stage(HalfOpen(), poll=0.4, idle_poll=60.0)

    @stage.app.task
    async def work() -> None: ...

    worker = await an_idle_worker(stage)
    poller = next(service for service in worker._services if service.name == "poll")
    assert poller.longest == 60.0, "an idle worker asks seldom"
    first = await work.enqueue()
    worker.desk.wake()  # the last hint that arrived
    await stage.ended(first)
    waits = []
    for _ in range(3):
        began = time.monotonic()
        await stage.ended(await work.enqueue(), within=3)
        waits.append(time.monotonic() - began)
    await stage.close()

    assert max(waits) < 0.6


async def test_a_hint_wakes_only_lanes_that_serve_its_queue(stage):
    worker = await an_idle_worker(stage, lanes={"fast": 3, "general": 5, "reports": 2})
    worker.desk.claiming = False
    worker.desk.wake("reports")

    assert [lane.dry for lane in worker.desk.lanes] == [True, False, False]
    for service in worker._services:
        if service.name == "wake-ups":
            service.on_hint(WorkHint("fast", 100))
    assert [lane.dry for lane in worker.desk.lanes] == [False, False, False]
    worker.desk.claiming = True


async def test_an_end_carries_the_next_claim_in_its_own_round_trip(faulty):
    @faulty.app.task
    async def work() -> None: ...

    handles = await work.enqueue_many([() for _ in range(100)])
    faulty.store.calls.clear()
    await faulty.work(lanes={"general": 10})
    for handle in handles:
        await faulty.ended(handle)

    calls = faulty.store.calls
    assert calls.count("settle") == 0, "ends were written without fetching what comes next"
    assert calls.count("exchange") + calls.count("claim") <= 30, "more than one round trip for three jobs"


@pytest.mark.slow
async def test_an_idle_worker_asks_the_store_at_most_once_a_second():
    stage = Stage(FaultyStore(), lease=15.0, beat=5.0, poll=1.0, idle_poll=5.0)
    await an_idle_worker(stage, lanes={"fast": 3, "general": 5})
    await asyncio.sleep(5)
    stage.store.calls.clear()
    await asyncio.sleep(10)
    calls = list(stage.store.calls)
    await stage.close()

    assert 3 <= len(calls) <= 10, calls
    assert set(calls) <= {"beat", "next_due", "end_expired", "lost", "unpark"}


async def test_work_that_is_not_for_this_worker_does_not_make_it_ask_in_a_circle():
    stage = Stage(FaultyStore(), idle_poll=0.5)

    @stage.app.task
    async def mine() -> None: ...

    @stage.app.task
    async def other() -> None: ...

    await other.enqueue()
    await an_idle_worker(stage, tasks=["mine"])
    await asyncio.sleep(1)
    stage.store.calls.clear()
    await asyncio.sleep(1)
    asked = [call for call in stage.store.calls if call in ("claim", "exchange", "next_due")]
    await stage.close()

    assert len(asked) <= 8, asked


@pytest.mark.req("L6")
async def test_a_steady_flow_of_hints_for_others_does_not_keep_a_lane_from_its_scheduled_job():
    stage = Stage(MemoryStore(), poll=0.2, idle_poll=5.0)
    let_go = asyncio.Event()

    @stage.app.task
    async def slow() -> None:
        await let_go.wait()

    @stage.app.task(queue="fast")
    async def quick() -> str:
        return "on time"

    await stage.work(lanes={"fast": 1, "general": 1})
    await slow.enqueue()

    async def flood() -> None:
        while True:
            await slow.enqueue()
            await asyncio.sleep(0.03)

    others = asyncio.create_task(flood())
    handle = await quick.using(delay=0.5).enqueue()

    assert (await stage.ended(handle, within=3)).result == "on time"
    others.cancel()
    let_go.set()
    await stage.close()
