"""F18, F19, F20: a network that swallows, delays and drips, and tells nobody."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

import pytest

from build import a_job
from chaos.orders import Order
from rota.stores.contract import Enqueued, Hint, ResyncHint, Stored
from rota.stores.postgres import PostgresStore, connections, listen

RECOVERED = 10.0
"""Seconds after which jobs flow again, once the network does."""


async def test_a_call_that_is_given_up_on_a_silent_connection_returns_soon_and_the_next_one_works(proxy):
    """The driver itself would wait ten seconds more for the server to confirm that it has given up."""
    store = PostgresStore(proxy.url)
    await store.now()
    proxy.blackhole()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await store.now()
    given_up = time.monotonic() - began
    proxy.heal()
    async with asyncio.timeout(5):
        await store.now()
    await store.close()

    assert given_up < 2.0


async def test_one_silence_costs_one_try_however_many_connections_have_fallen_silent(proxy, monkeypatch):
    """Each of the pool's silent connections would otherwise cost the next caller a whole try."""
    monkeypatch.setattr(connections.Connections.run, "__kwdefaults__", {"within": 4.0, "seconds": 1.0})
    store = PostgresStore(proxy.url)
    await asyncio.gather(*(store.now() for _ in range(8)))
    with proxy.vanished():
        pass
    began = time.monotonic()
    [answer] = await asyncio.gather(store.now(), return_exceptions=True)
    took = time.monotonic() - began
    await store.close()

    assert isinstance(answer, datetime), answer
    assert 1.0 <= took < 2.5, "a try, the time to let go, and a new connection"


async def test_an_enqueue_that_the_network_swallowed_is_repeated_and_lands_once(proxy):
    store = PostgresStore(proxy.url)
    await store.now()
    with proxy.vanished():
        pass
    job = a_job()
    [answer] = await asyncio.gather(store.enqueue([job]), return_exceptions=True)
    found = await store.get([job.id])
    await store.close()

    assert answer == [Enqueued(job.id, Stored.CREATED)]
    assert [one.id for one in found] == [job.id]


async def test_connections_that_fall_silent_while_they_are_made_stand_in_nobodys_way(proxy, monkeypatch):
    """Each of them occupies one of the pool's few hands until it is given up."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 1)
    store = PostgresStore(proxy.url)
    await store.now()
    proxy.deaf_to = "plan_cache_mode"
    proxy.silence("")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await asyncio.gather(*(store.now() for _ in range(8)))
    proxy.deaf_to = ""
    async with asyncio.timeout(5):
        await store.now()
    began = time.monotonic()
    await store.close()

    assert time.monotonic() - began < 1.5, "something of the pool did not stop"


async def test_a_listener_whose_connection_falls_silent_before_it_listens_begins_anew(proxy, monkeypatch):
    monkeypatch.setattr(listen, "ANSWER_WITHIN", 1.0)
    proxy.deaf_to = "LISTEN rota"
    store = PostgresStore(proxy.url)
    hints: asyncio.Queue[Hint] = asyncio.Queue()
    listening = asyncio.create_task(store.listen(hints.put_nowait))
    async with asyncio.timeout(10):
        while not proxy.heard("LISTEN rota"):
            await asyncio.sleep(0.01)
    proxy.deaf_to = ""
    async with asyncio.timeout(10):
        first = await hints.get()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await store.close()

    assert isinstance(first, ResyncHint)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_jobs_flow_again_soon_after_a_network_that_swallowed_everything_has_healed(
    stage, proxy, one_seed, long
):
    run = stage(one_seed, workers=2, slots=4, through=proxy.url)
    run.begin()
    waits = []
    for number in range(5 if long else 1):
        run.enqueue([f"before-{number}-{n}" for n in range(20)], ms=300)
        run.seen(lambda effects: any(effect.end is None for effect in effects), within=20)
        with run.outage("the network swallows everything"), proxy.vanished():
            time.sleep(run.nemesis.dice.uniform(2.0, 8.0) if long else 3.0)
        run.enqueue([f"after-{number}"])
        waits.append(run.begun(f"after-{number}", within=30))

    evidence = run.verdict(within=60)

    print(f"jobs flowed again {max(waits):.1f} s after the network had healed")
    assert max(waits) < RECOVERED, f"recovered after {waits}"
    assert evidence.tables.tried == [], "a hole shorter than the lease cost somebody a job"
    assert run.fleet.exits == []


@pytest.mark.chaos
@pytest.mark.scenario(4)
def test_a_worker_that_is_cut_off_past_its_lease_stops_before_others_begin(stage, proxy, one_seed):
    """One worker goes through the hole, the other straight: it may take the jobs only when the first has stopped."""
    lease = 2.5
    run = stage(
        one_seed, workers=2, slots=3, lease=lease, beat=0.5,
        each=lambda place: {"ROTA_URL": proxy.url} if place == 0 else {},
    )  # fmt: skip
    run.begin()
    run.enqueue([f"long-{number}" for number in range(6)], ms=3_000)
    run.seen(lambda effects: len({effect.pid for effect in effects}) == 2, within=20)
    with run.outage("one worker is cut off"), proxy.vanished():
        run.seen(lambda effects: any(effect.how == "cancelled" for effect in effects), within=15)
        run.seen(lambda effects: any(effect.attempt == 2 for effect in effects), within=15)

    evidence = run.verdict(within=40)

    stopped = [effect for effect in evidence.effects if effect.how == "cancelled"]
    assert {effect.pid for effect in stopped} == {run.fleet.pids[0]}
    for effect in stopped:
        tried = evidence.tried[effect.job, effect.fence]
        assert tried.error_class == "lost"
        assert effect.end < evidence.lives[tried.session].lease_until, "its handler outlived its lease"
    assert run.fleet.exits == []


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("drip", [0, 7], ids=["late", "dripping"])
def test_a_slow_network_costs_time_and_no_lease(stage, proxy, one_seed, long, drip):
    run = stage(one_seed, workers=2, slots=8, through=proxy.url)
    longest = 2.0 if long else 0.5
    dice = run.nemesis.dice
    proxy.slow, proxy.drip = (lambda: dice.uniform(0.0, longest) if dice.random() < 0.3 else 0.0), drip
    run.begin()
    run.produce(
        Order("a", "together", 600 if long else 60, ms=50, batch=10, mix=True, pause=0.2, seed=one_seed)
    )
    run.produced(300)

    evidence = run.verdict(within=300 if long else 60)

    assert {tried.error_class for tried in evidence.tables.tried} <= {"retryable"}
    assert {effect.how for effect in evidence.effects} <= {"returned", "Planned"}


@pytest.mark.chaos
def test_a_listener_that_went_silent_costs_a_poll_and_is_replaced(stage, proxy, one_seed, long):
    run = stage(one_seed, workers=1, slots=2, through=proxy.url)
    run.begin()
    run.enqueue(["first"])
    run.begun("first", within=20)
    assert proxy.silence("LISTEN rota") == 1
    waits = []
    for number in range(12 if long else 2):
        time.sleep(run.nemesis.dice.uniform(0.5, 2.0))
        run.enqueue([f"deaf-{number}"])
        waits.append(run.begun(f"deaf-{number}", within=20))

    evidence = run.verdict(within=20)

    assert max(waits) < 6.5, f"a poll comes every 5 s, give or take a fifth: {waits}"
    assert evidence.tables.tried == []
    print(f"worst start while the listener was half-open: {max(waits):.2f} s")
