"""The failpoints themselves: they are where they say, as often as they say, and cost nothing where none is set."""

from __future__ import annotations

import random
import time

import pytest

from build import ANY, a_job, a_session, completed
from chaos.failpoints import Failing, Failpoint
from rota.errors import StoreUnavailable
from rota.stores.memory import MemoryStore


async def a_failing_store(*points: Failpoint) -> tuple[Failing, object]:
    store = MemoryStore()
    await store.enqueue([a_job(), a_job()])
    return Failing(store, points, random.Random(1)), await a_session(store)


async def test_a_worker_can_lose_its_store_before_and_after_it_was_heard():
    store, session = await a_failing_store(Failpoint("before_settle", "refuse", skip=1))
    first, second = await store.claim(ANY, session=session)
    await store.settle([completed(first)])

    with pytest.raises(StoreUnavailable, match="failpoint before_settle"):
        await store.exchange([completed(second)], ANY, session=session)
    assert (await store.get([second.id]))[0].state == "running"


async def test_after_a_claim_means_after_one_that_brought_something():
    store, session = await a_failing_store(Failpoint("after_claim", "refuse"))
    with pytest.raises(StoreUnavailable):
        await store.claim(ANY, session=session)

    assert await store.claim(ANY, session=session) == []


@pytest.mark.parametrize("do", ["stall", "block"])
async def test_a_call_can_be_kept_waiting(do):
    store, session = await a_failing_store(Failpoint("after_beat", do, seconds=0.1))
    began = time.monotonic()

    assert (await store.beat(session, lease=15.0, holding={})).alive
    assert time.monotonic() - began >= 0.1


async def test_chance_decides_how_often():
    store, session = await a_failing_store(Failpoint("before_beat", "refuse", chance=0.5))
    failures = 0
    for _ in range(200):
        try:
            await store.beat(session, lease=15.0, holding={})
        except StoreUnavailable:
            failures += 1

    assert 60 < failures < 140
