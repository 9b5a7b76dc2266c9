"""Lanes: reserved slots and the queues they serve."""

from __future__ import annotations

import asyncio

import pytest
from worker_stage import until

from rota.app import Rota
from rota.config import Settings
from rota.errors import ConfigError
from rota.stores.memory import MemoryStore
from rota.worker import LaneSpec, Worker, parse_lane
from rota.worker.lanes import Lane, lane_specs


@pytest.mark.req("L6")
async def test_slow_work_never_blocks_fast_work(stage):
    let_go = asyncio.Event()

    @stage.app.task(queue="slow")
    async def analysis() -> None:
        await let_go.wait()

    @stage.app.task(queue="fast")
    async def email() -> str:
        return "sent"

    worker = await stage.work(lanes={"fast": 3, "general": 5})
    slow = [await analysis.enqueue() for _ in range(20)]
    [fast_lane, general] = worker.desk.lanes
    await until(lambda: general.free == 0)

    assert [await (await email.enqueue()) for _ in range(10)] == ["sent"] * 10
    assert (fast_lane.free, general.free) == (3, 0)
    let_go.set()
    for handle in slow:
        await stage.ended(handle)


@pytest.mark.req("L6")
async def test_the_general_lane_takes_fast_work_too(stage):
    running: list[int] = []
    let_go = asyncio.Event()

    @stage.app.task(queue="fast")
    async def email() -> None:
        running.append(1)
        await let_go.wait()

    await stage.work(lanes={"fast": 3, "general": 5})
    handles = [await email.enqueue() for _ in range(8)]
    await until(lambda: len(running) == 8)
    let_go.set()

    for handle in handles:
        await stage.ended(handle)


@pytest.mark.req("L7")
async def test_every_task_is_classed_by_its_queue_and_runs_in_a_lane_that_serves_it(stage):
    fast = ["email", "produce-reminders", "cleanup-jobs", "integration", "webhook"]
    slow = ["analysis", "elevation"]
    ran: list[str] = []
    for name in fast + slow:

        async def work(name: str = name) -> None:
            ran.append(name)

        stage.app.task(name=name, queue="fast" if name in fast else "default")(work)

    handles = [await stage.app.enqueue(name) for name in fast + slow]
    only_fast = await stage.work(lanes={"fast": 3})
    for handle in handles[: len(fast)]:
        await stage.ended(handle)
    assert sorted(ran) == sorted(fast), "the fast lane took slow work"

    await stage.stop(only_fast)
    await stage.work(lanes={"general": 5})
    for handle in handles:
        await stage.ended(handle)
    assert sorted(ran) == sorted(fast + slow)


@pytest.mark.req("L22")
def test_a_worker_has_three_fast_and_five_general_slots_by_default():
    app = Rota(store=MemoryStore(), settings=Settings.load(url="memory://"))

    assert Worker(app).lanes == [LaneSpec("fast", 3, ("fast",)), LaneSpec("general", 5, None)]


@pytest.mark.req("L23")
def test_the_environment_sets_the_slots(monkeypatch):
    monkeypatch.setenv("WORKER_FAST_THREADS", "1")
    monkeypatch.setenv("WORKER_GENERAL_THREADS", "2")
    app = Rota(store=MemoryStore(), settings=Settings.load(url="memory://"))

    assert Worker(app).lanes == [LaneSpec("fast", 1, ("fast",)), LaneSpec("general", 2, None)]


async def test_never_more_jobs_are_claimed_than_slots_are_free(stage):
    running = most = 0

    @stage.app.task
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1

    handles = await work.enqueue_many([() for _ in range(100)])
    await stage.work(lanes={"general": 7})
    for handle in handles:
        await stage.ended(handle)

    assert most == 7


