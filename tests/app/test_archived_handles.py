"""Handles of jobs that retention let go: they say that the job is archived, and later that nobody knows it."""

from __future__ import annotations

import asyncio

import pytest

from build import Clock, a_job
from rota import JobArchived, JobNotFound, Rota, State
from rota._core.retention import Pruning
from rota.stores.retention_contract import Retention

DAY = 86_400.0


@pytest.fixture
def add(app: Rota):
    @app.task
    def add(left: int, right: int) -> int:
        return left + right

    return add


@pytest.mark.req("V37", "D30")
async def test_an_archived_id_answers_archived_and_after_the_archives_time_it_is_not_found(
    app, add, work, clock: Clock
):
    handle = await add.enqueue(1, 2)
    await work(app)
    assert (await handle.status(), await handle) == (State.COMPLETED, 3)
    clock.advance(9 * DAY)
    await app.store.tidy(Retention())

    assert await handle.status() == "archived"
    assert await app.job(handle.id).status() == "archived"
    for ask in (handle.refresh, handle.result, handle.explain):
        with pytest.raises(JobArchived, match="ended completed") as caught:
            await ask()
        assert (caught.value.summary.task, caught.value.summary.attempts) == ("add", 1)
    clock.advance(400 * DAY)
    await app.store.tidy(Retention())
    for ask in (handle.status, handle.result):
        with pytest.raises(JobNotFound) as gone:
            await ask()
        assert not isinstance(gone.value, JobArchived)


async def test_a_duplicate_of_an_archived_job_is_told_so_at_once_and_does_not_wait(
    app, add, work, clock: Clock
):
    first = await add.using(key="order:7").enqueue(1, 2)
    await work(app)
    clock.advance(60)
    await app.store.prune(Pruning(older_than=0.0), Retention())
    second = await add.using(key="order:7").enqueue(1, 2)

    assert (second.id, second.created) == (first.id, False)
    async with asyncio.timeout(5):
        with pytest.raises(JobArchived):
            await second


async def test_whoever_waits_for_many_hears_of_the_archived_ones_and_of_the_others(
    app, add, work, clock: Clock
):
    old = await add.enqueue(1, 1)
    await work(app)
    clock.advance(9 * DAY)
    await app.store.tidy(Retention())
    new, unknown = await add.enqueue(2, 2), app.job(a_job().id)
    await work(app)

    answers = await asyncio.gather(old.result(), new.result(), unknown.result(), return_exceptions=True)
    assert [type(answer) for answer in answers] == [JobArchived, int, JobNotFound]
