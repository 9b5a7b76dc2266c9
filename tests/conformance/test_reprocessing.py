"""Reprocessing: one new job that does a dead one's work again, and what its end means for the dead letter."""

from __future__ import annotations

import asyncio

import pytest

from build import (
    Clock,
    a_job,
    a_running_job,
    a_stored_job,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    new_id,
    partial,
    read,
)
from letters import a_letter, actions, reprocessed, reviewed, the_letter
from rota._core.actions import Verb
from rota._core.dead_letter import reprocess_of
from rota._core.effects import effect_key
from rota._core.failure import ErrorClass, Failure
from rota._core.job import State
from rota._core.outcome import Raised, decide
from rota._core.retry import Retry
from rota._core.review import REQUESTED, SUCCESS, Landed, Review, Reviewed, ReviewVerb
from rota.errors import NotUnique
from rota.stores.contract import Enqueued, Retention, Store, Stored

DAY = 86_400.0


@pytest.mark.req("W33", "W34", "L35")
@pytest.mark.scenario(14)
async def test_reprocessing_makes_one_linked_job_with_the_original_payload_and_the_audit_pair(
    store: Store, clock: Clock
):
    letter = await a_letter(store, payload={"to": "a@b.c"}, queue="mail", correlation_id="c", priority=7)
    clock.advance(60)
    answer, new = await reprocessed(store, letter.job)

    dead, job = await the_letter(store, letter.job.id), await read(store, new.id)
    assert answer == Reviewed(Landed.APPLIED, Review.REPROCESSING, new.id)
    assert (dead.review, dead.reprocessed_as) == (Review.REPROCESSING, new.id)
    assert (job.state, job.payload, job.queue, job.priority) == (State.PENDING, {"to": "a@b.c"}, "mail", 7)
    assert (job.parent_id, reprocess_of(job), job.correlation_id) == (dead.job.id, dead.job.id, "c")
    assert (job.attempt, job.created_at, effect_key(job)) == (0, clock.now, effect_key(dead.job))
    assert dead.job.payload == {"to": "a@b.c"}
    assert await actions(store, dead.job.id) == [REQUESTED, SUCCESS]
    assert [claimed.id for claimed in await claim(store)] == [new.id]


@pytest.mark.req("W33", "W38")
@pytest.mark.scenario(14)
async def test_a_double_click_makes_one_job_and_one_audit_pair(store: Store):
    letter = await a_letter(store, key="order:7", unique_key="u")
    answers = await asyncio.gather(*(reprocessed(store, letter.job) for _ in range(5)))

    landed = [answer.landed for answer, _ in answers]
    assert sorted(landed) == [Landed.ALREADY] * 4 + [Landed.APPLIED]
    assert len({answer.new_job for answer, _ in answers}) == 1
    assert len(await claim(store)) == 1
    assert await actions(store, letter.job.id) == [REQUESTED, SUCCESS]


@pytest.mark.scenario(14)
async def test_reprocess_against_discard_one_of_them_happens(store: Store):
    letter = await a_letter(store)
    (answer, _), discarded = await asyncio.gather(
        reprocessed(store, letter.job), reviewed(store, letter.job, ReviewVerb.DISCARD)
    )

    assert {answer.landed, discarded.landed} == {Landed.APPLIED, Landed.FENCED}
    made = len(await claim(store))
    assert made == (answer.landed is Landed.APPLIED)
    assert len(await actions(store, letter.job.id)) == (2 if made else 1)


async def test_an_edited_payload_runs_and_the_original_stays(store: Store):
    letter = await a_letter(store, payload={"to": "wrong"})
    _, new = await reprocessed(store, letter.job, payload_json='{"to": "right"}')

    assert (await read(store, new.id)).payload == {"to": "right"}
    assert (await the_letter(store, letter.job.id)).job.payload == {"to": "wrong"}


@pytest.mark.parametrize("end", [completed, partial])
async def test_a_dead_letter_is_resolved_when_the_new_job_completes(store: Store, clock: Clock, end):
    letter = await a_letter(store)
    _, new = await reprocessed(store, letter.job)
    assert await store.settle_reviews() == (0, 1)
    [job] = await claim(store)
    await store.settle([end(job)])
    clock.advance(5)

    assert await store.settle_reviews() == (1, 0)
    after = await the_letter(store, letter.job.id)
    assert (after.review, after.reviewed_by) == (Review.RESOLVED, "rota")
    assert after.notes == f"the new job {new.id} completed"
    assert await store.settle_reviews() == (0, 0)
    assert await actions(store, letter.job.id) == [REQUESTED, SUCCESS, "job_dlq_resolved"]


