"""Queue(max_pending=…): a full queue takes no more jobs, or lets those who enqueue wait for room."""

from __future__ import annotations

import asyncio

import pytest

from rota import Queue, Rota, pressure
from rota.errors import EnqueueError, QueueFull
from rota.stores.contract import JobFilter
from rota.stores.memory import MemoryStore


class Counting(MemoryStore):
    """A memory store that knows how often it was asked what waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def backlog(self, *given, **options):
        self.asked += 1
        return await super().backlog(*given, **options)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A second is long in a test."""
    monkeypatch.setattr(pressure, "LOOK_AGAIN", 0.01)


def mailing(store, **limits):
    app = Rota(store=store, queues=[Queue("mail", **limits)])

    @app.task(queue="mail")
    def send(number: int = 0) -> None: ...

    return app, send


async def stored(app: Rota) -> int:
    return len(await app.store.find(JobFilter(limit=1000)))


async def test_a_full_queue_takes_no_more_jobs_and_says_what_to_do(store):
    app, send = mailing(store, max_pending=3)
    for number in range(3):
        await send.enqueue(number)

    with pytest.raises(QueueFull) as refused:
        await send.enqueue(3)

    assert str(refused.value) == (
        "queue 'mail' is full: about 3 jobs wait in it; 3 may wait (max_pending). Nothing was stored. "
        "Enqueue it later, start more workers, or raise max_pending."
    )
    error = refused.value
    assert (error.queue, error.tenant, error.waiting, error.limit) == ("mail", None, 3, 3)
    assert isinstance(error, EnqueueError)
    assert await stored(app) == 3
    assert (await send.using(queue="other").enqueue()).created


async def test_many_at_once_are_taken_whole_or_not_at_all(store):
    app, send = mailing(store, max_pending=300)
    await send.enqueue_many(range(250))

    with pytest.raises(QueueFull, match="about 250 jobs wait, and 51 came; 300 may wait"):
        await send.enqueue_many(range(51))
    with pytest.raises(QueueFull, match="Enqueue fewer at once, or raise max_pending"):
        await send.enqueue_many(range(301))

    assert await stored(app) == 250
    await send.enqueue_many(range(50))


async def test_a_tenant_has_a_limit_of_its_own(store):
    app, send = mailing(store, max_pending=100, max_pending_per_tenant=2)
    for _ in range(2):
        await send.using(tenant="acme").enqueue()

    with pytest.raises(QueueFull) as refused:
        await send.using(tenant="acme").enqueue()

    assert str(refused.value).startswith(
        "queue 'mail' is full for tenant 'acme': about 2 jobs wait in it; 2 may wait (max_pending_per_tenant)."
    )
    assert (await send.using(tenant="zoo").enqueue()).created
    for _ in range(5):
        await send.enqueue()  # of nobody: only the queue's own limit holds
    assert await stored(app) == 8


async def test_an_enqueue_waits_for_room_if_it_was_told_to(store, work):
    app, send = mailing(store, max_pending=1, on_full="delay", delay="5s")
    await send.enqueue(1)
    second = asyncio.ensure_future(_enqueued(send, 2))
    await asyncio.sleep(0.05)
    assert not second.done()
    assert await stored(app) == 1

    await work(app)

    assert (await asyncio.wait_for(second, 5)).created


async def _enqueued(send, number):
    return await send.enqueue(number)


async def test_it_waits_no_longer_than_it_was_told(memory_store):
    app, send = mailing(memory_store, max_pending=1, on_full="delay", delay=0.05)
    await send.enqueue(1)

    with pytest.raises(QueueFull, match=r"It was still full after 0.05 s\. Nothing was stored"):
        await send.enqueue(2)
    with pytest.raises(QueueFull, match="Enqueue fewer at once"):  # would never fit: not waited for
        await send.enqueue_many(range(2))
    assert await stored(app) == 1


async def test_the_store_is_asked_once_a_second_and_not_for_queues_without_a_limit(memory_store, monkeypatch):
    _, send = mailing(memory_store, max_pending=1000)
    for _ in range(50):
        await send.enqueue()
    await send.using(queue="other").enqueue()
    assert memory_store.asked == 1

    monkeypatch.setattr(pressure, "FRESH", -1.0)
    await send.enqueue()
    assert memory_store.asked == 2


async def test_what_others_stored_is_seen_after_a_moment(memory_store, monkeypatch):
    _, send = mailing(memory_store, max_pending=2)
    _, others = mailing(memory_store, max_pending=2)
    await send.enqueue()
    await others.enqueue()
    monkeypatch.setattr(pressure, "FRESH", -1.0)

    with pytest.raises(QueueFull):
        await send.enqueue()


async def test_an_app_without_limits_has_no_pressure(memory_store):
    app, send = mailing(memory_store, target="30s")
    await send.enqueue()

    assert app.pressure is None
    assert memory_store.asked == 0


def test_a_sync_enqueue_is_refused_too(memory_store):
    _, send = mailing(memory_store, max_pending=1)
    send.enqueue_sync()

    with pytest.raises(QueueFull):
        send.enqueue_sync()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_pending": 0}, "max_pending of queue 'mail' is 0; give a whole number from 1 on"),
        ({"max_pending_per_tenant": True}, "max_pending_per_tenant of queue 'mail' is True"),
        ({"on_full": "drop"}, "on_full of queue 'mail' is 'drop'; choose reject or delay"),
        ({"delay": "soon"}, "the delay of queue 'mail'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Queue("mail", **options)


@pytest.fixture
def memory_store():
    return Counting()
