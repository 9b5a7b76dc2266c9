"""Dead letters: what is kept of a dead job, how it is found, and how its review is closed."""

from __future__ import annotations

from uuid import UUID

import pytest

from build import Clock, a_job, a_running_job, by_hand, claim, completed, failed, new_id, read
from letters import a_letter, actions, reviewed, the_letter
from rota._core.actions import Audit, Verb
from rota._core.dead_letter import DeadFilter
from rota._core.failure import ErrorClass, Failure
from rota._core.job import State
from rota._core.outcome import Raised, decide
from rota._core.retry import Retry
from rota._core.review import Landed, Review, Reviewed, ReviewVerb
from rota.stores.contract import Retention, Store

DAY = 86_400.0


# What is kept


@pytest.mark.req("W24", "W25", "W38")
async def test_a_job_that_fails_for_good_is_a_dead_letter_at_once_and_keeps_everything(
    store: Store, clock: Clock
):
    new = a_job(
        "notification_email_send", {"to": 7}, key="order:7", tenant="3", correlation_id="c-1",
        category="notifications", payload_version="1.1", max_attempts=2, subject="order:7",
    )  # fmt: skip
    await store.enqueue([new])
    created = clock.now
    for message in ("first", "second"):
        [job] = await claim(store)
        await store.settle([failed(job, message=message, now=clock.now)])
        clock.advance(60)

    letter = await the_letter(store, new.id)
    dead = letter.job
    assert (dead.state, letter.review) == (State.DEAD, Review.PENDING)
    assert dead.payload == {"to": 7}
    assert (dead.task, dead.category, dead.payload_version) == (new.task, "notifications", "1.1")
    assert (dead.correlation_id, dead.key, dead.created_at) == ("c-1", "order:7", created)
    assert (dead.error_class, dead.error_message, dead.attempt) == ("retryable", "second", 2)
    assert [row.message for row in await store.attempts(new.id)] == ["first", "second"]


@pytest.mark.req("W19", "W38")
async def test_what_must_not_be_retried_is_a_dead_letter_after_its_first_attempt(store: Store):
    letter = await a_letter(store, max_attempts=5)

    assert (letter.job.attempt, letter.job.error_class) == (1, "non_retryable")
    assert [found.job.id for found in await store.dead_letters(DeadFilter())] == [letter.job.id]


async def test_a_dead_letter_knows_what_kind_of_failure_it_was(store: Store):
    job = await a_running_job(store)
    stack = 'Traceback:\n  File "/srv/app/shop/mail.py", line 7, in send\n    x()\nValueError: order 7\n'
    failure = Failure(ErrorClass.NON_RETRYABLE, "ValueError", "order 7", stack)
    await store.settle([decide(job, Raised(failure), retry=Retry(), now=job.updated_at)])

    letter = await the_letter(store, job.id)
    assert (letter.error_type, letter.frame) == ("ValueError", "shop/mail.py in send")
    assert len(letter.fingerprint or "") == 12


async def test_no_job_but_a_dead_one_is_a_dead_letter(store: Store):
    job = await a_running_job(store)

    assert await store.dead_letter(job.id) is None
    assert await store.dead_letter(new_id()) is None


async def test_dead_letters_are_found_by_what_they_are(store: Store, clock: Clock):
    first = await a_letter(store, "mail", queue="a", tenant="t1", subject="s1", correlation_id="c1")
    clock.advance(60)
    second = await a_letter(store, "export", message="other", queue="b", tenant="t2")
    await reviewed(store, second.job, ReviewVerb.ACKNOWLEDGE)

    async def found(**asked) -> list[UUID]:
        wanted = DeadFilter(**asked)
        letters = await store.dead_letters(wanted)
        assert await store.count_dead_letters(wanted, cap=10) == len(letters)
        return [letter.job.id for letter in letters]

    one, two = first.job.id, second.job.id
    assert await found() == [two, one]
    assert await found(limit=50, before=two) == [one]
    for asked in (
        {"task": "mail"}, {"queue": "a"}, {"tenant": "t1"}, {"subject": "s1"}, {"correlation_id": "c1"},
        {"reviews": (Review.PENDING,)}, {"group": first.fingerprint}, {"until": first.job.finished_at},
    ):  # fmt: skip
        assert await found(**asked) == [one], asked
    assert await found(reviews=(Review.ACKNOWLEDGED, Review.DISCARDED)) == [two]
    assert await found(since=second.job.finished_at) == [two]
    assert await found(error_class="non_retryable") == [two, one]
    assert await found(correlation_id=str(two)) == [two]
    assert await store.count_dead_letters(DeadFilter(), cap=1) == 1


