"""One verb on many dead letters: counted, paced, stopped, resumed, tracked."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from build import new_id
from rota._core.actions import AuditFilter, Verb
from rota._core.dead_letter import DeadFilter
from rota._core.operation import OperationState, Progress
from rota._core.review import Review, ReviewVerb
from rota._core.task_spec import TaskSpec
from rota.admin import Admin, operations
from rota.admin.operations import Pace, words
from rota.errors import OperationNotFound, OperationOver
from rota.stores.contract import JobFilter


@pytest.fixture
async def letters(shop, store) -> list:
    await store.publish([TaskSpec("mail"), TaskSpec("export")])
    return [await shop.dead("mail") for _ in range(4)] + [await shop.dead("export")]


async def reviews(store) -> dict:
    return {letter.job.id: letter.review for letter in await store.dead_letters(DeadFilter())}


async def test_a_match_changes_nothing_and_means_what_waits_for_review(admin: Admin, store, letters):
    await admin.acknowledge(letters[0], reason="known")

    assert str(await admin.match(ReviewVerb.REPROCESS, DeadFilter())) == "4"
    assert str(await admin.match(ReviewVerb.REPROCESS, DeadFilter(task="mail"))) == "3"
    assert str(await admin.match(ReviewVerb.DISCARD, DeadFilter((Review.ACKNOWLEDGED,)))) == "1"
    assert list((await reviews(store)).values()).count(Review.PENDING) == 4
    with pytest.raises(
        ValueError, match="cannot reprocess what is resolved; it is for pending_review or acknowledged"
    ):
        await admin.match(ReviewVerb.REPROCESS, DeadFilter((Review.RESOLVED,)))


@pytest.mark.parametrize(
    ("verb", "stands"),
    [
        (ReviewVerb.ACKNOWLEDGE, Review.ACKNOWLEDGED),
        (ReviewVerb.DISCARD, Review.DISCARDED),
        (ReviewVerb.REPROCESS, Review.REPROCESSING),
    ],
)
async def test_an_operation_does_its_verb_to_all_that_match_and_to_nothing_else(
    admin: Admin, store, letters, verb, stands
):
    seen: list[int] = []
    begun = await admin.begin_operation(verb, DeadFilter(task="mail"), reason="fixed")
    done = await admin.drive(begun, on_progress=lambda progress: seen.append(progress.met))

    assert (done.state, done.progress.done, done.total) == (OperationState.FINISHED, 4, 4)
    assert seen[-1] == 4
    stood = await reviews(store)
    assert [stood[one] for one in letters] == [stands] * 4 + [Review.PENDING]
    per_letter = 2 if verb is ReviewVerb.REPROCESS else 1
    rows = await admin.trail(AuditFilter(about=begun.about, limit=100))
    assert len(rows) == 4 * per_letter + 1
    assert (rows[-1].action, rows[-1].after) == (
        "operation_begun",
        f"{verb.value} 4 dead letters (task=mail)",
    )
    assert {row.reason for row in rows} == {"fixed"}


async def test_what_dies_meanwhile_is_not_touched(admin: Admin, store, shop, clock, letters):
    begun = await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter())
    clock.advance(1)
    late = await shop.dead()
    done = await admin.drive(begun)

    assert done.progress.done == 5
    assert (await reviews(store))[late] is Review.PENDING


async def test_a_group_is_reprocessed_and_an_unknown_task_is_refused_without_stopping_the_rest(
    admin: Admin, store, shop, letters
):
    gone = await shop.dead("gone")
    done = await admin.drive(await admin.begin_operation(ReviewVerb.REPROCESS, DeadFilter()))

    assert done.progress._replace(cursor=None) == Progress(5, refused=1)
    assert (await reviews(store))[gone] is Review.PENDING
    [group] = await admin.failures(DeadFilter())
    again = await admin.match(ReviewVerb.ACKNOWLEDGE, DeadFilter(group=group.fingerprint))
    assert again.jobs == 1


async def test_an_operation_that_is_stopped_stops_before_the_next_one_and_is_resumed_from_there(
    admin: Admin, store, letters
):
    begun = await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter(), rate=1000.0)
    stops: list[asyncio.Task] = []

    async def stop() -> None:
        await Admin(store, actor="bob").stop_operation(begun.id, reason="wait")

    real = store.advance_operation

    async def stopped_after_two(operation_id, driver, progress, **options):
        if progress.met == 2 and not stops:
            stops.append(asyncio.create_task(stop()))
            await stops[0]
        return await real(operation_id, driver, progress, **options)

    store.advance_operation = stopped_after_two
    rested = await admin.drive(begun)
    assert (rested.state, list((await reviews(store)).values()).count(Review.ACKNOWLEDGED)) == (
        OperationState.STOPPED,
        2,
    )
    with pytest.raises(OperationOver, match="is stopped already"):
        await admin.stop_operation(begun.id)

    resumed = await admin.drive(await admin.resume_operation(begun.id))
    assert resumed.state is OperationState.FINISHED
    assert set((await reviews(store)).values()) == {Review.ACKNOWLEDGED}
    rows = await admin.trail(AuditFilter(about=begun.about, limit=100))
    assert [row.action for row in rows].count("job_dlq_acknowledged") == 5
    with pytest.raises(OperationOver, match=r"is finished already\. Begin a new one"):
        await admin.resume_operation(begun.id)


async def test_one_that_waits_for_its_pace_hears_that_it_was_stopped_and_acts_no_more(
    admin: Admin, store, letters, monkeypatch
):
    monkeypatch.setattr(operations, "LOOK_EVERY", 0.02)
    begun = await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter(), rate=0.01)
    moved = asyncio.Event()
    driving = asyncio.create_task(admin.drive(begun, on_progress=lambda _: moved.set()))
    await moved.wait()
    await Admin(store, actor="bob").stop_operation(begun.id)
    async with asyncio.timeout(5):
        rested = await driving

    assert (rested.state, rested.progress.done) == (OperationState.STOPPED, 1)
    assert list((await reviews(store)).values()).count(Review.ACKNOWLEDGED) == 1


async def test_one_that_is_stopped_before_its_turn_does_nothing(admin: Admin, store, letters):
    turns = asyncio.Semaphore(1)
    begun = await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter())
    async with turns:
        driving = asyncio.create_task(admin.drive(begun, turns=turns))
        await admin.stop_operation(begun.id)
    rested = await driving

    assert (rested.state, rested.progress) == (OperationState.STOPPED, Progress())
    assert set((await reviews(store)).values()) == {Review.PENDING}


async def test_operations_in_turn_take_no_more_of_the_store_than_one(
    admin: Admin, store, letters, monkeypatch
):
    monkeypatch.setattr(operations, "IN_TURN", 2)
    turns, now, most = asyncio.Semaphore(1), 0, 0
    real = store.change_review

    async def counted(*change):
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.01)
        now -= 1
        return await real(*change)

    monkeypatch.setattr(store, "change_review", counted)
    begun = [await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter()) for _ in range(3)]
    done = await asyncio.gather(*(admin.drive(one, turns=turns) for one in begun))

    assert {one.state for one in done} == {OperationState.FINISHED}
    assert (sum(one.progress.done for one in done), most) == (5, 2)


async def test_a_driver_whose_operation_was_taken_over_stops(admin: Admin, letters):
    begun = await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter(), rate=1000.0)
    await admin.resume_operation(begun.id)
    old = await admin.drive(begun)

    assert (old.state, old.progress) == (OperationState.RUNNING, Progress())


async def test_a_driver_that_is_interrupted_leaves_a_stopped_operation(admin: Admin, store, letters):
    begun = await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, DeadFilter(), rate=0.01)
    moved = asyncio.Event()
    driving = asyncio.create_task(admin.drive(begun, on_progress=lambda _: moved.set()))
    await moved.wait()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving

    found = await admin.operation(begun.id)
    assert (found.state, found.progress.done) == (OperationState.STOPPED, 1)
    [row] = await admin.trail(AuditFilter(action="operation_stopped"))
    assert row.reason == "interrupted"


async def test_two_operations_at_once_do_each_letter_once(admin: Admin, store, letters):
    bob = Admin(store, actor="bob")
    both = [
        await admin.begin_operation(ReviewVerb.REPROCESS, DeadFilter()),
        await bob.begin_operation(ReviewVerb.REPROCESS, DeadFilter()),
    ]
    done = await asyncio.gather(admin.drive(both[0]), bob.drive(both[1]))

    assert sum(one.progress.done for one in done) == 5
    rows = await admin.trail(AuditFilter(action="job_dlq_reprocess_success", limit=100))
    assert len(rows) == 5


async def test_an_unknown_operation_is_named(admin: Admin):
    with pytest.raises(OperationNotFound, match="`rota operations list` shows them"):
        await admin.operation(new_id())


async def test_the_words_of_an_operation_name_its_filter(admin: Admin, letters):
    plain = await admin.begin_operation(ReviewVerb.DISCARD, DeadFilter())
    narrow = await admin.begin_operation(ReviewVerb.DISCARD, DeadFilter((Review.ACKNOWLEDGED,), queue="a"))

    assert words(plain) == "discard 5 dead letters (all in review)"
    assert words(narrow) == "discard 0 dead letters (queue=a, review=acknowledged)"
    assert [one.id for one in await admin.operations()] == [narrow.id, plain.id]


async def test_a_pace_lets_so_many_through_in_a_second():
    began = monotonic()
    pace = Pace(50.0)
    for _ in range(6):
        await pace.wait()

    assert 0.09 < monotonic() - began < 1.0
    await Pace(None).wait()


async def test_a_retry_of_all_dead_jobs_leaves_alone_what_somebody_has_reviewed(admin: Admin, store, letters):
    await admin.acknowledge(letters[0], reason="known")
    await admin.discard(letters[1], reason="test data")
    swept = await admin.sweep(Verb.RETRY, JobFilter())

    assert (swept.done, swept.refused) == (3, 2)
    assert set(await reviews(store)) == set(letters[:2])
    assert (await admin.retry(letters[1])).after == "pending"
