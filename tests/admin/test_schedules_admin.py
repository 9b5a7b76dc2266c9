"""What people do to schedules when others do something at the same time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import Clock
from rota._core.schedule import Edits, Fate, ScheduleSpec
from rota.admin import Admin
from rota.errors import ScheduleChanged, ScheduleError, ScheduleNotFound
from rota.stores.contract import Store

SPEC = ScheduleSpec("nightly", "email", '{"payload": {}}', "0 * * * *")


@pytest.fixture
async def ada(store: Store) -> Admin:
    await store.publish_schedules([SPEC])
    return Admin(store, actor="ada")


class Busy:
    """A store in which somebody else is always a little faster."""

    def __init__(self, store: Store, times: int) -> None:
        self._store, self._times = store, times

    def __getattr__(self, verb: str):
        return getattr(self._store, verb)

    async def change_schedule(self, change, audit):
        self._times -= 1
        if self._times >= 0:
            await Admin(self._store, actor="bob").edit_schedule("nightly", Edits(cap=10 + self._times))
        return await self._store.change_schedule(change, audit)


async def test_a_change_is_decided_anew_when_somebody_was_faster(ada: Admin, store: Store):
    record = await Admin(Busy(store, 2), actor="ada").edit_schedule("nightly", Edits(tz="Asia/Tokyo"))

    assert (record.edits.tz, record.edits.cap) == ("Asia/Tokyo", 10)
    assert [row.actor for row in await store.audit()] == ["ada", "bob", "bob"]


async def test_whoever_is_late_again_and_again_is_told(ada: Admin, store: Store):
    with pytest.raises(
        ScheduleChanged, match=r"'nightly' was changed by somebody else meanwhile\. Look at it again"
    ):
        await Admin(Busy(store, 9), actor="ada").pause_schedule("nightly")

    assert (await ada.schedule("nightly")).paused_at is None


async def test_other_times_count_from_the_edit_and_other_edits_do_not(ada: Admin, clock: Clock):
    begun = clock.now
    clock.advance(60)
    capped = await ada.edit_schedule("nightly", Edits(cap=5))
    moved = await ada.edit_schedule("nightly", Edits(timing="every 5m"))
    clock.advance(60)
    reset = await ada.reset_schedule("nightly")

    assert (capped.cursor, moved.cursor, reset.cursor) == (begun, begun + timedelta(seconds=60), clock.now)
    assert (reset.edits, reset.effective.timing) == (Edits(), "0 * * * *")


async def test_resuming_what_was_not_paused_leaves_missed_ticks_to_their_policy(ada: Admin, clock: Clock):
    begun = clock.now
    clock.advance(7200)

    assert (await ada.resume_schedule("nightly")).cursor == begun


async def test_the_audit_says_what_it_was_and_what_it_became(ada: Admin, store: Store):
    await ada.edit_schedule("nightly", Edits(timing="every 5m", cap=3), reason="too slow")
    await ada.pause_schedule("nightly")
    paused, edited = await store.audit(about="schedule:nightly")

    assert (edited.action, edited.before, edited.after) == (
        "edit",
        "active",
        "active, timing=every 5m, cap=3",
    )
    assert (paused.before, paused.after) == (
        "active, timing=every 5m, cap=3",
        "paused, timing=every 5m, cap=3",
    )
    assert edited.reason == "too slow"


async def test_a_backfill_goes_in_batches_and_says_how_far_it_is(ada: Admin, store: Store, clock: Clock):
    progress = []
    end = clock.now
    begin = end - timedelta(hours=449)
    done = await ada.backfill("nightly", begin, end, on_progress=progress.append)
    again = await ada.backfill("nightly", begin, end)

    assert progress == [200, 400, 450]
    assert (len(done.ticks), done.count(Fate.ENQUEUED)) == (450, 450)
    assert again.count(Fate.ALREADY) == 450
    assert [row.action for row in await store.audit()] == ["backfill"] * 3


async def test_arguments_that_cannot_be_stored_are_refused(ada: Admin):
    for payload in ("[1]", '{"a": "\\u0000"}'):
        with pytest.raises(ScheduleError, match="the arguments of schedule 'nightly' cannot be stored"):
            await ada.edit_schedule("nightly", Edits(payload_json=payload))


async def test_an_unknown_schedule_is_an_error_for_every_verb(ada: Admin):
    for verb in (
        ada.pause_schedule,
        ada.resume_schedule,
        ada.reset_schedule,
        ada.run_schedule,
        ada.show_schedule,
    ):
        with pytest.raises(ScheduleNotFound, match="no schedule is named 'hourly'"):
            await verb("hourly")
