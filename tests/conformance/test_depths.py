"""How deep the queues were: one sample a minute, however many look; a minute in which nobody looked says so."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from build import NOON, Clock, a_job, a_session, claim, failed
from rota._core.depths import Depth, DepthSlice
from rota._core.failure import ErrorClass
from rota.stores.contract import Store, Wanted

MINUTE = timedelta(minutes=1)


async def test_a_sample_counts_what_waits_runs_and_died_by_queue(store: Store, clock: Clock):
    await store.enqueue([a_job(queue="gone")])
    [job] = await claim(store, wanted=Wanted(1, ("gone",)))
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no")])
    await store.enqueue([a_job(queue="busy") for _ in range(3)])
    await claim(store, await a_session(store, lease=60), Wanted(2, ("busy",)))
    await store.enqueue([a_job("other", queue="busy", delay=600.0), a_job(queue="busy", priority=1)])
    await store.enqueue([a_job(queue="old", run_at=NOON - timedelta(seconds=90))])
    clock.advance(5)

    assert await store.note_depths()
    found = await store.depths(60.0, 60.0)
    assert (found.since, found.until, found.step) == (NOON - MINUTE, clock.now, 60.0)
    assert found.slices == (
        DepthSlice(NOON - MINUTE, None),
        DepthSlice(
            NOON,
            Depth(4, 2, 1, 95.0),
            {"busy": Depth(3, 2, 0, 5.0), "gone": Depth(0, 0, 1), "old": Depth(1, 0, 0, 95.0)},
        ),
    )
    assert found.slices[0].of("old") is None
    assert found.slices[1].of("empty") == Depth()


async def test_a_sample_tells_apart_who_waits_for_another_attempt(store: Store):
    await store.enqueue([a_job(queue="mail"), a_job(queue="mail"), a_job(queue="other")])
    [job] = await claim(store, wanted=Wanted(1, ("mail",)))
    await store.settle([failed(job, ErrorClass.RETRYABLE, "later")])
    await store.note_depths()

    last = (await store.depths(60.0, 60.0)).slices[-1]
    assert last.whole == Depth(3, retrying=1)
    assert last.queues == {"mail": Depth(2, retrying=1), "other": Depth(1)}


async def test_there_is_one_sample_a_minute_whoever_looks(store: Store, clock: Clock):
    noted = await asyncio.gather(*[store.note_depths() for _ in range(6)])
    await store.enqueue([a_job(queue="late")])

    assert sum(noted) == 1
    assert not await store.note_depths()
    assert (await store.depths(60.0, 60.0)).slices[-1] == DepthSlice(NOON, Depth())
    clock.advance(60)
    assert await store.note_depths()
    assert (await store.depths(60.0, 60.0)).slices[-1].of("late") == Depth(1, 0, 0, 60.0)


async def test_a_longer_slice_shows_the_most_of_its_samples(store: Store, clock: Clock):
    await store.enqueue([a_job(queue="a"), a_job(queue="b")])
    await store.note_depths()
    clock.advance(60)
    [_] = await claim(store, wanted=Wanted(1, ("a",)))
    await store.note_depths()

    [before, now] = (await store.depths(300.0, 300.0)).slices
    assert before.whole is None
    assert now == DepthSlice(
        NOON, Depth(2, 1, 0, 60.0), {"a": Depth(1, 1, 0, 0.0), "b": Depth(1, 0, 0, 60.0)}
    )


async def test_samples_are_kept_as_long_as_minutes(store: Store, clock: Clock):
    await store.enqueue([a_job()])
    await store.note_depths()
    clock.advance(13 * 86_400)
    await store.roll()
    assert any(one.whole for one in (await store.depths(14 * 86_400, 86_400)).slices)

    clock.advance(2 * 86_400)
    await store.roll()
    assert not any(one.whole for one in (await store.depths(30 * 86_400, 86_400)).slices)


async def test_slices_are_those_of_the_series(store: Store, clock: Clock):
    clock.advance(77)
    for since, step in ((3600.0, 60.0), (86_400.0, 900.0), (30 * 86_400.0, 21_600.0)):
        depths, series = await store.depths(since, step), await store.series(since, step)
        assert [one.start for one in depths.slices] == [one.start for one in series.slices]
    with pytest.raises(ValueError, match="whole minutes"):
        await store.depths(60.0, 1.0)
