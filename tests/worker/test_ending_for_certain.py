"""A stop ends every loop and every session, however badly it is timed."""

from __future__ import annotations

import asyncio

import pytest

from rota.worker.ending import end_all
from rota.worker.worker import Worker


@pytest.mark.req("L26")
async def test_a_loop_that_swallows_a_cancellation_ends_all_the_same(monkeypatch):
    """`asyncio.wait_for()` does so before Python 3.12, when its answer comes in the same moment."""
    monkeypatch.setattr("rota.worker.ending.AGAIN_AFTER", 0.01)
    swallowed: list[int] = []

    async def deaf_twice() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if len(swallowed) == 2:
                    raise
                swallowed.append(1)

    async def failing() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("on its way out")

    tasks = [asyncio.create_task(deaf_twice()), asyncio.create_task(failing())]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await end_all(tasks)

    assert tasks[0].cancelled()
    assert swallowed == [1, 1]
    assert isinstance(tasks[1].exception(), ValueError)


@pytest.mark.req("L26")
async def test_a_worker_that_is_stopped_before_its_session_is_confirmed_leaves_no_living_session(stage):
    """The store has it, the answer is on its way: the next worker must not wait for that lease."""
    app, store = stage.app, stage.store
    open_session = store.open_session
    begun = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    async def answered_late(*given, **options):
        await open_session(*given, **options)
        loop.call_soon_threadsafe(begun.release)
        await asyncio.sleep(60)

    store.open_session = answered_late
    worker = Worker(app)
    life = asyncio.create_task(worker.run())
    for _ in range(3):  # it gives up on an answer that is too late, and tries another session
        await begun.acquire()
    worker.stop()
    await life

    sessions = await store.sessions()
    assert sessions
    assert all(session.ended_at is not None for session in sessions)
