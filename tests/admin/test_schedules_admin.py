"""What people do to schedules when others do something at the same time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from build import Clock
from rota._core.schedule import Edits, Fate, ScheduleSpec
from rota.admin import Admin
from rota.errors import ScheduleChanged, ScheduleError, ScheduleNotFound
from rota.stores.contract import Retention, Store

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
        ada.delete_schedule,
    ):
        with pytest.raises(ScheduleNotFound, match="no schedule is named 'hourly'"):
            await verb("hourly")


async def test_what_code_and_edits_made_of_a_schedule_never_keeps_anybody_from_pausing_it(
    ada: Admin, store: Store
):
    await store.publish_schedules([SPEC._replace(timing="every 10m")])
    await ada.edit_schedule("nightly", Edits(jitter=300.0))
    await store.publish_schedules([SPEC._replace(timing="every 1m")])

    with pytest.raises(ScheduleError, match="jitter of 300 s is longer than the time between two ticks"):
        await ada.edit_schedule("nightly", Edits(cap=3))
    assert (await ada.pause_schedule("nightly")).paused_at is not None
    assert (await ada.resume_schedule("nightly")).paused_at is None
    assert (await ada.reset_schedule("nightly")).edits == Edits()


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        (Edits(jitter=-1.0), r"jitter of -1 s is no length of time\. Give 0 or more"),
        (Edits(jitter=float("nan")), r"jitter of nan s is no length of time"),
        (Edits(grace=-1.0), r"grace of -1 s is no length of time"),
        (Edits(queue=""), r"schedule 'nightly' cannot be edited so: queue must not be empty"),
        (Edits(priority=-3), r"schedule 'nightly' cannot be edited so: priority"),
    ],
)
async def test_what_no_schedule_can_be_is_refused(ada: Admin, edits: Edits, words: str):
    with pytest.raises(ScheduleError, match=words):
        await ada.edit_schedule("nightly", edits)

    assert (await ada.schedule("nightly")).version == 1


async def test_a_preview_of_a_backfill_knows_what_is_forgotten(ada: Admin, store: Store, clock: Clock):
    begin, end = clock.now - timedelta(hours=5), clock.now
    await ada.backfill("nightly", begin, end)
    await store.tidy(Retention(ticks=2.5 * 3600, ticks_kept=1))
    planned = await ada.backfill("nightly", begin - timedelta(hours=1), end, dry_run=True)
    done = await ada.backfill("nightly", begin - timedelta(hours=1), end)

    assert [one.fate for one in planned.fired] == [one.fate for one in done.fired]
    assert (done.count(Fate.FORGOTTEN), done.count(Fate.ALREADY)) == (4, 3)


async def test_a_backfill_may_begin_with_the_calendar_but_not_without_a_zone(ada: Admin, clock: Clock):
    await ada.edit_schedule("nightly", Edits(timing="0 0 1 1 *"))
    planned = await ada.backfill("nightly", datetime.min.replace(tzinfo=UTC), clock.now, dry_run=True)

    assert planned.ticks[0] == datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(ScheduleError, match="needs moments with a time zone"):
        await ada.backfill("nightly", datetime(2026, 3, 1), clock.now)


async def test_an_absent_schedule_is_deleted_and_the_audit_keeps_what_it_was(
    ada: Admin, store: Store, clock: Clock
):
    await ada.edit_schedule("nightly", Edits(timing="every 5m"))
    clock.advance(30)
    with pytest.raises(
        ScheduleError,
        match=r"in the code of a worker that runs \(seen 30 s ago\).* repeat after 3 minutes; .*pause nightly`",
    ):
        await ada.delete_schedule("nightly")
    clock.advance(3600)
    await ada.delete_schedule("nightly", reason="replaced")

    deleted, _ = await store.audit(about="schedule:nightly")
    assert (deleted.actor, deleted.action, deleted.reason) == ("ada", "delete", "replaced")
    assert deleted.before == "every 5m (UTC) calls email, active, timing=every 5m"
    assert (await ada.schedules()).schedules == ()


async def test_the_audit_of_an_edit_hides_what_pages_hide(ada: Admin, store: Store):
    secret = '{"login": {"token": ["t0psecret"]}, "to": "ann"}'
    await ada.edit_schedule("nightly", Edits(payload_json=secret))
    await ada.pause_schedule("nightly")

    rows = await store.audit()
    assert "t0psecret" not in str(rows)
    assert "ann" in (rows[0].after or "")
    assert "t0psecret" in (await ada.schedule("nightly")).effective.template_json


async def test_arguments_that_were_copied_from_where_they_are_hidden_are_refused(ada: Admin, store: Store):
    await ada.edit_schedule("nightly", Edits(payload_json='{"password": "hunter2"}'))
    with pytest.raises(ScheduleError, match=r"have \*\*\* in them, which stands for something hidden"):
        await ada.edit_schedule("nightly", Edits(payload_json='{"password": "***", "to": "bob"}'))

    assert "hunter2" in (await ada.schedule("nightly")).effective.template_json
