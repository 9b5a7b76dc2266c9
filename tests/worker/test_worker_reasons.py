"""The reason that a handler gives for its end, whatever it gives."""

from __future__ import annotations

import pytest
from worker_stage import Stage

from rota._core.failure import MESSAGE_LIMIT
from rota._core.job import State
from rota.errors import Cancel, Snooze
from rota.stores.memory import MemoryStore


async def test_a_reason_that_is_no_text_is_made_one_and_keeps_no_other_end_from_being_written(stage: Stage):
    @stage.app.task
    async def unwanted() -> None:
        try:
            raise LookupError("no such order")
        except LookupError as error:
            raise Cancel(error) from error  # type: ignore[arg-type]

    @stage.app.task
    async def fine() -> None: ...

    handles = [await unwanted.enqueue(), await fine.enqueue()]
    await stage.work()
    cancelled, completed = [await stage.ended(handle) for handle in handles]

    assert (cancelled.state, cancelled.reason) == (State.CANCELLED, "no such order")
    assert completed.state is State.COMPLETED


async def test_an_end_that_cannot_be_written_is_dead_and_keeps_no_other_from_being_written():
    """Whatever the error is: a bug of ours, or a value that nobody thought of."""

    def stumble(transitions):
        if any(one.job.task == "odd" and one.to is State.COMPLETED for one in transitions):
            raise TypeError("nobody thought of this value")

    class Stumbling(MemoryStore):
        async def settle(self, transitions):
            stumble(transitions)
            return await super().settle(transitions)

        async def exchange(self, transitions, wanted, *, session):
            stumble(transitions)
            return await super().exchange(transitions, wanted, session=session)

    stage = Stage(Stumbling())

    @stage.app.task
    async def odd() -> None: ...

    @stage.app.task
    async def fine() -> None: ...

    handles = [await task.enqueue() for task in (fine, odd, fine, fine, odd, fine)]
    await stage.work()
    jobs = [await stage.ended(handle, within=5) for handle in handles]
    await stage.close()

    assert [job.state for job in jobs if job.task == "fine"] == [State.COMPLETED] * 4
    assert [job.state for job in jobs if job.task == "odd"] == [State.DEAD] * 2
    assert "nobody thought of this value" in (jobs[1].error_message or "")


@pytest.mark.parametrize(
    "end", [Cancel("x" * 100_000), Snooze("1h", "x" * 100_000)], ids=lambda end: type(end).__name__
)
async def test_a_reason_has_a_limit_like_every_text_of_a_handler(in_memory: Stage, end: Exception):
    @in_memory.app.task
    async def talkative() -> None:
        raise end

    handle = await talkative.enqueue()
    await in_memory.work()
    job = await in_memory.seen(handle, lambda job: job.reason is not None)

    assert len(job.reason or "") <= MESSAGE_LIMIT