@pytest.mark.req("L3", "L33", "L34")
async def test_unacknowledged_letters_are_listed_newest_first_and_who_acknowledged_one_is_kept_when(
    store: Store, clock: Clock
):
    letters = []
    for number in range(3):
        letters.append(await a_letter(store, payload={"n": number}, message=f"boom {number}"))
        clock.advance(60)
    await reviewed(store, letters[1].job, ReviewVerb.ACKNOWLEDGE, by="ann@office", notes="known")

    waiting = await store.dead_letters(DeadFilter(reviews=(Review.PENDING,)))
    assert [(letter.job.payload["n"], letter.job.error_message) for letter in waiting] == [
        (2, "boom 2"),
        (0, "boom 0"),
    ]
    [known] = await store.dead_letters(DeadFilter(reviews=(Review.ACKNOWLEDGED,)))
    assert (known.reviewed_by, known.reviewed_at, known.notes) == ("ann@office", clock.now, "known")
    assert (known.job.payload, known.job.finished_at) == ({"n": 1}, letters[1].job.finished_at)
    assert [(row.attempt, row.error_class, row.message) for row in await store.attempts(known.job.id)] == [
        (1, "non_retryable", "boom 1")
    ]


# A newer success


async def test_a_later_success_with_its_subject_marks_a_dead_letter(store: Store, clock: Clock):
    letter = await a_letter(store, subject="site:1", tenant="t")
    clock.advance(5)
    for options in (
        {"subject": "site:2", "tenant": "t"}, {"subject": "site:1", "tenant": "u"},
        {"task": "other", "subject": "site:1", "tenant": "t"},
    ):  # fmt: skip
        await store.settle([completed(await a_running_job(store, **options))])
    assert (await the_letter(store, letter.job.id)).newer_success is None

    job = await a_running_job(store, subject="site:1", tenant="t")
    await store.settle([completed(job)])
    assert (await the_letter(store, letter.job.id)).newer_success == job.id


async def test_a_success_from_before_its_death_is_no_mark(store: Store, clock: Clock):
    await store.settle([completed(await a_running_job(store, subject="site:1"))])
    clock.advance(5)

    assert (await a_letter(store, subject="site:1")).newer_success is None


# Acknowledge and discard


@pytest.mark.req("W26", "W33", "L34")
@pytest.mark.parametrize(
    ("verb", "target", "action"),
    [
        (ReviewVerb.ACKNOWLEDGE, Review.ACKNOWLEDGED, "job_dlq_acknowledged"),
        (ReviewVerb.DISCARD, Review.DISCARDED, "job_dlq_discarded"),
    ],
)
async def test_a_review_is_closed_with_who_and_why_and_told_once(
    store: Store, clock: Clock, verb, target, action
):
    letter = await a_letter(store, correlation_id="c-9")
    clock.advance(30)
    answer = await reviewed(store, letter.job, verb, by="ann@office", notes="customer told")

    after = await the_letter(store, letter.job.id)
    assert answer == Reviewed(Landed.APPLIED, target)
    assert (after.review, after.reviewed_by, after.notes) == (target, "ann@office", "customer told")
    assert (after.reviewed_at, after.job.version) == (clock.now, letter.job.version + 1)
    assert await store.audit(letter.job.id) == [
        Audit("ann@office", action, letter.job.id, "customer told", "pending_review", target.value, clock.now,
              correlation_id="c-9")
    ]  # fmt: skip


async def test_a_review_of_an_older_version_changes_nothing(store: Store):
    letter = await a_letter(store)
    await reviewed(store, letter.job, ReviewVerb.ACKNOWLEDGE, by="ann")
    late = await reviewed(store, letter.job, ReviewVerb.DISCARD, by="bob")

    assert late == Reviewed(Landed.FENCED, Review.ACKNOWLEDGED)
    assert await actions(store, letter.job.id) == ["job_dlq_acknowledged"]


async def test_the_same_review_again_is_answered_already_and_told_once(store: Store):
    letter = await a_letter(store)
    for landed in (Landed.APPLIED, Landed.ALREADY):
        assert (await reviewed(store, letter.job, ReviewVerb.DISCARD)).landed is landed
    other = await reviewed(store, letter.job, ReviewVerb.DISCARD, by="bob")

    assert other.landed is Landed.FENCED
    assert await actions(store, letter.job.id) == ["job_dlq_discarded"]


async def test_a_review_of_a_job_that_was_retried_in_place_is_fenced(store: Store):
    letter = await a_letter(store)
    await by_hand(store, letter.job, Verb.RETRY)

    assert await reviewed(store, letter.job, ReviewVerb.DISCARD) == Reviewed(Landed.FENCED, None)
    assert await store.dead_letters(DeadFilter()) == []


async def test_a_job_that_dies_once_more_begins_its_review_anew(store: Store):
    letter = await a_letter(store)
    await reviewed(store, letter.job, ReviewVerb.ACKNOWLEDGE)
    await by_hand(store, await read(store, letter.job.id), Verb.RETRY)
    [job] = await claim(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])

    again = await the_letter(store, letter.job.id)
    assert (again.review, again.reviewed_by, again.notes) == (Review.PENDING, None, None)


@pytest.mark.req("D31")
async def test_a_dead_letter_goes_thirty_days_after_its_review_and_its_audit_stays(
    store: Store, clock: Clock
):
    letter = await a_letter(store)
    clock.advance(100 * DAY)
    await reviewed(store, letter.job, ReviewVerb.DISCARD)
    clock.advance(29 * DAY)
    await store.tidy(Retention())
    assert await store.dead_letter(letter.job.id) is not None
    clock.advance(2 * DAY)
    await store.tidy(Retention())

    assert await store.dead_letter(letter.job.id) is None
    assert await actions(store, letter.job.id) == ["job_dlq_discarded"]
