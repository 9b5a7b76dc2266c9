"""What sessions did, minute by minute: absolute totals, merged once, never counted twice."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from build import NOON, Clock, a_job, claim, new_id
from rota._core.numbers import Ending, Figures, LaneTotal, Minute, TenantTotal, Total
from rota._core.queue import Queue
from rota.stores.contract import Store

HOUR = 3600.0


def sent(jobs: int, ending: Ending = Ending.COMPLETED, **fields) -> Total:
    return Total("mail", "send", ending, jobs, **fields)


def minute(*totals: Total, at=NOON, **fields) -> Minute:
    return Minute(at, totals, **fields)


async def told(store: Store, since: float = HOUR) -> dict[str, int]:
    return {total.ending: total.jobs for total in (await store.figures(since)).totals}


@pytest.mark.req("L5", "L31", "V24")
async def test_what_sessions_tell_is_added_up(store: Store, clock: Clock):
    waits, runs = {1: 2, 7: 1}, {3: 3}
    one = sent(3, wait_sum=1.5, run_sum=2.5, waits=waits, runs=runs)
    await store.note_minutes(
        new_id(), [minute(one, tenants=[TenantTotal("acme", 3, 1, 2.5)], lanes=[LaneTotal("fast", 30, 10)])]
    )
    two = sent(1, wait_sum=0.5, run_sum=0.5, waits={7: 1}, runs={2: 1})
    await store.note_minutes(
        new_id(),
        [
            minute(
                two,
                sent(1, Ending.DEAD),
                tenants=[TenantTotal("acme", 1), TenantTotal("", 2)],
                lanes=[LaneTotal("fast", 30, 20)],
            ),
            minute(sent(5), at=NOON - timedelta(minutes=1)),
        ],
    )
    clock.advance(30)

    found = await store.figures(HOUR)
    assert found.since == NOON - timedelta(hours=1)
    assert found.until == clock.now
    assert found.totals == (
        sent(9, wait_sum=2.0, run_sum=3.0, waits={1: 2, 7: 2}, runs={2: 1, 3: 3}),
        sent(1, Ending.DEAD),
    )
    assert found.tenants == (TenantTotal("", 2), TenantTotal("acme", 4, 1, 2.5))
    assert found.lanes == (LaneTotal("fast", 60, 30),)


async def test_the_last_word_on_a_minute_counts(store: Store, clock: Clock):
    session = new_id()
    for jobs in (3, 3, 8):  # a repeated answer, then more of the same minute
        await store.note_minutes(session, [minute(sent(jobs, runs={1: jobs}))])

    [total] = (await store.figures(HOUR)).totals
    assert (total.jobs, total.runs) == (8, {1: 8})


async def test_only_the_stretch_that_was_asked_for_counts(store: Store, clock: Clock):
    session = new_id()
    await store.note_minutes(session, [minute(sent(1)), minute(sent(2), at=NOON - timedelta(minutes=10))])
    clock.advance(59)

    assert await told(store, 120) == {"completed": 1}
    assert await told(store, 11 * 60) == {"completed": 3}


async def test_a_minute_that_is_long_over_is_no_longer_changed(store: Store, clock: Clock):
    session = new_id()
    await store.note_minutes(session, [minute(sent(3))])
    clock.advance(31 * 60)
    await store.note_minutes(session, [minute(sent(99), at=NOON)])

    assert await told(store) == {"completed": 3}


async def test_rolling_merges_what_is_over_and_changes_no_number(store: Store, clock: Clock):
    for number in range(4):
        session = new_id()
        await store.note_minutes(
            session,
            [
                minute(
                    sent(1, wait_sum=0.5, run_sum=0.25, waits={number: 1}, runs={5: 1}),
                    sent(1, Ending.FAILED),
                    tenants=[TenantTotal(f"t{number % 2}", 1, 1, 0.5)],
                    lanes=[LaneTotal("general", 5, number)],
                )
            ],
        )
    assert await store.roll() == 0  # sessions may still correct it
    clock.advance(41 * 60)
    before = await store.figures(HOUR)

    assert await store.roll() == 1
    assert await store.figures(HOUR) == before
    assert await store.roll() == 0
    assert await store.figures(HOUR) == before


async def test_many_who_roll_at_once_count_everything_once(store: Store, clock: Clock):
    for number in range(5):
        at = NOON + timedelta(minutes=number)
        clock.now = at
        for _ in range(5):
            await store.note_minutes(new_id(), [minute(sent(2, runs={3: 2}), at=at)])
    clock.advance(50 * 60)

    rolled = await asyncio.gather(*[store.roll() for _ in range(5)])
    assert sum(rolled) == 5
    [total] = (await store.figures(2 * HOUR)).totals
    assert (total.jobs, total.runs) == (50, {3: 50})


async def test_of_old_minutes_the_sum_of_the_hour_stays_for_a_quarter_of_a_year(store: Store, clock: Clock):
    """Nobody rolls for a fortnight: what was not yet added up is not lost by that."""
    clock.advance(600)
    done = minute(sent(3, waits={1: 3}, runs={2: 3}), at=clock.now, lanes=[LaneTotal("fast", 9, 3)])
    await store.note_minutes(new_id(), [done, minute(sent(1))])
    clock.advance(41 * 60)
    await store.roll()
    clock.advance(15 * 86_400)
    await store.roll()

    assert await told(store, 15 * 86_400 + 41 * 60) == {"completed": 4}  # the whole hour that it begins in
    assert await told(store, 15 * 86_400 - 41 * 60) == {}
    found = await store.figures(20 * 86_400)
    assert found.since.minute == 0
    assert found.totals == (sent(4, waits={1: 3}, runs={2: 3}),)
    assert found.lanes == (LaneTotal("fast", 9, 3),)
    clock.advance(60 * 86_400)
    await store.roll()
    assert await told(store, 80 * 86_400) == {"completed": 4}
    clock.advance(15 * 86_400)
    await store.roll()
    assert await told(store, 120 * 86_400) == {}


async def test_what_nobody_rolled_for_a_quarter_of_a_year_is_dropped_at_once(store: Store, clock: Clock):
    await store.note_minutes(new_id(), [minute(sent(1))])
    clock.advance(91 * 86_400)
    await store.roll()

    assert await told(store, 120 * 86_400) == {}


async def test_before_anybody_worked_there_is_nothing(store: Store, clock: Clock):
    assert await store.figures(60.0) == Figures(NOON - timedelta(minutes=1), NOON)
    assert await store.heads() == []


@pytest.mark.req("L14")
async def test_the_oldest_waiting_job_of_each_queue_is_known_exactly(store: Store, clock: Clock):
    await store.enqueue(
        [
            a_job(queue="mail", run_at=NOON - timedelta(minutes=5), priority=200),
            a_job(queue="mail", priority=1),
            a_job(queue="slow", run_at=NOON - timedelta(minutes=9), gate="serial::x"),
            a_job(queue="later", delay=60.0),
            a_job(queue="running"),
        ]
    )
    from rota.stores.contract import Wanted

    await claim(store, wanted=Wanted(1, ("running",)))

    assert [(head.queue, head.oldest) for head in await store.heads()] == [
        ("later", NOON + timedelta(seconds=60)),
        ("mail", NOON - timedelta(minutes=5)),
        ("slow", NOON - timedelta(minutes=9)),
    ]


async def test_the_newest_word_on_a_queue_counts_and_others_stay(store: Store, clock: Clock):
    await store.publish_queues([Queue("mail", target="30s"), Queue("slow", target="1h")])
    await store.publish_queues([Queue("mail", target="1m"), Queue("any")])

    assert await store.queues() == [Queue("any"), Queue("mail", target=60.0), Queue("slow", target=3600.0)]


async def test_a_long_stretch_is_the_same_before_and_after_its_hours_are_added_up(store: Store, clock: Clock):
    """Three and a half hours of work, asked for from the middle of an hour, from its start, and from long before."""
    session = new_id()
    worked: list[tuple[datetime, int]] = []
    for number in range(42):
        at = clock.now
        worked.append((at, 1 + number))
        told = sent(1 + number, wait_sum=1.0, run_sum=2.0, waits={number: 1, 3: 2}, runs={5: 1 + number})
        tenants, lanes = [TenantTotal("acme", number, 1, 2.0)], [LaneTotal("fast", 10, number)]
        await store.note_minutes(session, [minute(told, at=at, tenants=tenants, lanes=lanes)])
        clock.advance(300)
    stretches = (1800.0, 3600.0, 2 * HOUR + 600, 3 * HOUR, 4 * HOUR, 50 * HOUR)
    before = [await store.figures(since) for since in stretches]
    assert [sum(total.jobs for total in figures.totals) for figures in before] == [
        sum(jobs for at, jobs in worked if at >= clock.now - timedelta(seconds=since)) for since in stretches
    ]

    await asyncio.gather(store.roll(), store.roll())

    assert [await store.figures(since) for since in stretches] == before
    clock.advance(7200)
    await store.roll()
    later = await store.figures(6 * HOUR)
    assert (later.totals, later.tenants, later.lanes) == before[-1][2:]
