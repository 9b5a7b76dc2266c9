"""What many look at is read once for all of them, and never longer than a moment."""

from __future__ import annotations

import asyncio
import gc

import pytest

from rota.web import recently
from rota.web.recently import Recently


class Reads:
    """Counts how often it is read."""

    def __init__(self) -> None:
        self.times = 0
        self.gate = asyncio.Event()
        self.fails = False

    async def __call__(self) -> int:
        self.times += 1
        await self.gate.wait()
        if self.fails:
            raise OSError("away")
        return self.times


async def test_who_asks_meanwhile_waits_for_the_same_answer():
    answers, read = Recently(), Reads()
    asking = [asyncio.create_task(answers.get("x", read)) for _ in range(5)]
    await asyncio.sleep(0)
    read.gate.set()

    assert await asyncio.gather(*asking) == [1] * 5


async def test_an_error_that_nobody_waited_for_any_more_prints_no_trace():
    answers, read, printed = Recently(), Reads(), []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: printed.append(context))
    read.fails = True
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await answers.get("x", read)
    read.gate.set()
    await asyncio.sleep(0.01)
    answers.forget()
    gc.collect()

    assert printed == []


async def test_an_answer_counts_for_a_moment_and_only_for_its_key(monkeypatch):
    answers, read = Recently(), Reads()
    read.gate.set()
    assert [await answers.get("x", read), await answers.get("x", read), await answers.get("y", read)] == [
        1,
        1,
        2,
    ]

    monkeypatch.setattr(recently, "monotonic", lambda: float("inf"))
    assert await answers.get("x", read) == 3


async def test_what_is_forgotten_is_read_anew_and_who_waits_still_gets_his_answer():
    answers, read = Recently(), Reads()
    waits = asyncio.create_task(answers.get("x", read))
    await asyncio.sleep(0)
    answers.forget()
    read.gate.set()

    assert await answers.get("x", read) == 2
    assert await waits is not None


async def test_a_failure_is_told_to_those_who_wait_and_not_kept():
    answers, read = Recently(), Reads()
    read.gate.set()
    read.fails = True
    with pytest.raises(OSError, match="away"):
        await answers.get("x", read)
    read.fails = False

    assert await answers.get("x", read) == 2


async def test_one_who_goes_away_does_not_take_the_answer_from_the_others():
    answers, read = Recently(), Reads()
    first = asyncio.create_task(answers.get("x", read))
    await asyncio.sleep(0)
    second = asyncio.create_task(answers.get("x", read))
    await asyncio.sleep(0)
    first.cancel()
    read.gate.set()

    assert await second == 1


async def test_only_so_many_answers_are_kept():
    answers, read = Recently(), Reads()
    read.gate.set()
    for number in range(3 * recently.KEPT):
        await answers.get(number, read)

    assert len(answers._known) == recently.KEPT


async def test_a_read_that_hangs_is_given_up_and_the_next_one_reads_anew(monkeypatch):
    monkeypatch.setattr(recently, "PATIENCE", 0.01)
    answers, read = Recently(), Reads()
    with pytest.raises(TimeoutError):
        await answers.get("x", read)
    read.gate.set()

    assert await answers.get("x", read) == 2


async def test_what_changes_slowly_counts_longer(monkeypatch):
    answers, read = Recently(), Reads()
    read.gate.set()
    await answers.get("x", read, lasts=15.0)
    later = recently.monotonic() + 10
    monkeypatch.setattr(recently, "monotonic", lambda: later)

    assert await answers.get("x", read, lasts=15.0) == 1
