"""Ticks with both sides held still: who ticks holds the schedule, and nobody waits for him."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from build import new_id
from rota._core.actions import Audit
from rota._core.schedule import (
    Edits,
    Fate,
    Firing,
    Origin,
    ScheduleChange,
    ScheduleSpec,
    TickJob,
    job_for,
)
from rota.stores.contract import Retention
from rota.stores.postgres.encoding import as_json

SPEC = ScheduleSpec("nightly", "email", '{"payload": {}}', "0 * * * *")
BY_ADA = Audit("ada", "run", None, about="schedule:nightly")
FIRE = "SELECT outcome, job FROM rota.fire(%s::jsonb, NULL, clock_timestamp())"


@pytest.fixture
async def record(store):
    await store.publish_schedules([SPEC])
    [found] = (await store.roster()).schedules
    return found


def a_firing(record, tick, origin=Origin.TICK) -> Firing:
    job = job_for(record.effective, tick, new_id())
    return Firing(record.name, (TickJob(tick, tick, job),), origin, record.version, tick)


def as_text(firing: Firing) -> str:
    ticks = [
        {
            "tick": given.tick.isoformat(),
            "due": given.due.isoformat(),
            "job": json.loads(as_json([given.job]))[0],
        }
        for given in firing.ticks
    ]
    told = {"schedule": firing.schedule, "origin": firing.origin, "version": firing.version}
    return json.dumps(told | {"cursor": firing.cursor.isoformat(), "ticks": ticks})


@pytest.fixture
async def tick(store, record):
    """A tick that has just come."""
    await asyncio.sleep(0.002)
    return record.cursor + timedelta(milliseconds=1)


@pytest.mark.scenario(19)
async def test_a_tick_that_somebody_is_taking_is_left_to_him_and_not_waited_for(store, side, record, tick):
    [(outcome, _)] = await side.execute(FIRE, [as_text(a_firing(record, tick))])
    async with asyncio.timeout(2):
        [mine] = await store.fire(a_firing(record, tick))
    await side.commit()
    [again] = await store.fire(a_firing(record, tick))

    assert (outcome, mine.fate, again.fate) == ("enqueued", Fate.STALE, Fate.ALREADY)


async def test_a_tick_whose_taker_fell_over_is_taken_by_the_next(store, side, record, tick):
    await side.execute(FIRE, [as_text(a_firing(record, tick))])
    await side.rollback()

    [mine] = await store.fire(a_firing(record, tick))

    assert mine.fate is Fate.ENQUEUED


async def test_a_run_by_hand_waits_for_the_scheduler_and_sees_what_it_did(store, side, waits, record, tick):
    [(_, job)] = await side.execute(FIRE, [as_text(a_firing(record, tick))])
    async with waits(store.fire(a_firing(record, tick, Origin.BACKFILL), BY_ADA)) as by_hand:
        await side.commit()
        [fired] = await by_hand

    assert (fired.fate, fired.job_id) == (Fate.ALREADY, job)
    assert await store.audit() == []


async def test_the_key_of_the_ticks_decides_even_where_no_lock_does(store, side, waits, record, tick):
    """As if a scheduler did not hold the schedule's row: the second one waits at the key, and makes no job."""
    await side.execute(
        "INSERT INTO rota.schedule_ticks VALUES ('nightly', %s, 'tick', 'enqueued', %s, now())",
        [tick, new_id()],
    )
    async with waits(store.fire(a_firing(record, tick))) as second:
        await side.commit()
        [fired] = await second

    assert fired.fate is Fate.ALREADY
    assert await store.counts() == []


async def test_a_pause_that_is_not_committed_yet_keeps_the_tick_for_the_next_look(store, side, record, tick):
    await side.execute("UPDATE rota.schedules SET paused_at = now(), version = version + 1")
    [during] = await store.fire(a_firing(record, tick))
    await side.commit()
    [after] = await store.fire(a_firing(record, tick))

    assert (during.fate, after.fate) == (Fate.STALE, Fate.STALE)
    assert await store.counts() == []


