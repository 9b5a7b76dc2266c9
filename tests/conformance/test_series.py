"""Numbers along time, for charts: slices at multiples of the step, empty ones too, the same from minutes and hours."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from build import NOON, Clock, new_id
from rota._core.numbers import Ending, Minute, TenantTotal, Total
from rota._core.series import Slice
from rota.stores.contract import Store

HOUR = 3600.0
DAY = 24 * HOUR


def total(
    jobs: int, queue: str = "mail", task: str = "send", ending: Ending = Ending.COMPLETED, **more
) -> Total:
    return Total(queue, task, ending, jobs, **more)


async def worked(store: Store, at: datetime, *totals: Total) -> None:
    await store.note_minutes(new_id(), [Minute(at, totals)])


async def test_each_slice_holds_what_ended_in_it_added_up(store: Store, clock: Clock):
    early, late = NOON - timedelta(minutes=13), NOON - timedelta(minutes=6)
    await worked(
        store, early, total(1, wait_sum=1.0, waits={3: 1}, runs={5: 1}), total(2, ending=Ending.DEAD)
    )
    await worked(store, early + timedelta(minutes=1), total(4, run_sum=2.0, waits={3: 4}, runs={6: 4}))
    await worked(store, late, total(8, queue="slow"), total(3, task="post"))
    clock.advance(150)

    found = await store.series(900.0, 300.0)
    assert (found.since, found.until, found.step) == (NOON - timedelta(minutes=15), clock.now, 300.0)
    assert found.slices == (
        Slice(
            NOON - timedelta(minutes=15),
            (
                total(5, wait_sum=1.0, run_sum=2.0, waits={3: 5}, runs={5: 1, 6: 4}),
                total(2, ending=Ending.DEAD),
            ),
        ),
        Slice(NOON - timedelta(minutes=10), (total(3, task="post"), total(8, queue="slow"))),
        Slice(NOON - timedelta(minutes=5)),
        Slice(NOON),
    )


async def test_it_is_of_one_queue_or_one_task_where_that_is_asked(store: Store, clock: Clock):
    await worked(store, NOON, total(1), total(2, queue="slow"), total(4, task="post"))

    assert (await store.series(60.0, 60.0, queue="mail")).slices[-1].totals == (
        total(4, task="post"),
        total(1),
    )
    assert (await store.series(60.0, 60.0, task="send")).slices[-1].totals == (
        total(1),
        total(2, queue="slow"),
    )
    assert (await store.series(60.0, 60.0, queue="mail", task="send")).slices[-1].totals == (total(1),)


async def test_all_queues_and_tasks_can_be_asked_for_together(store: Store, clock: Clock):
    await worked(
        store, NOON, total(1, runs={2: 1}), total(2, queue="slow", runs={2: 1, 3: 1}), total(4, task="post")
    )
    await worked(store, NOON, total(5, ending=Ending.DEAD))

    assert (await store.series(60.0, 60.0, apart=False)).slices[-1].totals == (
        total(7, queue="", task="", runs={2: 2, 3: 1}),
        total(5, queue="", task="", ending=Ending.DEAD),
    )


async def test_before_anybody_worked_all_slices_are_there_and_empty(store: Store, clock: Clock):
    found = await store.series(HOUR, 60.0)

    assert [one.start for one in found.slices] == [NOON - timedelta(minutes=60 - n) for n in range(61)]
    assert not any(one.totals for one in found.slices)


async def test_a_series_is_the_same_before_and_after_its_hours_are_added_up(store: Store, clock: Clock):
    for number in range(40):
        await worked(store, clock.now, total(number + 1, waits={number: 1}, runs={5: number + 1}))
        clock.advance(420)
    asked = [(6 * HOUR, 300.0), (6 * HOUR, HOUR), (DAY, 2 * HOUR), (2 * HOUR, 7200.0), (90 * DAY, DAY)]
    before = [await store.series(since, step) for since, step in asked]
    counted = [sum(one.jobs for part in series.slices for one in part.totals) for series in before]
    assert counted[0] == counted[1] == counted[2] == counted[-1] == sum(range(1, 41))

    await asyncio.gather(store.roll(), store.roll())

    assert [await store.series(since, step) for since, step in asked] == before


async def test_what_is_no_longer_kept_by_the_minute_is_still_drawn_by_the_hour(store: Store, clock: Clock):
    await worked(store, clock.now, total(3, runs={4: 3}))
    clock.advance(2 * HOUR)
    await store.roll()
    clock.advance(20 * DAY)
    await store.roll()

    month = await store.series(30 * DAY, 6 * HOUR)
    assert [(one.start, one.totals) for one in month.slices if one.totals] == [
        (NOON, (total(3, runs={4: 3}),))
    ]
    with pytest.raises(ValueError, match="kept by the hour"):
        await store.series(30 * DAY, 1800.0)


@pytest.mark.parametrize(
    ("since", "step", "why"),
    [
        (HOUR, 30.0, "whole minutes"),
        (HOUR, 90.0, "whole minutes"),
        (HOUR, 0.0, "whole minutes"),
        (HOUR, float("nan"), "whole minutes"),
        (HOUR, 8 * DAY, "a day at most"),
        (0.0, 60.0, "90 days"),
        (91 * DAY, DAY, "90 days"),
        (7 * DAY, 60.0, "longer step"),
    ],
)
async def test_a_step_in_which_nothing_is_kept_is_refused(store: Store, since: float, step: float, why: str):
    with pytest.raises(ValueError, match=why):
        await store.series(since, step)


async def test_the_tenants_that_took_most_of_the_time_are_told_apart_and_the_rest_is_one(
    store: Store, clock: Clock
):
    """For whom attempts ran in the last so many seconds, in the slices of `series`; the `top` tenants apart."""

    async def ran(at: datetime, **tenants: float) -> None:
        totals = tuple(TenantTotal(name.strip("_"), 1, 0, seconds) for name, seconds in tenants.items())
        await store.note_minutes(new_id(), [Minute(at, (), totals)])

    early, late = NOON - timedelta(minutes=13), NOON - timedelta(minutes=6)
    await ran(early, acme=10.0, _=2.0, small=0.5)
    await ran(early + timedelta(minutes=1), acme=5.0)
    await ran(late, globex=30.0, tiny=0.25)
    clock.advance(150)

    found = await store.tenant_series(900.0, 300.0, top=3)
    assert (found.since, found.until, found.step) == (NOON - timedelta(minutes=15), clock.now, 300.0)
    assert found.tenants == ("globex", "acme", "")
    assert [one.ran for one in found.slices] == [
        (0.0, 15.0, 2.0, 0.5),
        (30.0, 0.0, 0.0, 0.25),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
    ]
    clock.advance(2 * DAY)
    await store.roll()
    whole = await store.tenant_series(3 * DAY, DAY, top=9)
    assert whole.tenants == ("globex", "acme", "", "small", "tiny")
    assert [sum(one.ran) for one in whole.slices] == [0.0, 47.75, 0.0, 0.0]
