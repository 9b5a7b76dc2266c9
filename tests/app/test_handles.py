"""Handles: await a job, look at it, cancel it; one query a round for all who wait."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from build import ANY, a_session, cancelled, completed, failed
from rota import JobCancelled, JobDead, JobNotFound, ResultTimeout, Rota, State, StoreUnavailable, watcher
from rota.errors import SchemaOutdated
from rota.stores.contract import JobFilter
from rota.stores.memory import MemoryStore


@pytest.fixture
def double(app):
    @app.task
    async def double(number: int) -> int:
        return number * 2

    return double


async def claimed(app):
    [job] = await app.store.claim(ANY, session=await a_session(app.store))
    return job


async def test_awaiting_a_handle_waits_for_the_result(app, double, work):
    handle = await double.enqueue(21)
    waiting = asyncio.ensure_future(handle.result())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await work(app)

    assert await waiting == 42
    assert await handle == 42


async def test_a_handle_tells_the_state_of_its_job_now(app, double):
    handle = await double.enqueue(1)
    assert await handle.status() is State.PENDING
    job = await claimed(app)
    assert await handle.status() is State.RUNNING
    await app.store.settle([completed(job, 2)])

    assert await handle.status() is State.COMPLETED
    assert (await handle.refresh()).result == 2


async def test_awaiting_a_job_that_died_raises_with_its_reason_and_the_next_step(app, double):
    from rota import ErrorClass

    handle = await double.enqueue(1)
    job = await claimed(app)
    await app.store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such account")])

    with pytest.raises(JobDead) as died:
        await handle
    assert died.value.error_class == "non_retryable"
    assert f"job {handle.id} died (non_retryable): no such account. `rota jobs show {handle.id}`" in str(
        died.value
    )


async def test_awaiting_a_job_that_was_cancelled_raises_with_the_reason(app, double):
    handle = await double.enqueue(1)
    await handle.cancel("not needed")

    with pytest.raises(JobCancelled, match=r"was cancelled \(not needed\)"):
        await handle


async def test_a_wait_may_be_bounded_and_the_job_goes_on(app, double, work):
    handle = await double.enqueue(4)

    with pytest.raises(ResultTimeout) as late:
        await handle.result(timeout="50ms")
    assert (
        f"job {handle.id} did not finish within 0.05 s; it is pending and goes on. Is a worker running?"
        in str(late.value)
    )
    await work(app)
    assert await handle.result(timeout=5) == 8


async def test_a_bounded_wait_for_a_job_that_ends_at_the_last_moment_still_gets_the_result(app, double, work):
    handle = await double.enqueue(4)
    await work(app)

    assert await handle.result(timeout=0) == 8


async def test_a_waiting_job_is_cancelled_at_once_and_the_audit_names_who_did_it(app, double):
    from rota import context

    handle = await double.enqueue(1)
    with context(created_by="ada"):
        assert await handle.cancel("not needed") is True

    job = await handle.refresh()
    assert (job.state, job.reason) == (State.CANCELLED, "not needed")
    [entry] = await app.store.audit(handle.id)
    assert (entry.actor, entry.action, entry.reason, entry.before) == (
        "ada",
        "cancel",
        "not needed",
        "pending",
    )


async def test_without_an_author_the_audit_names_the_user_of_the_process(app, double):
    import getpass

    handle = await double.enqueue(1)
    await handle.cancel()

    [entry] = await app.store.audit(handle.id)
    assert entry.actor.startswith(f"{getpass.getuser()}@")


async def test_a_running_job_is_asked_to_stop_and_its_worker_confirms(app, double):
    handle = await double.enqueue(1)
    job = await claimed(app)

    assert await handle.cancel() is True
    asked = await handle.refresh()
    assert (asked.state, asked.cancel_requested_at is not None) == (State.RUNNING, True)
    await app.store.settle([cancelled(job, "asked to")])
    with pytest.raises(JobCancelled):
        await handle


async def test_cancelling_a_job_that_has_ended_changes_nothing(app, double, work):
    handle = await double.enqueue(1)
    await work(app)

    assert await handle.cancel() is False
    assert await handle == 2


async def test_a_handle_is_made_from_an_id_in_either_form(app, double, work):
    handle = await double.enqueue(21)
    await work(app)

    assert await app.job(handle.id) == 42
    assert await app.job(str(handle.id)) == 42
    assert await app.job(handle.public_id.lower()) == 42
    with pytest.raises(ValueError, match="'7' is not a job id"):
        app.job("7")


async def test_a_job_that_does_not_exist_is_not_waited_for(app):
    unknown = uuid4()

    with pytest.raises(
        JobNotFound, match=f"no job has the id {unknown}. It may have been removed by retention"
    ):
        await app.job(unknown)
    with pytest.raises(JobNotFound):
        await app.job(unknown).status()


async def test_a_job_stored_inside_a_transaction_is_waited_for_until_it_is_committed(app, double, work):
    from rota.handle import Handle

    job = double.prepare((21,), {})
    handle = Handle(app, job.id, double.read_result, uncommitted=True)
    waiting = asyncio.ensure_future(handle.result(timeout=10))
    await asyncio.sleep(0.1)
    await app.store.enqueue([job])
    await work(app)

    assert await waiting == 42


class Counting(MemoryStore):
    """Counts reads, and can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.trouble: Exception | None = None

    async def get(self, job_ids):
        self.reads.append(len(job_ids))
        if self.trouble is not None:
            raise self.trouble
        return await super().get(job_ids)


