"""What the slots of one worker did lately, on every store."""

from __future__ import annotations

from datetime import timedelta

from build import Clock, a_job, a_session, by_hand, claim, completed, failed, partial
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.retry import Retry
from rota.stores.contract import Store

TEN_MINUTES = timedelta(minutes=10)


async def test_attempts_that_ended_and_those_that_go_on_are_told_each_once(store: Store, clock: Clock):
    session = await a_session(store, lease=1e6)
    await store.enqueue([a_job(queue="mail", tenant="red"), a_job(), a_job(), a_job(), a_job()])
    begun = clock.now
    well, part, tried, dies, goes_on = await claim(store, session)
    clock.advance(30)
    await store.settle(
        [
            completed(well),
            partial(part),
            failed(tried, retry=Retry(base=600.0, jitter=0.0), now=clock.now),
            failed(dies, ErrorClass.NON_RETRYABLE, now=clock.now),
        ]
    )

    found = await store.stints(session, clock.now - TEN_MINUTES, limit=100)

    told = {stint.job_id: (stint.begun, stint.ended, stint.outcome) for stint in found.found}
    assert len(found.found) == len(told) == 5
    assert found.more is False
    assert told[well.id] == (begun, clock.now, "completed")
    assert told[part.id] == (begun, clock.now, "partial")
    assert told[goes_on.id] == (begun, None, "running")
    assert [told[job.id][:2] for job in (tried, dies)] == [(begun, clock.now)] * 2
    assert {told[job.id][2] for job in (tried, dies)}.isdisjoint({"completed", "partial", "running"})
    [first] = [stint for stint in found.found if stint.job_id == well.id]
    assert (first.task, first.queue, first.tenant, first.attempt) == ("email", "mail", "red", 1)


async def test_other_sessions_and_older_times_are_left_out(store: Store, clock: Clock):
    mine, other = await a_session(store, lease=1e6), await a_session(store, "other", lease=1e6)
    await store.enqueue([a_job()])
    [old] = await claim(store, mine)
    await store.settle([completed(old)])
    clock.advance(700)
    await store.enqueue([a_job()])
    [theirs] = await claim(store, other)
    await store.settle([completed(theirs)])

    assert (await store.stints(mine, clock.now - TEN_MINUTES, limit=100)).found == []
    assert [one.job_id for one in (await store.stints(other, clock.now - TEN_MINUTES, limit=9)).found] == [
        theirs.id
    ]


async def test_the_newest_are_told_where_there_are_too_many(store: Store, clock: Clock):
    session = await a_session(store, lease=1e6)
    jobs = [a_job() for _ in range(4)]
    for job in jobs:
        await store.enqueue([job])
        [claimed] = await claim(store, session)
        clock.advance(1)
        await store.settle([completed(claimed)])

    found = await store.stints(session, clock.now - TEN_MINUTES, limit=3)

    assert [one.job_id for one in found.found] == [job.id for job in reversed(jobs[1:])]
    assert found.more


async def test_a_cancelled_run_is_one_stint(store: Store, clock: Clock):
    session = await a_session(store, lease=1e6)
    await store.enqueue([a_job()])
    [job] = await claim(store, session)
    clock.advance(5)
    await by_hand(store, job, Verb.CANCEL, force=True)

    [stint] = (await store.stints(session, clock.now - TEN_MINUTES, limit=9)).found

    assert (stint.ended, stint.outcome) == (clock.now, "cancelled")
