"""Sessions: alive while they beat, and never again after they ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import (
    LEASE,
    Clock,
    a_job,
    a_running_job,
    a_session,
    by_hand,
    claim,
    completed,
    new_id,
    read,
    rescue,
)
from rota._core.actions import Verb
from rota._core.job import State
from rota.stores.contract import Beat, Retention, SessionStart, Store


async def test_a_session_is_listed_as_it_introduced_itself(store: Store, clock: Clock):
    start = SessionStart(
        id=new_id(),
        host="db-7",
        pid=99,
        lanes={"fast": 3, "general": 5},
        tasks=("email", "webhook"),
        code_version="1.2",
        user="ada",
    )
    await store.open_session(start, lease=15)

    [record] = await store.sessions()
    assert (record.id, record.host, record.pid, dict(record.lanes)) == (
        start.id,
        "db-7",
        99,
        {"fast": 3, "general": 5},
    )
    assert (record.started_at, record.lease_until, record.ended_at) == (
        clock.now,
        clock.now + timedelta(seconds=15),
        None,
    )
    assert record.tasks == ("email", "webhook")


async def test_opening_a_session_again_changes_nothing(store: Store, clock: Clock):
    start = SessionStart(id=new_id(), host="here", pid=1, lanes={}, tasks=())
    await store.open_session(start, lease=15)
    clock.advance(5)
    before = await store.sessions()
    await store.open_session(start, lease=15)

    assert await store.sessions() == before


async def test_a_beat_prolongs_a_living_session(store: Store, clock: Clock):
    session = await a_session(store)
    for _ in range(20):
        clock.advance(LEASE - 0.001)
        assert await store.beat(session, lease=LEASE, holding={}) == Beat(alive=True)

    [record] = await store.sessions()
    assert record.lease_until == clock.now + timedelta(seconds=LEASE)


@pytest.mark.scenario(5)
async def test_a_long_job_of_a_beating_session_is_never_taken(store: Store, clock: Clock):
    job = await a_running_job(store)
    assert job.session_id is not None
    for _ in range(60):
        clock.advance(LEASE / 3)
        beat = await store.beat(job.session_id, lease=LEASE, holding={job.id: job.version})
        assert beat == Beat(alive=True)
        assert await rescue(store) == []

    assert await read(store, job) == job
    assert await claim(store) == []


async def test_a_session_is_over_at_the_very_end_of_its_lease(store: Store, clock: Clock):
    session = await a_session(store)
    clock.advance(LEASE)

    assert await store.beat(session, lease=LEASE, holding={}) == Beat(alive=False)
    clock.advance(-1)
    assert (await store.beat(session, lease=LEASE, holding={})).alive


async def test_an_expired_session_gets_no_work_even_before_anybody_ended_it(store: Store, clock: Clock):
    session = await a_session(store)
    clock.advance(LEASE)
    await store.enqueue([a_job()])

    assert await claim(store, session) == []
    assert len(await claim(store)) == 1


async def test_an_ended_session_gets_no_work_and_never_returns(store: Store):
    session = await a_session(store)
    await store.end_session(session)
    await store.enqueue([a_job()])

    assert await claim(store, session) == []
    assert await store.beat(session, lease=LEASE, holding={}) == Beat(alive=False)
    await store.open_session(SessionStart(id=session, host="here", pid=1, lanes={}, tasks=()), lease=LEASE)
    assert await claim(store, session) == []


async def test_a_session_nobody_opened_has_no_beat(store: Store):
    assert await store.beat(new_id(), lease=LEASE, holding={}) == Beat(alive=False)


async def test_the_jobs_of_an_ended_session_are_lost_at_once(store: Store):
    job = await a_running_job(store)
    assert job.session_id is not None
    assert await store.lost(limit=10) == []
    await store.end_session(job.session_id)

    [orphan] = await store.lost(limit=10)
    assert (orphan.id, orphan.version, orphan.state) == (job.id, job.version, State.RUNNING)
    assert (orphan.session_id, orphan.attempt) == (job.session_id, 1)


async def test_ending_a_session_again_changes_nothing(store: Store, clock: Clock):
    session = await a_session(store)
    await store.end_session(session)
    before = await store.sessions()
    clock.advance(5)
    await store.end_session(session)
    await store.end_session(new_id())

    assert await store.sessions() == before


@pytest.mark.scenario(3)
async def test_expired_sessions_are_ended_once_and_the_next_end_is_foretold(store: Store, clock: Clock):
    first = await a_session(store, lease=10)
    clock.advance(4)
    second = await a_session(store, lease=10)

    assert await store.end_expired() == 6.0
    clock.advance(6)
    assert await store.end_expired() == 4.0
    clock.advance(4)
    assert await store.end_expired() is None
    ended = {record.id: record.ended_at for record in await store.sessions()}
    assert ended == {first: clock.now - timedelta(seconds=4), second: clock.now}


async def test_a_job_whose_session_only_seems_late_is_not_lost_until_it_is_ended(store: Store, clock: Clock):
    await a_running_job(store)
    clock.advance(LEASE + 1)

    assert await store.lost(limit=10) == []
    await store.end_expired()
    assert len(await store.lost(limit=10)) == 1


async def test_a_job_whose_session_is_unknown_is_lost(store: Store, clock: Clock):
    job = await a_running_job(store)
    assert job.session_id is not None
    await store.end_session(job.session_id)
    clock.advance(2 * 86_400)
    await store.tidy(Retention())

    assert [orphan.id for orphan in await store.lost(limit=10)] == [job.id]


async def test_lost_jobs_are_told_up_to_the_limit(store: Store):
    session = await a_session(store)
    await store.enqueue([a_job() for _ in range(5)])
    await claim(store, session)
    await store.end_session(session)

    assert len(await store.lost(limit=3)) == 3
    assert len(await store.lost(limit=100)) == 5


async def test_the_jobs_of_the_living_are_not_lost(store: Store):
    await a_running_job(store)
    ended = await a_running_job(store)
    assert ended.session_id is not None
    await store.end_session(ended.session_id)

    assert [orphan.id for orphan in await store.lost(limit=10)] == [ended.id]


async def test_a_beat_names_held_jobs_that_are_no_longer_ours(store: Store):
    session = await a_session(store)
    await store.enqueue([a_job(), a_job(), a_job()])
    kept, done, older = await claim(store, session)
    await store.settle([completed(done)])
    stranger = new_id()

    beat = await store.beat(
        session,
        lease=LEASE,
        holding={kept.id: kept.version, done.id: done.version, older.id: older.version - 1, stranger: 2},
    )

    assert beat.alive
    assert set(beat.lost) == {done.id, older.id, stranger}
    assert beat.cancel == ()


async def test_a_beat_names_the_held_jobs_that_are_to_be_cancelled(store: Store):
    session = await a_session(store)
    await store.enqueue([a_job(), a_job()])
    stopped, other = await claim(store, session)
    await by_hand(store, stopped, Verb.CANCEL, reason="wrong")
    holding = {stopped.id: stopped.version, other.id: other.version}

    beat = await store.beat(session, lease=LEASE, holding=holding)

    assert (beat.alive, beat.cancel, beat.lost) == (True, (stopped.id,), ())


async def test_a_lost_job_that_was_to_be_cancelled_says_so(store: Store, clock: Clock):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.CANCEL, reason="wrong")
    clock.advance(LEASE)
    await rescue(store)

    ended = await read(store, job)
    assert (ended.state, ended.reason, ended.losses) == (State.CANCELLED, "wrong", 1)


async def test_sessions_that_ended_lately_are_listed_newest_first(store: Store, clock: Clock):
    old = await a_session(store, lease=1e6)
    clock.advance(60)
    ended = await a_session(store, lease=1e6)
    clock.advance(60)
    new = await a_session(store, lease=1e6)
    await store.end_session(ended)

    assert [record.id for record in await store.sessions()] == [new, ended, old]
    clock.advance(2 * 3600)
    assert [record.id for record in await store.sessions()] == [new, old]
