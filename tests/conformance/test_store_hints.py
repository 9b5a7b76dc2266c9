"""Listen: "call `on_hint` for whatever happens, until cancelled. Hints may be lost"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from build import a_job, a_running_job, a_session, by_hand, claim, completed, failed, read
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota.stores.contract import CancelHint, Hint, ResyncHint, Store, WorkHint


class Ear:
    """Somebody who listens."""

    def __init__(self) -> None:
        self.heard: list[Hint] = []
        self._news = asyncio.Event()

    def hear(self, hint: Hint) -> None:
        self.heard.append(hint)
        self._news.set()

    async def hears(self, hint: Hint) -> None:
        """Wait until this hint has come."""
        async with asyncio.timeout(10):
            while hint not in self.heard:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def somebody_listening(store: Store) -> AsyncIterator[Ear]:
    ear = Ear()
    listening = asyncio.create_task(store.listen(ear.hear))
    await ear.hears(ResyncHint())
    yield ear
    listening.cancel()
    with suppress(asyncio.CancelledError):
        await listening


@pytest.fixture
async def ear(store: Store) -> AsyncIterator[Ear]:
    async with somebody_listening(store) as ear:
        yield ear


async def test_a_listener_hears_first_that_it_may_have_missed_something(store: Store):
    async with somebody_listening(store) as ear:
        assert ear.heard == [ResyncHint()]


async def test_a_listener_hears_of_new_work(store: Store, ear: Ear):
    await store.enqueue([a_job(queue="fast", priority=50)])

    await ear.hears(WorkHint("fast", 50))


@pytest.mark.parametrize("keys", [{"key": "a"}, {"unique_key": "a"}, {"gate": "a"}], ids=str)
async def test_a_listener_hears_of_new_work_with_keys_and_gates(store: Store, ear: Ear, keys: dict[str, str]):
    await store.enqueue([a_job(queue="fast", **keys)])

    await ear.hears(WorkHint("fast", 100))


async def test_a_listener_hears_of_every_queue_in_a_large_batch(store: Store, ear: Ear):
    await store.enqueue([a_job(queue=f"q{number % 3}", priority=number % 2) for number in range(600)])

    for queue in range(3):
        for priority in range(2):
            await ear.hears(WorkHint(f"q{queue}", priority))


async def test_a_listener_hears_of_a_cancel(store: Store, ear: Ear):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL)

    await ear.hears(CancelHint(job.id))


async def test_a_listener_hears_of_work_that_comes_back(store: Store, ear: Ear):
    retried = await a_running_job(store, queue="retried")
    released = a_job(queue="released", held=True)
    dead = await a_running_job(store, queue="revived")
    await store.enqueue([released])
    await store.settle([failed(dead, ErrorClass.NON_RETRYABLE)])
    ear.heard.clear()

    await store.settle([failed(retried)])
    await ear.hears(WorkHint("retried", 100))
    await by_hand(store, await read(store, released), Verb.RELEASE)
    await ear.hears(WorkHint("released", 100))
    await by_hand(store, await read(store, dead), Verb.RETRY)
    await ear.hears(WorkHint("revived", 100))


async def test_a_listener_hears_when_a_gate_is_free(store: Store, ear: Ear):
    await store.enqueue([a_job(gate="a"), a_job(gate="a", queue="behind")])
    [inside] = await claim(store)
    ear.heard.clear()
    await store.settle([completed(inside)])

    await ear.hears(WorkHint("behind", 100))


async def test_a_listener_hears_what_happens_in_other_threads(store: Store, ear: Ear):
    async def elsewhere() -> None:
        await store.enqueue([a_job(queue="far")])
        await store.close()

    await asyncio.to_thread(asyncio.run, elsewhere())

    await ear.hears(WorkHint("far", 100))


async def test_work_is_found_without_listening_at_all(store: Store):
    session = await a_session(store)
    await store.enqueue([a_job(queue="quiet")])

    assert len(await claim(store, session)) == 1


async def test_a_listener_that_left_hears_nothing_more(store: Store):
    ear = Ear()
    listening = asyncio.create_task(store.listen(ear.hear))
    await ear.hears(ResyncHint())
    listening.cancel()
    with suppress(asyncio.CancelledError):
        await listening
    await store.enqueue([a_job()])
    await asyncio.sleep(0.05)

    assert ear.heard == [ResyncHint()]