@pytest.fixture
def counting():
    store = Counting()
    app = Rota(store=store)

    @app.task
    async def double(number: int) -> int:
        return number * 2

    return app, store, double


async def test_handles_awaited_together_are_looked_at_together(counting, work):
    app, store, double = counting
    handles = await double.enqueue_many(range(200))
    waiting = asyncio.gather(*handles)
    async with asyncio.timeout(10):
        while len(store.reads) < 3:
            await asyncio.sleep(0.01)
    assert set(store.reads) == {200}
    while await work(app):
        pass

    assert await waiting == [2 * number for number in range(200)]
    assert len(store.reads) < 60, "one by one it would be 200 and more; half a minute comes to 60"


async def test_the_longer_a_wait_lasts_the_rarer_the_look(counting):
    _, store, double = counting
    handle = await double.enqueue(1)
    with pytest.raises(ResultTimeout):
        await handle.result(timeout=1.2)

    # 20 ms apart in the first fifth of a second, then a tenth of the age: about 10 and 20 looks, not 60.
    assert 15 <= len(store.reads) <= 40


async def test_many_who_wait_for_one_job_cost_one_read_of_it(counting, work):
    app, store, double = counting
    handle = await double.enqueue(21)
    waiting = asyncio.gather(*(app.job(handle.id) for _ in range(50)))
    await asyncio.sleep(0.05)
    await work(app)

    assert await waiting == [42] * 50
    assert set(store.reads) == {1}


async def test_waiting_survives_a_store_that_is_away(counting, work):
    app, store, double = counting
    handle = await double.enqueue(21)
    store.trouble = StoreUnavailable("the database is gone")
    waiting = asyncio.ensure_future(handle.result())
    await asyncio.sleep(0.1)
    assert not waiting.done()
    store.trouble = None
    await work(app)

    assert await waiting == 42


async def test_an_error_that_will_not_pass_reaches_everyone_who_waits(counting):
    _, store, double = counting
    handles = await double.enqueue_many([1, 2])
    store.trouble = SchemaOutdated(None, 1)

    answers = await asyncio.gather(*handles, return_exceptions=True)

    assert all(isinstance(answer, SchemaOutdated) for answer in answers)


async def test_a_wait_that_is_given_up_is_no_longer_looked_at(counting):
    _, store, double = counting
    waiting = asyncio.ensure_future((await double.enqueue(1)).result())
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.sleep(0.1)
    store.reads.clear()
    await asyncio.sleep(0.1)

    assert store.reads == []


async def test_a_watcher_leaves_when_nobody_waits(counting, work):
    app, _, double = counting
    handle = await double.enqueue(1)
    waiting = asyncio.ensure_future(handle.result())
    await asyncio.sleep(0.01)
    assert len(watcher._watchers) == 1
    await work(app)
    await waiting
    await asyncio.sleep(0.01)

    assert watcher._watchers == {}


def test_an_event_loop_that_ends_while_somebody_waits_leaves_no_watcher(counting):
    _, _, double = counting

    async def leave() -> None:
        task = asyncio.ensure_future((await double.enqueue(1)).result())
        await asyncio.sleep(0.05)
        assert not task.done()

    asyncio.run(leave())

    assert watcher._watchers == {}


async def test_a_handle_says_what_it_is(memory_app):
    @memory_app.task
    async def send() -> None: ...

    first = await send.using(key="k").enqueue()
    second = await send.using(key="k").enqueue()

    assert repr(first) == f"<Handle {first.id}>"
    assert repr(second) == f"<Handle {first.id} (duplicate)>"
    assert isinstance(first.id, UUID)
    assert len(await memory_app.store.find(JobFilter())) == 1