async def test_a_worker_can_be_told_which_tasks_tenant_and_queues_it_serves(stage):
    @stage.app.task
    async def one() -> None: ...

    @stage.app.task
    async def two() -> None: ...

    wanted = await one.using(tenant="acme", queue="mail").enqueue()
    others = [
        await two.using(tenant="acme", queue="mail").enqueue(),
        await one.using(tenant="other", queue="mail").enqueue(),
        await one.using(tenant="acme", queue="reports").enqueue(),
    ]
    await stage.work(tasks=["one"], tenant="acme", queues=["mail"])
    await stage.ended(wanted)
    await asyncio.sleep(0.3)

    assert [(await stage.job(handle)).attempt for handle in others] == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("fast=3", LaneSpec("fast", 3, ("fast",))),
        ("general=5", LaneSpec("general", 5, None)),
        ("reports=2:reports,exports", LaneSpec("reports", 2, ("reports", "exports"))),
        (" spare = 4 : * ", LaneSpec("spare", 4, None)),
        ("general=2:mail", LaneSpec("general", 2, ("mail",))),
    ],
)
def test_a_lane_is_written_in_one_word(text, spec):
    assert parse_lane(text) == spec


@pytest.mark.parametrize("text", ["fast", "=3", "fast=", "fast=many", "fast=-1", "fast=3:", "fast=3:,"])
def test_a_lane_that_cannot_be_read_says_how_to_write_it(text):
    with pytest.raises(
        ConfigError, match=r"is not understood. Write name=slots, such as fast=3, or name=slots:queue"
    ):
        parse_lane(text)


@pytest.mark.parametrize("slots", [0, 10_001])
def test_a_lane_needs_a_sensible_number_of_slots(slots):
    with pytest.raises(
        ConfigError, match=rf"lane 'fast' has {slots} slots; give it at least 1 and at most 10000"
    ):
        parse_lane(f"fast={slots}")


def test_lanes_may_be_given_as_numbers_texts_or_specs():
    spec = LaneSpec("bulk", 1, ("bulk", "export"))

    assert lane_specs({"fast": 3, "reports": "2:reports,exports", "bulk": spec}) == [
        LaneSpec("fast", 3, ("fast",)),
        LaneSpec("reports", 2, ("reports", "exports")),
        spec,
    ]


def test_queues_narrow_only_the_lanes_that_would_serve_every_queue():
    assert lane_specs({"fast": 3, "general": 5}, queues=["mail"]) == [
        LaneSpec("fast", 3, ("fast",)),
        LaneSpec("general", 5, ("mail",)),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": {}}, "a worker needs at least one lane"),
        ({"queues": []}, "queues is empty, so this worker would never find work"),
        ({"tasks": []}, "tasks is empty, so this worker would never find work"),
        ({"tasks": ["emial"]}, "no task is named 'emial' here; did you mean 'email'"),
        (
            {"tasks": ["zzz"]},
            r"no task is named 'zzz' here \(1 others are\). Import the module that defines it",
        ),
    ],
)
def test_a_worker_that_could_never_find_work_is_refused(options, message):
    app = Rota(store=MemoryStore(), settings=Settings.load(url="memory://"))

    @app.task
    async def email() -> None: ...

    with pytest.raises(ConfigError, match=message):
        Worker(app, **options)


def a_lane(slots: int = 10) -> Lane:
    return Lane(LaneSpec("general", slots, None))


def test_one_claim_sets_aside_at_most_half_of_a_lane_with_many_slots():
    lane = a_lane(99)

    assert [lane.reserve(), lane.reserve(), lane.free] == [50, 49, 0]
    assert a_lane(1).reserve() == 1
    assert a_lane(8).reserve() == 8


def test_a_full_answer_lets_both_exchanges_ask_and_a_short_one_neither():
    lane = a_lane(100)
    asked = lane.reserve()
    assert not lane.hungry, "one claim decides whether there is work at all"

    lane.answered(asked, asked, lane.hints)
    assert lane.hungry
    first, second = lane.reserve(), lane.free
    assert (first, second) == (50, 0)

    lane.answered(first, 1, lane.hints)
    assert (lane.free, lane.hungry, lane.dry) == (49, False, True)
    lane.wake()
    assert lane.hungry


def test_a_hint_that_came_while_a_claim_was_on_its_way_is_not_forgotten():
    lane = a_lane()
    asked, hints = lane.reserve(), lane.hints
    lane.wake()
    lane.answered(asked, 0, hints)

    assert lane.hungry
