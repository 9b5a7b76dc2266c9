"""A loop that stands still is named, with the task that keeps it."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from worker_stage import Stage, until

from rota.stores.memory import MemoryStore


@pytest.fixture
async def watched():
    stage = Stage(MemoryStore(), stall=0.2)
    yield stage
    await stage.close()


@pytest.mark.parametrize("when", ["before its first await", "after an await"])
async def test_the_task_that_blocks_the_loop_is_named_with_its_job_and_line(watched, caplog, when):
    @watched.app.task
    async def crunch() -> None:
        if when == "after an await":
            await asyncio.sleep(0.01)
        time.sleep(0.7)

    await watched.work()
    handle = await crunch.enqueue()
    await watched.ended(handle)
    [said] = [text for text in caplog.messages if "has stood still" in text]

    assert re.match(
        rf"the event loop has stood still for 0\.\d s: task 'crunch' \(job {handle.id}\) in .*test_worker_stalls\.py, "
        r"line \d+, crunch\(\) keeps it busy\.",
        said,
    )
    await until(lambda: any("the event loop turns again, after 0." in text for text in caplog.messages))


async def test_code_outside_any_job_is_called_so(watched, caplog):
    await watched.work()
    await asyncio.sleep(0.1)
    time.sleep(0.6)
    await asyncio.sleep(0.1)

    assert "code outside any job in " in caplog.text
    assert "test_code_outside_any_job_is_called_so()" in caplog.text


async def test_a_lively_loop_is_left_alone(watched, caplog):
    @watched.app.task
    async def brief() -> None:
        time.sleep(0.01)

    await watched.work()
    for _ in range(20):
        await watched.ended(await brief.enqueue())
    await asyncio.sleep(0.3)

    assert "stood still" not in caplog.text


async def test_a_process_that_was_stopped_as_a_whole_blames_no_task(watched, caplog):
    worker = await watched.work()
    detector = worker._stall
    await asyncio.sleep(0.3)
    detector._looked -= 5
    detector._ticked -= 5
    detector.look()

    assert "stood still" not in caplog.text
