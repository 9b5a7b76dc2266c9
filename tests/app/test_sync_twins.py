"""Every verb has a sync twin; one background event loop a process serves them all."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from build import ANY, a_session, completed
from rota import JobCancelled, RotaError, State, context
from rota.portal import Portal, Twin, portal, run, running_portal


@pytest.fixture
def double(memory_app):
    @memory_app.task
    def double(number: int) -> int:
        return number * 2

    return double


def finish_one(app) -> None:
    async def finish() -> None:
        [job] = await app.store.claim(ANY, session=await a_session(app.store))
        await app.store.settle([completed(job, job.payload["number"] * 2)])

    asyncio.run(finish())


def test_enqueue_and_wait_without_async(memory_app, double):
    handle = double.enqueue_sync(21)
    assert handle.status_sync() is State.PENDING
    finish_one(memory_app)

    assert handle.result_sync(timeout=5) == 42
    assert handle.refresh_sync().state is State.COMPLETED


def test_cancel_without_async(double):
    handle = double.using(delay="1h").enqueue_sync(1)

    assert handle.cancel_sync("not needed") is True
    with pytest.raises(JobCancelled):
        handle.result_sync()


def test_many_rows_without_async(double):
    assert [handle.created for handle in double.enqueue_many_sync([1, 2, 3])] == [True, True, True]


def test_the_app_has_twins_too(memory_app, double):
    assert memory_app.migrate_sync() == []
    memory_app.open_sync()
    handle = memory_app.enqueue_sync("double", {"number": 1}, priority=3)
    memory_app.close_sync()

    assert handle.refresh_sync().priority == 3


def test_a_twin_carries_the_context_of_its_caller(double):
    with context(tenant="acme", created_by="ada"):
        job = double.enqueue_sync(1).refresh_sync()

    assert (job.tenant, job.created_by) == ("acme", "ada")


async def test_inside_a_running_event_loop_a_twin_is_refused(double):
    with pytest.raises(RotaError) as refused:
        double.enqueue_sync(1)

    assert "enqueue_sync() was called inside a running event loop, which it would block." in str(
        refused.value
    )
    assert "Write `await enqueue(...)` here" in str(refused.value)


async def test_in_a_thread_beside_a_running_event_loop_a_twin_works(double):
    handle = await asyncio.to_thread(double.enqueue_sync, 1)

    assert await handle.status() is State.PENDING


def test_threads_share_one_portal(double):
    before = threading.active_count()
    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(double.enqueue_sync, range(100)))
        portals = [thread for thread in threading.enumerate() if thread.name == "rota-portal"]

    assert len({handle.id for handle in handles}) == 100
    assert len(portals) == 1
    assert threading.active_count() <= before + 1


def test_a_forked_child_makes_a_portal_of_its_own(double):
    double.enqueue_sync(1)
    parent = portal()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            double.enqueue_sync(2)
            os.write(writing, b"enqueued" if running_portal() is not parent else b"same portal")
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reading, 100) == b"enqueued"
    assert running_portal() is parent


def test_an_error_of_the_verb_is_the_error_of_the_twin(double):
    with pytest.raises(ValueError, match="argument 'number'"):
        double.enqueue_sync("many")


def test_a_cancelled_verb_does_not_leave_its_caller_waiting():
    async def gives_up() -> None:
        raise asyncio.CancelledError

    from concurrent.futures import CancelledError

    with pytest.raises(CancelledError):
        portal().submit(gives_up()).result(timeout=5)


async def lasts(life: list[str]) -> None:
    life.append("began")
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        life.append("cancelled")
        raise


def eventually(true) -> bool:
    until = time.monotonic() + 5
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    return true()


def test_a_caller_that_leaves_takes_its_verb_along():
    life: list[str] = []
    answer = portal().submit(lasts(life))
    assert eventually(lambda: life == ["began"])

    answer.cancel()

    assert eventually(lambda: life == ["began", "cancelled"])


def test_a_keyboard_interrupt_ends_a_sync_verb():
    life: list[str] = []

    def press() -> None:
        if eventually(lambda: life == ["began"]):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        run(lasts(life), "lasts")

    assert eventually(lambda: life == ["began", "cancelled"])


def test_a_portal_that_stops_cancels_what_runs_there():
    extra, life = Portal(), []
    extra.submit(lasts(life))
    assert eventually(lambda: life == ["began"])
    extra.stop()

    assert life == ["began", "cancelled"]


def test_a_portal_can_be_stopped():
    extra = Portal()

    async def answer() -> int:
        return 7

    assert extra.submit(answer()).result(timeout=5) == 7
    extra.stop()
    assert extra.loop.is_closed()


def test_a_twin_is_named_and_described_after_its_verb(double):
    assert double.enqueue_sync.__name__ == "enqueue_sync"
    assert double.enqueue_sync.__doc__.startswith("enqueue() for code that is not async. Store a job")
    assert isinstance(type(double).enqueue_sync, Twin)
