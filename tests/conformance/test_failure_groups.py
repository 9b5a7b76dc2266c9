"""Groups of like failures: counts, first and last, the trend, an example."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import Clock, a_running_job, read
from rota._core.dead_letter import DeadFilter, FailureGroup, death_of, review_audit
from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job
from rota._core.outcome import Raised, decide
from rota._core.retry import Retry
from rota._core.review import Review, ReviewChange, ReviewVerb, review
from rota.stores.contract import Store

STACK = (
    'Traceback:\n  File "/srv/{where}/shop/mail.py", line 7, in {function}\n    x()\nValueError: {message}\n'
)


async def dies(store: Store, message: str = "order 1", *, function: str = "send", task: str = "mail") -> Job:
    job = await a_running_job(store, task)
    stack = STACK.format(where=f"release-{message[-1]}", function=function, message=message)
    failure = Failure(ErrorClass.NON_RETRYABLE, "ValueError", message, stack)
    await store.settle([decide(job, Raised(failure), retry=Retry(), now=job.updated_at)])
    return await read(store, job)


async def closed(store: Store, job: Job) -> None:
    change = review(job, ReviewVerb.ACKNOWLEDGE, by="ann")
    assert isinstance(change, ReviewChange)
    await store.change_review(change, review_audit("ann", job, change, ReviewVerb.ACKNOWLEDGE))


async def groups(store: Store, **asked) -> list[FailureGroup]:
    return await store.failure_groups(DeadFilter(**asked))


async def test_like_failures_meet_in_one_group_with_the_newest_as_its_example(store: Store, clock: Clock):
    first = await dies(store, "order 1")
    clock.advance(60)
    await dies(store, "order 2")
    clock.advance(60)
    last = await dies(store, "order 3")

    [group] = await groups(store)
    assert (group.task, group.error_class, group.error_type) == ("mail", "non_retryable", "ValueError")
    assert (group.frame, group.message) == ("shop/mail.py in send", "order 3")
    assert (group.letters, group.example) == (3, last.id)
    assert (group.first_seen, group.last_seen) == (first.finished_at, last.finished_at)


async def test_the_group_that_was_seen_last_comes_first_and_others_are_apart(store: Store, clock: Clock):
    for function, task in (("send", "mail"), ("render", "mail"), ("send", "export")):
        await dies(store, function=function, task=task)
        clock.advance(60)

    found = await groups(store)
    assert [(group.task, group.frame) for group in found] == [
        ("export", "shop/mail.py in send"),
        ("mail", "shop/mail.py in render"),
        ("mail", "shop/mail.py in send"),
    ]
    assert [group.task for group in await groups(store, task="export")] == ["export"]
    assert await groups(store, limit=1) == found[:1]
    assert await groups(store, group=found[2].fingerprint) == found[2:]
    assert await groups(store, group="nonsense") == []


@pytest.mark.req("L29", "V24")
async def test_failures_of_the_last_hour_are_counted_by_task_with_the_latest_time(store: Store, clock: Clock):
    """Three in the hour before, then one in the last hour: falling."""
    start = clock.now
    for minutes in (0, 10, 20, 90):
        clock.now = start + timedelta(minutes=minutes)
        last = await dies(store)
    clock.now = start + timedelta(minutes=100)

    [group] = await groups(store)
    assert (group.task, group.letters, group.last_seen) == ("mail", 4, last.finished_at)
    assert (group.last_hour, group.hour_before, group.trend) == (1, 3, "falling")
    clock.advance(3600)
    [group] = await groups(store)
    assert (group.last_hour, group.hour_before, group.trend) == (0, 1, "quiet")


async def test_a_reviewed_letter_leaves_its_group_unless_it_is_asked_for(store: Store, clock: Clock):
    known, fresh = await dies(store), await dies(store)
    await closed(store, known)

    [group] = await groups(store)
    assert (group.letters, group.example) == (1, fresh.id)
    [group] = await groups(store, reviews=tuple(Review))
    assert group.letters == 2
    [group] = await groups(store, reviews=(Review.ACKNOWLEDGED,))
    assert (group.letters, group.example) == (1, known.id)
    await closed(store, fresh)
    assert await groups(store) == []


@pytest.mark.parametrize(
    ("letters", "last_hour", "hour_before", "trend"),
    [
        (3, 3, 0, "new"),
        (9, 3, 0, "rising"),
        (9, 6, 3, "rising"),
        (9, 3, 6, "falling"),
        (9, 5, 5, "steady"),
        (9, 0, 4, "quiet"),
    ],
)
def test_the_trend_in_one_word(letters, last_hour, hour_before, trend):
    at = Clock().now
    group = FailureGroup("f", "t", None, None, None, None, letters, at, at, last_hour, hour_before, None)  # type: ignore[arg-type]

    assert group.trend == trend


async def test_a_group_is_counted_by_the_hour_whatever_its_reviews(store: Store, clock: Clock):
    first = await dies(store)
    for pause in (3600, 1800, 1800):
        clock.advance(pause)
        last = await dies(store)
    await closed(store, last)
    [group] = await groups(store)

    hours = await store.failure_hours([group.fingerprint, "unknown"], hours=3)

    assert hours == {group.fingerprint: [1, 1, 2], "unknown": [0, 0, 0]}
    clock.advance(1)
    assert first.finished_at is not None
    assert (await store.failure_hours([group.fingerprint], hours=2))[group.fingerprint] == [1, 2]


async def test_what_died_earlier_is_not_counted_by_the_hour(store: Store, clock: Clock):
    await dies(store)
    [group] = await groups(store)
    clock.advance(3 * 3600)

    assert await store.failure_hours([group.fingerprint], hours=3) == {group.fingerprint: [0, 0, 0]}
    assert await store.failure_hours([], hours=3) == {}


async def test_how_and_when_jobs_died_is_told_of_the_same_ones_as_their_letters(store: Store, clock: Clock):
    known = await dies(store)
    clock.advance(60)
    last = await dies(store, "order 2", task="export")
    await closed(store, known)

    [newest, oldest] = await store.deaths(DeadFilter())

    assert (newest.job_id, newest.task, newest.died) == (last.id, "export", last.finished_at)
    assert (newest.error_class, newest.error_type, newest.message) == (
        "non_retryable",
        "ValueError",
        "order 2",
    )
    assert newest.frame == "shop/mail.py in send"
    [group] = await groups(store)
    assert newest.fingerprint == group.fingerprint != oldest.fingerprint
    for wanted in (
        DeadFilter(),
        DeadFilter(limit=1),
        DeadFilter(task="mail"),
        DeadFilter((Review.ACKNOWLEDGED,)),
        DeadFilter(group=group.fingerprint),
        DeadFilter(tenant="red"),
        DeadFilter(since=last.finished_at),
        DeadFilter(before=last.id),
    ):
        assert await store.deaths(wanted) == [death_of(one) for one in await store.dead_letters(wanted)]
