"""What the code and operators say of schedules: "the newest publication wins, and what operators set stays"."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import Clock, a_running_job, by_hand, new_id
from rota._core.actions import Audit, Verb
from rota._core.schedule import (
    ABSENT_AFTER,
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
)
from rota.stores.contract import Store

BY_ADA = Audit("ada", "edit", None, "because", about="schedule:nightly")
PLAIN = ScheduleSpec("nightly", "email", '{"payload": {}}', "0 * * * *")


async def a_schedule(store: Store, spec: ScheduleSpec = PLAIN):
    await store.publish_schedules([spec])
    [record] = (await store.roster([spec.name])).schedules
    return record


async def test_a_schedule_that_is_published_again_as_it_was_is_only_seen(store: Store, clock: Clock):
    before = await a_schedule(store)
    clock.advance(60)
    after = await a_schedule(store)

    assert (after.version, after.cursor) == (before.version, before.cursor)
    assert after.seen_at == after.published_at == clock.now


async def test_other_times_count_from_now_and_other_words_do_not(store: Store, clock: Clock):
    record = await a_schedule(store)
    begun = clock.now
    clock.advance(60)
    worded = await a_schedule(
        store, PLAIN._replace(misfire=Misfire.SKIP, template_json='{"payload": {"a": 1}}')
    )
    clock.advance(60)
    moved = await a_schedule(store, PLAIN._replace(timing="5 * * * *"))
    clock.advance(60)
    zoned = await a_schedule(store, PLAIN._replace(timing="5 * * * *", tz="Asia/Tokyo"))

    assert [each.version for each in (record, worded, moved, zoned)] == [1, 2, 3, 4]
    assert worded.cursor == begun
    assert (moved.cursor, zoned.cursor) == (clock.now - timedelta(seconds=60), clock.now)


@pytest.mark.req("V34")
async def test_what_operators_set_wins_over_code_until_it_is_reset(store: Store, clock: Clock):
    record = await a_schedule(store)
    edits = Edits(
        timing="every 5m", tz="Asia/Tokyo", jitter=3.0, overlap=Overlap.ALLOW, misfire=Misfire.ALL, cap=3, grace=5.0,
        windows=("0 1 * * * for 1h",), queue="fast", priority=7, payload_json='{"region": "us"}',
    )  # fmt: skip
    changed = await store.change_schedule(ScheduleChange("nightly", 1, edits, paused=False), BY_ADA)
    assert changed is not None
    published = await a_schedule(store, PLAIN._replace(timing="7 * * * *", cap=9))
    effective = published.effective

    assert published.edits == edits
    assert changed.effective._replace(template_json="") == effective._replace(template_json="")
    assert effective == published.spec._replace(
        timing="every 5m", tz="Asia/Tokyo", jitter=3.0, overlap=Overlap.ALLOW, misfire=Misfire.ALL, cap=3, grace=5.0,
        windows=("0 1 * * * for 1h",), template_json=effective.template_json,
    )  # fmt: skip
    job = job_for(effective, clock.now, new_id())
    assert (job.queue, job.priority, job.payload_json) == ("fast", 7, '{"region": "us"}')
    assert published.cursor == record.cursor, "its times did not change: the operator's hold"

    reset = await store.change_schedule(
        ScheduleChange("nightly", published.version, Edits(), paused=False, restart=True), BY_ADA
    )
    assert reset is not None
    assert (reset.effective.timing, reset.effective.cap, reset.cursor) == ("7 * * * *", 9, clock.now)


async def test_a_pause_keeps_who_and_why_and_the_first_pause_counts(store: Store, clock: Clock):
    record = await a_schedule(store)
    first = await store.change_schedule(
        ScheduleChange("nightly", record.version, Edits(), paused=True, reason="moving"), BY_ADA
    )
    assert first is not None
    paused_at = clock.now
    clock.advance(60)
    again = await store.change_schedule(
        ScheduleChange("nightly", first.version, Edits(cap=2), paused=True, reason="again"),
        BY_ADA._replace(actor="bob"),
    )
    assert again is not None
    resumed = await store.change_schedule(
        ScheduleChange("nightly", again.version, again.edits, paused=False, restart=True), BY_ADA
    )
    assert resumed is not None

    assert (again.paused_at, again.paused_by, again.paused_because) == (paused_at, "ada", "moving")
    assert (resumed.paused_at, resumed.paused_by, resumed.paused_because) == (None, None, None)
    assert (resumed.edits, resumed.cursor) == (Edits(cap=2), clock.now)


async def test_a_change_of_an_older_version_changes_nothing_and_leaves_no_audit(store: Store):
    await a_schedule(store)
    late = ScheduleChange("nightly", 7, Edits(cap=2), paused=True)

    assert await store.change_schedule(late, BY_ADA) is None
    assert await store.change_schedule(late._replace(name="other"), BY_ADA) is None
    assert await store.audit() == []
    assert (await store.roster()).schedules[0].edits == Edits()


async def test_what_is_done_to_a_schedule_is_in_the_trail_beside_what_is_done_to_jobs(
    store: Store, clock: Clock
):
    record = await a_schedule(store)
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL)
    await store.change_schedule(ScheduleChange("nightly", record.version, Edits(), paused=True), BY_ADA)

    assert await store.audit(about="schedule:nightly") == [BY_ADA._replace(at=clock.now)]
    assert await store.audit(about="schedule:hourly") == []
    assert [row.about for row in await store.audit()] == ["schedule:nightly", None]
    assert [row.job_id for row in await store.audit(job.id)] == [job.id]


async def test_a_schedule_that_nobody_declares_any_more_is_seen_to_be_absent(store: Store, clock: Clock):
    await store.publish_schedules([PLAIN, PLAIN._replace(name="hourly")])
    for _ in range(5):
        clock.advance(60)
        await store.roster(["hourly"])
    roster = await store.roster()

    assert roster.now == clock.now
    assert {seen.name: seen.status(roster.now) for seen in roster.schedules} == {
        "hourly": "active",
        "nightly": "absent",
    }


async def test_the_roster_holds_the_named_ones_or_all_and_the_time_even_when_empty(
    store: Store, clock: Clock
):
    assert await store.roster() == (clock.now, ())
    assert await store.roster(["nightly"]) == (clock.now, ())
    await store.publish_schedules([])
    await store.publish_schedules([PLAIN, PLAIN._replace(name="hourly")])

    assert [seen.name for seen in (await store.roster()).schedules] == ["hourly", "nightly"]
    assert [seen.name for seen in (await store.roster(["nightly", "weekly"])).schedules] == ["nightly"]
    assert (await store.roster([])).schedules == ()


GONE = BY_ADA._replace(action="delete")


async def test_only_an_absent_schedule_of_that_version_is_deleted(store: Store, clock: Clock):
    record = await a_schedule(store)
    clock.advance(ABSENT_AFTER.total_seconds())
    assert not await store.delete_schedule("nightly", record.version, GONE), "a worker has just named it"
    clock.advance(0.001)
    assert not await store.delete_schedule("nightly", record.version + 1, GONE), "somebody changed it"
    assert not await store.delete_schedule("hourly", record.version, GONE)
    assert (await store.audit(), len((await store.roster()).schedules)) == ([], 1)

    assert await store.delete_schedule("nightly", record.version, GONE)
    assert not await store.delete_schedule("nightly", record.version, GONE)
    assert (await store.roster()).schedules == ()
    assert await store.audit(about="schedule:nightly") == [GONE._replace(at=clock.now)]


async def test_a_deleted_schedule_leaves_its_jobs_and_is_new_when_it_is_declared_again(
    store: Store, clock: Clock
):
    await store.publish_schedules([PLAIN._replace(name="hourly")])
    record = await a_schedule(store)
    tick = clock.now

    def by_hand(name: str) -> Firing:
        return Firing(name, (TickJob(tick, tick, job_for(record.spec, tick, new_id())),), Origin.RUN)

    [fired] = await store.fire(by_hand("nightly"))
    await store.fire(by_hand("hourly"))
    clock.advance(3600)
    assert await store.delete_schedule("nightly", record.version, GONE)
    [stale] = await store.fire(by_hand("nightly"))
    again = await a_schedule(store)

    assert stale.fate is Fate.STALE
    assert fired.job_id is not None
    assert len(await store.get([fired.job_id])) == 1
    assert (again.version, again.cursor, again.edits) == (1, clock.now, Edits())
    assert await store.ticks("nightly") == []
    assert len(await store.ticks("hourly")) == 1
