"""A job and its successor, all the way through workers: a retry that comes too late gives way, and harms nobody."""

from __future__ import annotations

import asyncio

import pytest
from worker_stage import until

from rota import Retry, State, Unique


class Log:
    """What began and ended, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.go = asyncio.Event()
        """Set: runs do not wait any more."""

    async def run(self, what: str) -> None:
        self.lines.append(f"{what} begins")
        await self.go.wait()
        self.lines.append(f"{what} ends")


@pytest.mark.scenario(10)
async def test_a_job_that_fails_after_its_successor_was_enqueued_is_superseded_and_the_two_never_overlap(
    stage,
):
    log = Log()

    @stage.app.task(unique=Unique("site"), serial="site", retry=Retry(attempts=5, base=0.0))
    async def rebuild(site: str, edit: int) -> None:
        await log.run(f"edit {edit}")
        if edit == 1:
            raise ValueError("again, please")

    await stage.work()
    first = await rebuild.enqueue("home", 1)
    await until(lambda: log.lines == ["edit 1 begins"])
    second = await rebuild.enqueue("home", 2)
    again = await rebuild.enqueue("home", 3)
    log.go.set()
    loser, winner = await stage.ended(first), await stage.ended(second, 10)

    assert (first.created, second.created, again.created) == (True, True, False)
    assert again.id == second.id, "the one that waits is enough"
    assert (loser.state, loser.reason, loser.superseded_by) == (State.CANCELLED, "superseded", second.id)
    assert winner.state is State.COMPLETED
    assert log.lines == ["edit 1 begins", "edit 1 ends", "edit 2 begins", "edit 2 ends"]


@pytest.mark.scenario(10)
async def test_a_rescue_in_which_one_job_has_a_successor_still_brings_back_all_others(stage):
    log = Log()

    @stage.app.task(unique=Unique("site"), serial="site", retry=Retry(attempts=5, base=0.0))
    async def rebuild(site: str, edit: int) -> None:
        await log.run(f"{site} {edit}")

    worker = await stage.work(lanes={"general": 6})
    firsts = [await rebuild.enqueue(site, 1) for site in ("a", "b", "c", "d")]
    await until(lambda: len(log.lines) == 4)
    successor = await rebuild.enqueue("b", 2)
    await stage.crash(worker)
    log.lines.clear()
    log.go.set()
    await stage.work()
    jobs = [await stage.ended(handle, 15) for handle in firsts]
    last = await stage.ended(successor, 15)

    assert [job.state for job in jobs] == [
        State.COMPLETED, State.CANCELLED, State.COMPLETED, State.COMPLETED,
    ]  # fmt: skip
    assert (jobs[1].superseded_by, last.state, last.attempt) == (successor.id, State.COMPLETED, 1)
    assert [job.attempt for job in jobs] == [2, 1, 2, 2]
    begun = sorted(line for line in log.lines if line.endswith("begins"))
    assert begun == ["a 1 begins", "b 2 begins", "c 1 begins", "d 1 begins"], "b 1 was superseded"
