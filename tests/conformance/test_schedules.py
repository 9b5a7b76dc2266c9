"""Schedules: "turn ticks into jobs, each (schedule, tick) into one at most, for ever"."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from build import Clock, a_job, by_hand, claim, completed, new_id, read
from rota._core.actions import Audit, Verb
from rota._core.job import NewJob, OnDuplicate, Scope, State
from rota._core.schedule import (
    Edits,
    Fate,
    Firing,
    Misfire,
    Origin,
    Overlap,
    ScheduleChange,
    ScheduleSpec,
    TickJob,
    job_for,
    template_of,
)
from rota.stores.contract import Retention, Store

HOUR = timedelta(hours=1)
BY_ADA = Audit("ada", "run", None, "because", about="schedule:nightly")
FULL = ScheduleSpec(
    name="nightly",
    task="report",
    template_json=template_of(
        NewJob(
            new_id(),
            "report",
            '{"region": "eu", "days": [1, 2]}',
            queue="slow",
            priority=50,
            max_attempts=2,
            timeout=9.5,
            tenant="acme",
            tags=("a", "b"),
            unique_key="u",
            unique_scope=Scope.FINISHED,
            on_duplicate=OnDuplicate.MERGE,
        )
    ),
    timing="30 2 * * *",
    tz="Europe/Berlin",
    jitter=12.5,
    overlap=Overlap.ALLOW,
    misfire=Misfire.ALL,
    cap=7,
    grace=90.0,
    windows=("0 1 * * SUN for 2h",),
)
PLAIN = ScheduleSpec("nightly", "email", '{"payload": {}}', "0 * * * *")


async def a_schedule(store: Store, spec: ScheduleSpec = PLAIN):
    await store.publish_schedules([spec])
    [record] = (await store.roster([spec.name])).schedules
    return record


def firing(record, *ticks, origin=Origin.TICK, version=None, cursor=True) -> Firing:
    jobs = tuple(TickJob(tick, tick, job_for(record.effective, tick, new_id())) for tick in ticks)
    return Firing(
        record.name,
        jobs,
        origin,
        record.version if version is None else version,
        ticks[-1] if cursor else None,
    )


async def fates(store: Store, given: Firing, audit: Audit | None = None) -> list[Fate]:
    return [one.fate for one in await store.fire(given, audit)]


async def waiting(store: Store) -> int:
    return sum(count.jobs for count in await store.counts())


def plain(spec: ScheduleSpec) -> ScheduleSpec:
    return spec._replace(template_json=json.dumps(json.loads(spec.template_json), sort_keys=True))


async def test_a_schedule_is_known_with_everything_that_was_said_of_it(store: Store, clock: Clock):
    record = await a_schedule(store, FULL)

    assert plain(record.spec) == plain(FULL)
    assert record.effective == record.spec
    assert (record.version, record.cursor, record.published_at, record.seen_at) == (1, *[clock.now] * 3)
    assert (record.edits, record.paused_at, record.status(clock.now)) == (Edits(), None, "active")


async def test_the_job_of_a_tick_is_what_was_prepared_and_knows_its_tick(store: Store, clock: Clock):
    record = await a_schedule(store, FULL)
    tick = clock.now + timedelta(seconds=5)
    clock.advance(20)
    [fired] = await store.fire(firing(record, tick))
    job = await read(store, fired.job_id)

    assert (job.task, job.payload, job.queue, job.priority) == (
        "report",
        {"region": "eu", "days": [1, 2]},
        "slow",
        50,
    )
    assert (job.max_attempts, job.timeout, job.tenant, job.tags) == (2, 9.5, "acme", ("a", "b"))
    assert (job.unique_key, job.unique_scope) == ("u", "finished")
    assert (job.schedule, job.tick, job.created_by) == ("nightly", tick, "schedule:nightly")
    assert (job.state, job.run_at) == (State.PENDING, clock.now)


@pytest.mark.req("L25")
async def test_one_tick_is_one_job_however_many_schedulers_fire_it(store: Store, clock: Clock):
    record = await a_schedule(store)
    clock.advance(3600)
    tick = clock.now
    answers = await asyncio.gather(*(store.fire(firing(record, tick)) for _ in range(8)))
    found = [one.fate for [one] in answers]

    assert found.count(Fate.ENQUEUED) == 1
    assert set(found) <= {Fate.ENQUEUED, Fate.ALREADY, Fate.STALE}
    assert await waiting(store) == 1
    assert (await store.roster()).schedules[0].cursor == tick


@pytest.mark.parametrize("end", ["completed", "deleted"])
@pytest.mark.parametrize("origin", list(Origin))
async def test_a_tick_stays_one_job_when_that_job_is_long_gone(
    store: Store, clock: Clock, end: str, origin: Origin
):
    record = await a_schedule(store)
    clock.advance(3600)
    tick = clock.now
    [first] = await store.fire(firing(record, tick, cursor=False))
    if end == "completed":
        [job] = await claim(store)
        await store.settle([completed(job)])
    else:
        await by_hand(store, await read(store, first.job_id), Verb.DELETE)
    clock.advance(60)

    [again] = await store.fire(firing(record, tick, origin=origin))

    assert (again.fate, again.job_id) == (Fate.ALREADY, first.job_id)
    assert await waiting(store) == 0


async def test_a_tick_that_was_passed_over_is_not_enqueued_by_a_slower_scheduler(store: Store, clock: Clock):
    """The policy let only the newest of the missed ticks run. Whoever reckoned before that comes too late."""
    record = await a_schedule(store, PLAIN._replace(overlap=Overlap.ALLOW))
    older, newest = record.cursor + HOUR, record.cursor + 2 * HOUR
    clock.advance(3 * 3600)

    assert await fates(store, firing(record, newest)) == [Fate.ENQUEUED]
    assert await fates(store, firing(record, older)) == [Fate.ALREADY]
    assert await waiting(store) == 1


async def test_the_same_call_again_after_a_lost_answer_is_answered_as_before(store: Store, clock: Clock):
    record = await a_schedule(store)
    clock.advance(3600)
    given = firing(record, clock.now, origin=Origin.RUN)

    assert await store.fire(given, BY_ADA) == await store.fire(given, BY_ADA)
    assert await waiting(store) == 1
    assert len(await store.audit(about="schedule:nightly")) == 1


async def test_no_tick_is_enqueued_before_it_is_due(store: Store, clock: Clock):
    record = await a_schedule(store)
    now, later = clock.now + HOUR, clock.now + 2 * HOUR
    clock.advance(3600)

    assert await fates(store, firing(record, now, later)) == [Fate.ENQUEUED, Fate.EARLY]
    assert (await store.roster()).schedules[0].cursor < later
    clock.advance(3600)
    [record] = (await store.roster()).schedules
    await store.settle([completed(job) for job in await claim(store)])
    assert await fates(store, firing(record, later)) == [Fate.ENQUEUED]


async def test_a_tick_is_left_out_while_the_job_of_the_one_before_is_unfinished(store: Store, clock: Clock):
    record = await a_schedule(store)
    ticks = [clock.now + n * HOUR for n in range(1, 5)]
    clock.advance(5 * 3600)

    assert await fates(store, firing(record, ticks[0])) == [Fate.ENQUEUED]
    assert await fates(store, firing(record, ticks[1])) == [Fate.OVERLAP]
    [job] = await claim(store)
    assert await fates(store, firing(record, ticks[2])) == [Fate.OVERLAP]
    await store.settle([completed(job)])
    assert await fates(store, firing(record, ticks[3])) == [Fate.ENQUEUED]
    assert [seen.fate for seen in await store.ticks("nightly")] == [
        Fate.ENQUEUED, Fate.OVERLAP, Fate.OVERLAP, Fate.ENQUEUED
    ]  # fmt: skip


async def test_overlapping_jobs_are_made_where_that_is_allowed(store: Store, clock: Clock):
    record = await a_schedule(store, PLAIN._replace(overlap=Overlap.ALLOW))
    ticks = [clock.now + n * HOUR for n in range(1, 4)]
    clock.advance(4 * 3600)

    assert await fates(store, firing(record, *ticks)) == [Fate.ENQUEUED] * 3
    assert [seen.tick for seen in await store.ticks("nightly", limit=2)] == [ticks[2], ticks[1]]


async def test_a_run_by_hand_counts_as_the_last_one_but_a_backfill_does_not(store: Store, clock: Clock):
    record = await a_schedule(store)
    past, first, second = clock.now - HOUR, clock.now + HOUR, clock.now + 2 * HOUR
    clock.advance(3 * 3600)

    assert await fates(store, firing(record, past, origin=Origin.BACKFILL, cursor=False)) == [Fate.ENQUEUED]
    assert await fates(store, firing(record, first)) == [Fate.ENQUEUED]
    await store.settle([completed(job) for job in await claim(store)])
    assert await fates(store, firing(record, clock.now, origin=Origin.RUN, cursor=False)) == [Fate.ENQUEUED]
    assert await fates(store, firing(record, second)) == [Fate.OVERLAP]


async def test_a_tick_that_was_left_out_can_be_made_good_by_hand(store: Store, clock: Clock):
    record = await a_schedule(store)
    first, second = clock.now + HOUR, clock.now + 2 * HOUR
    clock.advance(3 * 3600)
    await store.fire(firing(record, first, second))

    assert await fates(store, firing(record, second, origin=Origin.BACKFILL)) == [Fate.ENQUEUED]
    assert await fates(store, firing(record, second, origin=Origin.BACKFILL)) == [Fate.ALREADY]


async def test_a_unique_key_that_is_taken_makes_the_tick_a_duplicate_of_that_job(store: Store, clock: Clock):
    template = template_of(a_job(unique_key="u", unique_scope=Scope.STARTED))
    record = await a_schedule(store, PLAIN._replace(template_json=template, overlap=Overlap.ALLOW))
    waiting_job = a_job(unique_key="u", unique_scope=Scope.STARTED)
    await store.enqueue([waiting_job])
    clock.advance(3600)

    [fired] = await store.fire(firing(record, clock.now))

    assert (fired.fate, fired.job_id) == (Fate.DUPLICATE, waiting_job.id)
    assert [seen.job_id for seen in await store.ticks("nightly")] == [waiting_job.id]


@pytest.mark.parametrize("what", ["edited", "paused", "published anew"])
async def test_what_was_computed_from_an_older_schedule_is_not_enqueued(
    store: Store, clock: Clock, what: str
):
    record = await a_schedule(store)
    clock.advance(3600)
    if what == "published anew":
        await store.publish_schedules([PLAIN._replace(timing="5 * * * *")])
    else:
        edits = Edits(tz="Asia/Tokyo") if what == "edited" else Edits()
        change = ScheduleChange("nightly", record.version, edits, paused=what == "paused")
        assert await store.change_schedule(change, BY_ADA)

    assert await fates(store, firing(record, clock.now)) == [Fate.STALE]
    if what == "paused":
        assert await fates(store, firing(record, clock.now, version=record.version + 1)) == [Fate.STALE]
    assert await waiting(store) == 0


async def test_by_hand_a_paused_schedule_can_be_run_and_an_unknown_one_cannot(store: Store, clock: Clock):
    record = await a_schedule(store)
    await store.change_schedule(ScheduleChange("nightly", 1, Edits(), paused=True), BY_ADA)

    assert await fates(store, firing(record, clock.now, origin=Origin.RUN), BY_ADA) == [Fate.ENQUEUED]
    stranger = record._replace(spec=record.spec._replace(name="hourly"))
    assert await fates(store, firing(stranger, clock.now, origin=Origin.RUN), BY_ADA) == [Fate.STALE]


async def test_old_ticks_are_let_go_but_can_never_become_jobs_again(store: Store, clock: Clock):
    record = await a_schedule(store, PLAIN._replace(overlap=Overlap.ALLOW))
    ticks = [clock.now + n * HOUR for n in range(1, 7)]
    clock.advance(7 * 3600)
    await store.fire(firing(record, *ticks))
    lately = Retention(ticks=3.5 * 3600, ticks_kept=2)

    assert (await store.tidy(lately)).ticks == 3
    assert (await store.tidy(lately)).ticks == 0
    assert [seen.tick for seen in await store.ticks("nightly")] == list(reversed(ticks[3:]))
    assert (await store.roster()).schedules[0].forgotten_until == ticks[2]
    old = firing(record, ticks[0] - HOUR, ticks[0], ticks[2], ticks[3], origin=Origin.BACKFILL, cursor=False)
    assert await fates(store, old) == [Fate.FORGOTTEN, Fate.FORGOTTEN, Fate.FORGOTTEN, Fate.ALREADY]
    assert (await store.tidy(Retention(ticks=0.0, ticks_kept=10))).ticks == 0, "the newest stay, however old"


async def test_a_tick_shows_what_became_of_its_job(store: Store, clock: Clock):
    record = await a_schedule(store, PLAIN._replace(overlap=Overlap.ALLOW))
    done, gone = clock.now + HOUR, clock.now + 2 * HOUR
    clock.advance(3 * 3600)
    first, second = await store.fire(firing(record, done, gone))
    await by_hand(store, await read(store, second.job_id), Verb.DELETE)
    await store.settle([completed(job) for job in await claim(store)])

    newest, oldest = await store.ticks("nightly")

    assert (newest.tick, newest.job_id, newest.state) == (gone, second.job_id, None)
    assert (oldest.tick, oldest.job_id, oldest.state) == (done, first.job_id, State.COMPLETED)
    assert (oldest.origin, oldest.fate, oldest.at) == (Origin.TICK, Fate.ENQUEUED, clock.now)
    assert await store.ticks("unknown") == []


async def test_a_tick_still_says_how_its_job_ended_when_only_the_archive_knows(store: Store, clock: Clock):
    record = await a_schedule(store)
    clock.advance(3600)
    [fired] = await store.fire(firing(record, clock.now))
    await store.settle([completed(job) for job in await claim(store)])
    clock.advance(40 * 86_400)
    await store.tidy(Retention())
    await store.tidy(Retention())

    [tick] = await store.ticks("nightly")
    [day] = await store.tick_days("nightly", clock.now - timedelta(days=60), late=60.0, limit=100)

    assert (await store.archived([tick.job_id]))[0].id == fired.job_id == tick.job_id
    assert (tick.state, day.state, day.ticks) == (State.COMPLETED, State.COMPLETED, 1)


async def test_ticks_are_counted_by_day_and_by_what_became_of_them(store: Store, clock: Clock):
    """What became of the ticks since a moment, counted by day; those taken more than `late` seconds late apart."""
    record = await a_schedule(store, PLAIN._replace(overlap=Overlap.ALLOW))
    start = clock.now.replace(hour=22, minute=0, second=0)
    before, *ticks = [start + HOUR * number for number in range(-1, 5)]
    clock.now = ticks[0]
    await store.fire(firing(record, before, ticks[0]))
    await store.settle([completed(job) for job in await claim(store)])
    clock.now = ticks[-1]
    fired = await store.fire(firing(record, *ticks[1:]))
    await by_hand(store, await read(store, fired[0].job_id), Verb.DELETE)
    clock.advance(60)
    await store.fire(firing(record, clock.now, origin=Origin.RUN, cursor=False))
    clock.advance(3540)
    left_out = await a_schedule(store, PLAIN._replace(overlap=Overlap.SKIP))
    [skipped] = await store.fire(firing(left_out, ticks[-1] + HOUR))

    days = await store.tick_days("nightly", ticks[0], late=60.0, limit=100)

    told = {(day.day.day, day.origin, day.fate, day.late, day.state): (day.ticks, day.newest) for day in days}
    first, second = ticks[0].day, ticks[-1].day
    assert skipped.fate is Fate.OVERLAP
    assert told == {
        (first, Origin.TICK, Fate.ENQUEUED, False, State.COMPLETED): (1, ticks[0]),
        (first, Origin.TICK, Fate.ENQUEUED, True, None): (1, ticks[1]),
        (second, Origin.TICK, Fate.ENQUEUED, True, State.PENDING): (2, ticks[3]),
        (second, Origin.TICK, Fate.ENQUEUED, False, State.PENDING): (1, ticks[4]),
        (second, Origin.RUN, Fate.ENQUEUED, False, State.PENDING): (1, ticks[-1] + timedelta(minutes=1)),
        (second, Origin.TICK, Fate.OVERLAP, False, None): (1, ticks[-1] + HOUR),
    }
    assert await store.tick_days("unknown", ticks[0], late=60.0, limit=100) == []
    newest = await store.tick_days("nightly", ticks[0], late=60.0, limit=2)
    assert sorted(day.newest for day in newest) == [ticks[-1] + timedelta(minutes=1), ticks[-1] + HOUR]
