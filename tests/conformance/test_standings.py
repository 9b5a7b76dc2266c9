"""Where a waiting job stands: how many go before it, and who holds its gate."""

from __future__ import annotations

import json
from datetime import timedelta

from build import NOON, Clock, a_job, a_session, claim, completed, new_id, read
from rota._core.explanation import Standing
from rota.stores.contract import SessionStart, Store, Wanted


async def stored(store: Store, **fields):
    new = a_job(**fields)
    await store.enqueue([new])
    return await read(store, new)


async def test_the_due_jobs_of_its_queue_that_a_claim_takes_first_are_counted(store: Store, clock: Clock):
    await store.enqueue([a_job(run_at=NOON - timedelta(minutes=3)), a_job(priority=7), a_job()])
    job = await stored(store)
    await store.enqueue(
        [
            a_job(),  # younger
            a_job(priority=200),  # less urgent
            a_job(queue="other"),
            a_job(priority=7, delay=60.0),  # not due yet
        ]
    )

    assert await store.standing(job, cap=100) == Standing(3)
    assert [found.id for found in await claim(store, wanted=Wanted(4, ("default",)))][-1] == job.id


async def test_jobs_with_a_gate_of_their_own_are_before_it_too(store: Store, clock: Clock):
    await store.enqueue([a_job(gate="serial::a"), a_job(gate="serial::b")])
    job = await stored(store)

    assert (await store.standing(job, cap=100)).ahead == 2


async def test_counting_stops_at_the_cap_and_says_so(store: Store, clock: Clock):
    await store.enqueue([a_job() for _ in range(10)])
    job = await stored(store)

    assert await store.standing(job, cap=10) == Standing(10)
    assert await store.standing(job, cap=9) == Standing(9, capped=True)


async def test_before_a_job_that_is_due_later_stands_everything_that_is_due_now(store: Store, clock: Clock):
    await store.enqueue([a_job(), a_job()])
    later = await stored(store, delay=60.0)
    await store.enqueue([a_job(), a_job(delay=30.0)])

    assert (await store.standing(later, cap=100)).ahead == 3


async def test_the_running_job_inside_its_gate_is_named(store: Store, clock: Clock):
    holder = await stored(store, gate="serial::site-7")
    await claim(store)
    waiting = await stored(store, gate="serial::site-7")
    await claim(store)  # meets it, and parks it behind the gate

    assert (await read(store, waiting)).parked == "gate"
    assert (await store.standing(waiting, cap=10)).inside == holder.id
    assert (await store.standing(await stored(store, gate="serial::site-8"), cap=10)).inside is None


async def test_a_session_says_which_queues_its_lanes_serve_and_for_whom(store: Store, clock: Clock):
    start = SessionStart(
        new_id(), "here", 1, {"fast": 3, "general": 5}, ("email",), queues={"fast": ("fast", "mail"), "general": None},
        tenant="acme",
    )  # fmt: skip
    await store.open_session(start, lease=15.0)
    clock.advance(1)
    await a_session(store)  # of a worker that does not say

    silent, told = await store.sessions()
    assert (told.queues, told.tenant) == ({"fast": ("fast", "mail"), "general": None}, "acme")
    assert (silent.queues, silent.tenant) == (None, None)


async def test_what_is_unfinished_is_counted_by_task_and_payload_version_with_a_few_payloads(
    store: Store, clock: Clock
):
    await store.enqueue([a_job("old", {"n": number}, payload_version="1.0") for number in range(5)])
    await store.enqueue([a_job("old", {"m": 1}, payload_version="2.0", held=True), a_job("new", {"x": 1})])
    ended = await stored(store, task="ended")
    session = await a_session(store, lease=60)
    jobs = await claim(store, session)
    await store.settle([completed(job) for job in jobs if job.id == ended.id])

    groups = await store.waiting(sample=2)

    assert [(group.task, group.payload_version, group.jobs) for group in groups] == [
        ("new", None, 1),
        ("old", "1.0", 5),
        ("old", "2.0", 1),
    ]
    assert [len(group.sample) for group in groups] == [1, 2, 1]
    [held] = groups[2].sample
    assert json.loads(held.payload_json) == {"m": 1}


async def test_an_empty_store_has_nothing_waiting(store: Store, clock: Clock):
    assert await store.waiting(sample=2) == []
