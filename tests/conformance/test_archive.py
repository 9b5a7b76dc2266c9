"""The archive: "move the jobs that are past their time to the archive", and nothing that something still refers to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from build import (
    Clock,
    a_job,
    by_hand,
    cancelled,
    claim,
    completed,
    failed,
    new_id,
    partial,
    read,
)
from kept import an_ended_job, set_policy, states
from letters import a_letter, reprocessed, reviewed, the_letter
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.job_log import LogLine, LogTail
from rota._core.retention import EVERYTHING, Policy, Pruned, Pruning
from rota._core.review import Review, ReviewVerb
from rota.stores.contract import Enqueued, Store, Stored
from rota.stores.retention_contract import Retention

DAY = 86_400.0
DEFAULT = Retention()
ENDS = {"completed": completed, "partial": partial, "cancelled": cancelled}


# What is left


@pytest.mark.req("D29", "D30")
@pytest.mark.parametrize("end", ENDS)
async def test_after_seven_days_a_summary_with_the_key_metrics_takes_the_place_of_a_finished_job(
    store: Store, clock: Clock, end: str
):
    born = clock.now
    new = a_job(
        "invoice", {"secret": "payload"}, queue="books", tenant="acme", category="export", subject="order:7",
        external_id="x-1", correlation_id="c-1", created_by="api", delay=10.0,
    )  # fmt: skip
    await store.enqueue([new])
    clock.advance(15)
    [job] = await claim(store)
    clock.advance(3)
    await store.settle([ENDS[end](job)])
    done = clock.now
    clock.advance(6.9 * DAY)
    await store.tidy(DEFAULT)
    assert await states(store, new) == [end]
    clock.advance(1.1 * DAY)
    tidied = await store.tidy(DEFAULT)

    [left] = await store.archived([new.id, new_id()])
    assert tidied.finished == 1
    assert await store.get([new.id]) == []
    assert (left.id, left.state, left.task, left.queue) == (new.id, State(end), "invoice", "books")
    assert (left.tenant, left.category, left.subject) == ("acme", "export", "order:7")
    assert (left.external_id, left.correlation_id, left.created_by) == ("x-1", "c-1", "api")
    assert (left.attempts, left.losses, left.parent_id) == (1, 0, None)
    assert (left.created_at, left.finished_at, left.archived_at) == (born, done, clock.now)
    assert (left.waited, left.ran) == (5.0, 3.0)
    assert (left.error_class, left.review) == (None, None)
    assert "payload" not in repr(left)


async def test_a_job_that_never_ran_has_no_times_of_an_attempt_in_its_summary(store: Store, clock: Clock):
    new = a_job()
    await store.enqueue([new])
    await by_hand(store, await read(store, new), Verb.CANCEL)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)

    [left] = await store.archived([new.id])
    assert (left.state, left.attempts, left.waited, left.ran) == (State.CANCELLED, 0, None, None)


@pytest.mark.req("D31")
async def test_a_dead_letter_is_archived_thirty_days_after_its_review_with_who_closed_it(
    store: Store, clock: Clock
):
    letter, open_one = await a_letter(store), await a_letter(store)
    clock.advance(50 * DAY)
    await reviewed(store, letter.job, ReviewVerb.DISCARD, by="bob")
    clock.advance(30 * DAY - 1)
    assert (await store.tidy(DEFAULT)).dead == 0
    clock.advance(1)
    assert (await store.tidy(DEFAULT)).dead == 1

    [left] = await store.archived([letter.job.id])
    assert await states(store, letter.job, open_one.job) == ["archived", "dead"]
    assert (left.state, left.error_class) == (State.DEAD, "non_retryable")
    assert (left.review, left.reviewed_by) == ("discarded", "bob")


async def test_attempts_and_logs_go_with_their_job_and_those_of_others_stay(store: Store, clock: Clock):
    old, young = a_job(), a_job()
    for new in (old, young):
        await store.enqueue([new])
        for end in (failed, completed):
            [job] = await claim(store)
            line = LogLine(clock.now, "INFO", "hello")
            await store.keep_logs([LogTail(job.id, job.version, job.attempt, (line,), 1, None)])
            await store.settle([end(job)])
            clock.advance(60)
        clock.advance(4 * DAY)
    clock.advance(0.5 * DAY)
    await store.tidy(DEFAULT)

    assert await states(store, old, young) == ["archived", "completed"]
    assert (await store.attempts(old.id), await store.logs(old.id)) == ([], [])
    assert (len(await store.attempts(young.id)), len(await store.logs(young.id))) == (1, 2)


@pytest.mark.req("V37")
async def test_after_the_archives_year_nothing_is_known_of_the_job_any_more(store: Store, clock: Clock):
    job = await an_ended_job(store)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)
    clock.advance(364 * DAY)
    assert (await store.tidy(DEFAULT)).archive == 0
    assert await states(store, job) == ["archived"]
    clock.advance(33 * DAY)

    assert (await store.tidy(DEFAULT)).archive == 1
    assert await states(store, job) == ["gone"]


async def test_how_long_the_archive_is_kept_is_a_policy_too(store: Store, clock: Clock):
    job = await an_ended_job(store)
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)
    await set_policy(store, Policy(None, "archived"))
    clock.advance(1000 * DAY)
    await store.tidy(DEFAULT)
    assert await states(store, job) == ["archived"]

    await set_policy(store, Policy(30 * DAY, "archived"))
    await store.tidy(DEFAULT)
    assert await states(store, job) == ["gone"]


@pytest.mark.parametrize("key", [None, "order:7"])
async def test_a_repeated_enqueue_does_not_bring_an_archived_job_back(store: Store, clock: Clock, key):
    moment = int((clock.now - timedelta(hours=1)).timestamp() * 1000)
    old = UUID(int=moment << 80 | 7 << 76 | 2 << 62 | 5)
    new = a_job(id=old, key=key, key_window=60.0)
    await store.enqueue([new])
    [job] = await claim(store)
    await store.settle([completed(job)])
    clock.advance(9 * DAY)
    await store.tidy(DEFAULT)

    assert await store.enqueue([new]) == [Enqueued(new.id, Stored.CREATED)]
    assert await states(store, new) == ["archived"]
    assert await claim(store) == []


# What never goes


async def test_a_job_with_unfinished_children_stays_until_they_have_ended(store: Store, clock: Clock):
    parent, alone = await an_ended_job(store), await an_ended_job(store)
    dead = await a_letter(store)
    await reviewed(store, dead.job, ReviewVerb.DISCARD)
    children = [a_job(parent_id=parent.id, delay=100 * DAY), a_job(parent_id=dead.job.id, held=True)]
    await store.enqueue(children)
    clock.advance(50 * DAY)
    await store.tidy(DEFAULT)

    assert await states(store, parent, alone, dead.job) == ["completed", "archived", "dead"]
    for child in children:
        await by_hand(store, await read(store, child), Verb.CANCEL)
    await store.tidy(DEFAULT)
    assert await states(store, parent, dead.job) == ["archived", "archived"]


@pytest.mark.parametrize("end", ["completed", "dead"])
async def test_an_open_reprocess_keeps_both_the_dead_letter_and_the_job_that_does_its_work(
    store: Store, clock: Clock, end: str
):
    """Else its review would find no job, and open again though the work was done."""
    letter, known = await a_letter(store), await a_letter(store)
    await reviewed(store, known.job, ReviewVerb.ACKNOWLEDGE)  # so that there is something to go
    _, new = await reprocessed(store, letter.job)
    [job] = await claim(store)
    await store.settle([completed(job) if end == "completed" else failed(job, ErrorClass.NON_RETRYABLE)])
    if end == "dead":
        await reviewed(store, await read(store, new), ReviewVerb.DISCARD)
    clock.advance(100 * DAY)
    await store.tidy(DEFAULT)
    assert await states(store, letter.job, new, known.job) == ["dead", end, "archived"]

    await store.settle_reviews()
    wanted = Review.RESOLVED if end == "completed" else Review.PENDING
    assert (await the_letter(store, letter.job.id)).review is wanted
    await store.tidy(DEFAULT)
    assert (await states(store, new)) == ["archived"]


@pytest.mark.scenario(9)
async def test_a_key_is_respected_for_its_window_after_its_job_was_archived(store: Store, clock: Clock):
    job = await an_ended_job(store, key="order:7", key_window=20 * DAY)
    clock.advance(10 * DAY)
    await store.tidy(DEFAULT)
    assert await states(store, job) == ["archived"]
    again, other = a_job(key="order:7"), a_job(payload={"other": 1}, key="order:7")

    assert await store.enqueue([again, other]) == [
        Enqueued(job.id, Stored.DUPLICATE),
        Enqueued(job.id, Stored.CONFLICT),
    ]
    clock.advance(10 * DAY)
    await store.tidy(DEFAULT)
    assert await store.enqueue([again]) == [Enqueued(again.id, Stored.CREATED)]


async def test_whatever_a_policy_says_a_job_stays_a_minute_after_its_end(store: Store, clock: Clock):
    await set_policy(store, Policy(0.0))
    job = await an_ended_job(store)
    clock.advance(59)
    await store.prune(EVERYTHING, DEFAULT)
    assert await states(store, job) == ["completed"]
    clock.advance(1)

    assert await store.prune(EVERYTHING, DEFAULT) == Pruned(finished=1)
    assert await states(store, job) == ["archived"]


# By filter, and foreseen


async def test_a_purge_by_hand_moves_only_what_it_was_asked_for(store: Store, clock: Clock):
    mail, ping, cancelled_ping = (
        await an_ended_job(store, task="mail"),
        await an_ended_job(store, task="ping"),
        await an_ended_job(store, end=cancelled, task="ping"),
    )
    acme = await an_ended_job(store, task="ping", tenant="acme")
    dead = await a_letter(store, "ping")
    await reviewed(store, dead.job, ReviewVerb.ACKNOWLEDGE)
    clock.advance(40 * DAY)
    jobs = (mail, ping, cancelled_ping, acme, dead.job)

    await store.prune(Pruning(states=("cancelled",)), DEFAULT)
    assert await states(store, *jobs) == ["completed", "completed", "archived", "completed", "dead"]
    await store.prune(Pruning(states=("completed",), task="ping", tenant="acme"), DEFAULT)
    assert await states(store, *jobs) == ["completed", "completed", "archived", "archived", "dead"]
    await store.prune(Pruning(task="ping"), DEFAULT)
    assert await states(store, *jobs) == ["completed", "archived", "archived", "archived", "archived"]


async def test_older_than_counts_in_place_of_the_policies_but_not_of_those_for_ever(
    store: Store, clock: Clock
):
    await set_policy(store, Policy(90 * DAY, tenant="acme"))
    await set_policy(store, Policy(None, tenant="court"))
    jobs = [await an_ended_job(store, tenant=tenant) for tenant in (None, "acme", "court")]
    clock.advance(3600)
    young = await an_ended_job(store)
    clock.advance(3600)

    assert await store.prune(Pruning(older_than=5400.0), DEFAULT) == Pruned(finished=2)
    assert await states(store, *jobs, young) == ["archived", "archived", "completed", "completed"]


async def test_what_is_foreseen_is_what_happens_by_policy_and_state_and_changes_nothing(
    store: Store, clock: Clock
):
    await set_policy(store, Policy(DAY, "completed", task="ping"))
    await set_policy(store, Policy(None, tenant="court"))
    began = clock.now
    for _ in range(3):
        await an_ended_job(store, task="ping")
        clock.advance(60)
    await an_ended_job(store, end=cancelled, task="mail")
    parent = await an_ended_job(store, end=cancelled, task="mail")
    await store.enqueue([a_job(parent_id=parent.id, held=True)])
    await an_ended_job(store, task="ping", tenant="court")
    dead = await a_letter(store)
    await reviewed(store, dead.job, ReviewVerb.ACKNOWLEDGE)
    clock.advance(8 * DAY)

    told = [
        (one.policy and one.policy.words, one.state, one.jobs, one.bound)
        for one in await store.foresee(EVERYTHING, DEFAULT)
    ]
    assert told == [(None, "cancelled", 1, 1), ("state=completed task=ping", "completed", 3, 0)]
    [ping] = await store.foresee(Pruning(task="ping"), DEFAULT)
    assert (ping.oldest, ping.newest) == (began, began + timedelta(seconds=120))
    later = [(one.state, one.jobs) for one in await store.foresee(Pruning(older_than=DAY), DEFAULT)]
    assert later == [("cancelled", 1), ("completed", 3), ("dead", 1)]
    heard: list[int] = []
    assert await store.prune(EVERYTHING, DEFAULT, progress=heard.append) == Pruned(finished=4)
    assert heard[-1] == 4
    assert [(one.jobs, one.bound) for one in await store.foresee(EVERYTHING, DEFAULT)] == [(0, 1)]


async def test_purges_at_once_lose_nothing_and_move_each_job_once(store: Store, clock: Clock):
    jobs = [await an_ended_job(store) for _ in range(5)]
    clock.advance(9 * DAY)
    pruned = await asyncio.gather(*(store.prune(EVERYTHING, DEFAULT) for _ in range(4)))

    assert sum(each.finished for each in pruned) == 5
    assert await states(store, *jobs) == ["archived"] * 5