async def test_two_operators_at_once_one_of_them_hears_that_he_was_late(store, side, waits, record):
    await side.execute("UPDATE rota.schedules SET edited_cap = 3, version = version + 1")
    change = ScheduleChange("nightly", record.version, Edits(cap=5), paused=False)
    async with waits(store.change_schedule(change, BY_ADA)) as second:
        await side.commit()
        answer = await second

    assert answer is None
    assert (await store.roster()).schedules[0].edits.cap == 3


async def test_the_janitor_passes_over_a_schedule_that_is_being_ticked(store, side, record, tick):
    await store.fire(a_firing(record, tick))
    await side.execute("SELECT FROM rota.schedules FOR UPDATE")
    async with asyncio.timeout(5):
        tidied = await store.tidy(Retention(ticks=0.0, ticks_kept=0))

    assert tidied.ticks == 0
    await side.rollback()
    assert (await store.tidy(Retention(ticks=0.0, ticks_kept=0))).ticks == 1
    [forgotten] = await store.fire(a_firing(record, tick, Origin.BACKFILL))
    assert forgotten.fate is Fate.FORGOTTEN


async def vanished(side) -> None:
    """No worker's code has had it for an hour; the side's next transaction is open."""
    await side.execute("UPDATE rota.schedules SET seen_at = now() - interval '1 hour'")
    await side.commit()
    await side.execute("BEGIN")


async def test_seeing_a_schedule_does_not_wait_for_whoever_holds_it(store, side, record):
    await vanished(side)
    await side.execute("SELECT FROM rota.schedules FOR UPDATE")
    async with asyncio.timeout(2):
        roster = await store.roster(["nightly"])

    assert roster.schedules[0].status(roster.now) == "absent"


async def test_a_deletion_waits_for_whoever_fires_and_takes_that_tick_along(store, side, waits, record, tick):
    await vanished(side)
    await side.execute(FIRE, [as_text(a_firing(record, tick, Origin.BACKFILL))])
    async with waits(store.delete_schedule("nightly", record.version, BY_ADA)) as deletion:
        await side.commit()
        assert await deletion

    assert await store.ticks("nightly") == []


async def test_a_worker_that_comes_back_while_its_schedule_is_deleted_keeps_it(store, side, waits, record):
    await vanished(side)
    await side.execute("UPDATE rota.schedules SET seen_at = now()")
    async with waits(store.delete_schedule("nightly", record.version, BY_ADA)) as deletion:
        await side.commit()
        assert not await deletion

    assert (len((await store.roster()).schedules), await store.audit()) == (1, [])


async def test_a_change_whose_answer_was_lost_is_made_and_told_once(store, side, record, monkeypatch):
    await side.rollback()
    connections = store._desks().connections
    pause = ScheduleChange("nightly", record.version, record.edits, paused=True, reason="the warehouse moves")

    async def lost_and_repeated(call, **_):
        connection = await connections.connect()
        try:
            return await call(connection, False), await call(connection, True)
        finally:
            await connection.close()

    with monkeypatch.context() as faulty:
        faulty.setattr(connections, "run", lost_and_repeated)
        first, again = await store.change_schedule(pause, BY_ADA)

    assert first is not None
    assert again == first
    assert len(await store.audit()) == 1
    assert await store.change_schedule(pause, BY_ADA) is None, "somebody else's old version is no repeat"


async def test_a_deletion_whose_answer_was_lost_is_done_when_it_is_repeated(store, side, record, monkeypatch):
    await vanished(side)
    await side.rollback()
    connections = store._desks().connections

    async def lost_and_repeated(call, **_):
        connection = await connections.connect()
        try:
            return await call(connection, False), await call(connection, True)
        finally:
            await connection.close()

    with monkeypatch.context() as faulty:
        faulty.setattr(connections, "run", lost_and_repeated)
        answers = await store.delete_schedule("nightly", record.version, BY_ADA)

    assert answers == (True, True)
    assert len(await store.audit()) == 1