async def test_a_dead_letter_is_back_in_review_when_the_new_job_dies_and_only_one_of_them_is_open(
    store: Store,
):
    letter = await a_letter(store)
    _, new = await reprocessed(store, letter.job)
    [job] = await claim(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    assert await store.settle_reviews() == (1, 0)

    after, its = await the_letter(store, letter.job.id), await the_letter(store, new.id)
    assert (after.review, after.notes) == (Review.PENDING, f"the new job {new.id} died too")
    assert (its.review, its.reviewed_by) == (Review.ACKNOWLEDGED, "rota")
    assert await actions(store, letter.job.id) == [REQUESTED, SUCCESS, "job_dlq_returned"]
    assert await actions(store, new.id) == ["job_dlq_acknowledged"]
    again, second = await reprocessed(store, after.job)
    assert again == Reviewed(Landed.APPLIED, Review.REPROCESSING, second.id)


async def test_a_dead_letter_is_back_in_review_when_the_new_job_is_cancelled(store: Store):
    letter = await a_letter(store)
    _, new = await reprocessed(store, letter.job)
    [job] = await claim(store)
    await store.settle([cancelled(job)])
    await store.settle_reviews()

    after = await the_letter(store, letter.job.id)
    assert (after.review, after.notes) == (Review.PENDING, f"the new job {new.id} was cancelled")


async def test_a_dead_letter_is_back_in_review_when_the_new_job_was_deleted(store: Store):
    letter = await a_letter(store)
    _, new = await reprocessed(store, letter.job)
    await by_hand(store, await read(store, new.id), Verb.DELETE)
    await store.settle_reviews()

    after = await the_letter(store, letter.job.id)
    assert (after.review, after.notes) == (Review.PENDING, f"the new job {new.id} is gone")


async def test_reviews_settled_by_several_at_once_are_moved_and_told_once(store: Store):
    letters = [await a_letter(store) for _ in range(5)]
    for letter in letters:
        await reprocessed(store, letter.job)
    await store.settle([completed(job) for job in await claim(store)])
    answers = await asyncio.gather(*(store.settle_reviews() for _ in range(4)))

    assert sum(moved for moved, _ in answers) == 5
    for letter in letters:
        assert (await actions(store, letter.job.id)).count("job_dlq_resolved") == 1


async def test_the_idempotency_key_leads_to_the_new_job(store: Store):
    letter = await a_letter(store, payload={"n": 1}, key="order:7", tenant="t")
    _, new = await reprocessed(store, letter.job)
    [again] = await store.enqueue([a_job(payload={"n": 1}, key="order:7", tenant="t")])

    assert again == Enqueued(new.id, Stored.DUPLICATE)
    assert (await read(store, new.id)).key == "order:7"


async def test_a_unique_key_is_taken_by_the_new_job(store: Store):
    letter = await a_letter(store, unique_key="u")
    _, new = await reprocessed(store, letter.job)
    [second] = await store.enqueue([a_job(unique_key="u")])

    assert second == Enqueued(new.id, Stored.DUPLICATE)


async def test_a_unique_key_that_another_job_has_taken_is_an_obstacle_and_nothing_is_written(store: Store):
    letter = await a_letter(store, unique_key="u")
    newer = a_job(unique_key="u")
    await store.enqueue([newer])

    with pytest.raises(NotUnique, match=str(newer.id)):
        await reprocessed(store, letter.job)
    assert (await the_letter(store, letter.job.id)).review is Review.PENDING
    assert await store.audit(letter.job.id) == []
    assert [job.id for job in await claim(store)] == [newer.id]


async def test_the_new_job_of_a_poison_job_runs_alone_and_has_no_deadline(store: Store):
    job = await a_running_job(store, deadline_in=600.0, max_attempts=1)
    failure = Failure.because(ErrorClass.CRASH, "SIGSEGV")
    await store.settle([decide(job, Raised(failure), retry=Retry(), now=job.updated_at)])
    letter = await the_letter(store, job.id)
    _, new = await reprocessed(store, letter.job)

    after = await read(store, new.id)
    assert (after.losses, after.deadline) == (1, None)


async def test_reprocessing_what_is_not_dead_changes_nothing(store: Store):
    ghost = a_stored_job(State.DEAD, review="pending_review", id=new_id())
    answer, new = await reprocessed(store, ghost)

    assert answer == Reviewed(Landed.FENCED, None)
    assert await store.get([new.id]) == []


async def test_what_is_being_reprocessed_is_kept_however_long_it_takes(store: Store, clock: Clock):
    letter = await a_letter(store)
    await reprocessed(store, letter.job)
    clock.advance(365 * DAY)
    await store.tidy(Retention())

    assert (await the_letter(store, letter.job.id)).review is Review.REPROCESSING
