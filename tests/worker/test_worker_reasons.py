"""The reason that a handler gives for its end, whatever it gives."""

from __future__ import annotations

import pytest
from worker_stage import Stage

from rota._core.failure import MESSAGE_LIMIT
from rota._core.job import State
from rota.errors import Cancel, Snooze


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
