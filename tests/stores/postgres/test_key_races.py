"""The races for a key, with both sides held still: one transaction stays open while the other runs into it."""

from __future__ import annotations

import asyncio

import pytest

from build import (
    ANY,
    a_job,
    a_running_job,
    a_session,
    applied,
    claim,
    completed,
    failed,
    fenced,
    handed_back,
    read,
    rescue,
)
from rota._core.job import Scope, State
from rota.stores.contract import Answer, Settled, Stored
from rota.stores.postgres.encoding import as_json
from rota.stores.postgres.sqlfiles import statement

ENQUEUE = "SELECT id, stored FROM rota.enqueue_jobs(%s::jsonb)"


@pytest.mark.req("W14")
@pytest.mark.scenario(9)
async def test_a_second_enqueue_waits_for_the_first_with_its_key_and_gets_its_job(store, side, waits):
    first = a_job(key="order:7")
    await side.execute(ENQUEUE, [as_json([first])])

    async with waits(store.enqueue([a_job(key="order:7")])) as second:
        await side.commit()
        [answer] = await second
    assert (answer.id, answer.stored) == (first.id, Stored.DUPLICATE)


async def test_a_key_whose_taker_rolled_back_goes_to_the_one_that_waited(store, side, waits):
    await side.execute(ENQUEUE, [as_json([a_job(key="order:7")])])
    second = a_job(key="order:7")

    async with waits(store.enqueue([second])) as waiting:
        await side.rollback()
        [answer] = await waiting
    assert (answer.id, answer.stored) == (second.id, Stored.CREATED)


@pytest.mark.scenario(10)
@pytest.mark.parametrize("commits", [True, False])
async def test_a_retry_whose_key_an_open_transaction_holds_waits_for_what_becomes_of_it(store, side, commits):
    job = await a_running_job(store, unique_key="site:1")
    successor = a_job(unique_key="site:1")
    await side.execute(ENQUEUE, [as_json([successor])])

    assert await store.settle([failed(job)]) == [Settled(job.id, Answer.BUSY, State.RUNNING)]
    assert await store.settle([failed(job)]) == [Settled(job.id, Answer.BUSY, State.RUNNING)]
    await (side.commit() if commits else side.rollback())
    state = State.CANCELLED if commits else State.PENDING
    assert await store.settle([failed(job)]) == [applied(job, state)]
    assert (await read(store, job)).superseded_by == (successor.id if commits else None)


@pytest.mark.scenario(10)
async def test_a_retry_that_waited_a_moment_for_its_successor_is_superseded(store, side, waits, monkeypatch):
    monkeypatch.setattr("rota.stores.postgres.settle.PATIENCE", 5.0)
    job = await a_running_job(store, unique_key="site:1")
    successor = a_job(unique_key="site:1")
    await side.execute(ENQUEUE, [as_json([successor])])

    async with waits(store.settle([failed(job)])) as retry:
        await side.commit()
        assert await retry == [applied(job, State.CANCELLED)]
    assert (await read(store, job)).superseded_by == successor.id


async def test_keys_that_open_transactions_hold_keep_neither_other_ends_nor_new_jobs_waiting(store, side):
    """Forty retries run into somebody's open tx=, and the batch with them is through in a moment."""
    session = await a_session(store)
    names = [f"site:{number}" for number in range(40)]
    await store.enqueue([a_job(unique_key=name) for name in names] + [a_job() for _ in range(10)])
    jobs = await claim(store, session)
    await side.execute(ENQUEUE, [as_json([a_job(unique_key=name) for name in names])])
    keyed, plain = [job for job in jobs if job.unique_key], [job for job in jobs if not job.unique_key]
    free = await a_running_job(store, unique_key="elsewhere")
    fresh = a_job()
    await store.enqueue([fresh])

    ends = [*map(failed, keyed), failed(free), *map(completed, plain[:5]), *map(failed, plain[5:])]
    async with asyncio.timeout(3):
        settled, claimed = await store.exchange(ends, ANY, session=session)

    assert [answer.answer for answer in settled] == [Answer.BUSY] * 40 + [Answer.APPLIED] * 11
    assert fresh.id in {job.id for job in claimed}
    await side.rollback()
    settled = await store.settle(ends)
    assert [answer.answer for answer in settled] == [Answer.APPLIED] * 40 + [Answer.ALREADY] * 11


async def test_a_rescue_is_not_stopped_by_a_key_that_an_open_transaction_holds(store, side):
    session = await a_session(store)
    await store.enqueue([a_job(unique_key="site:1"), a_job()])
    keyed, plain = sorted(await claim(store, session), key=lambda job: job.unique_key is None)
    await side.execute(ENQUEUE, [as_json([a_job(unique_key="site:1")])])
    await store.end_session(session)

    async with asyncio.timeout(2):
        assert {job.id for job in await rescue(store)} == {keyed.id, plain.id}
    assert [job.id for job in await store.lost(limit=10)] == [keyed.id]
    await side.commit()
    await rescue(store)
    assert (await read(store, keyed)).state is State.CANCELLED


async def test_an_old_claim_that_is_busy_and_a_new_one_of_the_same_job_are_judged_apart(store, side):
    old = await a_running_job(store, unique_key="site:1")
    await store.settle([handed_back(old)])
    [new] = await claim(store)
    await side.execute(ENQUEUE, [as_json([a_job(unique_key="site:1")])])

    answers = await store.settle([failed(old), completed(new)])

    assert [answer.answer for answer in answers] == [Answer.BUSY, Answer.APPLIED]
    await side.rollback()
    assert await store.settle([failed(old)]) == [fenced(old, State.COMPLETED)]


@pytest.mark.scenario(10)
async def test_a_successor_that_waited_for_a_retry_is_its_duplicate(store, side, waits):
    job = await a_running_job(store, unique_key="site:1")
    await side.settle(failed(job))

    async with waits(store.enqueue([a_job(unique_key="site:1")])) as successor:
        await side.commit()
        [answer] = await successor
    assert (answer.id, answer.stored) == (job.id, Stored.DUPLICATE)


async def test_the_holder_of_a_unique_key_does_not_start_before_the_duplicate_commits(store, side):
    """The duplicate's own writes are not visible yet: a holder that started now would miss them."""
    holder = a_job(unique_key="site:1")
    await store.enqueue([holder])
    [(_, stored)] = await side.execute(ENQUEUE, [as_json([a_job(unique_key="site:1")])])
    assert stored == "duplicate"

    assert await claim(store) == []
    await side.commit()

    assert [job.id for job in await claim(store)] == [holder.id]


async def test_a_key_that_the_janitor_is_removing_is_taken_anew_and_not_lost(store, side, waits):
    async with store._desks().connections.connection() as connection:
        await connection.execute(
            "INSERT INTO rota.keys (kind, tenant, key, until)"
            " VALUES ('idempotency', '', 'order:7', now() - interval '1 hour')"
        )
    await side.execute(statement("tidy_keys"), {"limit": 100, "now": None})
    first = a_job(key="order:7")

    async with waits(store.enqueue([first])) as waiting:
        await side.commit()
        assert (await waiting)[0].stored is Stored.CREATED
    [again] = await store.enqueue([a_job(key="order:7")])
    assert (again.id, again.stored) == (first.id, Stored.DUPLICATE)


async def test_batches_with_the_same_keys_in_opposite_orders_do_not_deadlock(store):
    names = [f"key:{number}" for number in range(20)]

    async def batch(order: list[str]) -> list[Stored]:
        return [answer.stored for answer in await store.enqueue([a_job(key=name) for name in order])]

    answers = await asyncio.gather(*[batch(names if turn % 2 else names[::-1]) for turn in range(8)])

    assert sum(stored is Stored.CREATED for batch_ in answers for stored in batch_) == len(names)


async def test_the_janitor_leaves_a_key_that_a_new_job_took_since_it_looked(store):
    """Its snapshot still sees the key with a job that has ended."""
    first = a_job(unique_key="site:1")
    await store.enqueue([first])
    [job] = await claim(store)
    await store.settle([completed(job)])
    slow = statement("tidy_keys").replace(
        "FROM rota.keys AS old", "FROM (SELECT pg_sleep(0.7)) AS nap, rota.keys AS old"
    )
    slow = slow.replace("FOR UPDATE SKIP LOCKED", "FOR UPDATE OF old SKIP LOCKED")

    async def tidy():
        async with store._desks().connections.connection() as connection:
            await connection.execute(slow, {"limit": 100, "now": None})

    janitor = asyncio.create_task(tidy())
    await asyncio.sleep(0.2)
    second = a_job(unique_key="site:1")
    assert (await store.enqueue([second]))[0].stored is Stored.CREATED
    await janitor

    [third] = await store.enqueue([a_job(unique_key="site:1")])
    assert (third.id, third.stored) == (second.id, Stored.DUPLICATE)


async def test_a_callers_open_transaction_does_not_keep_a_running_holder_from_ending(store, side):
    job = await a_running_job(store, unique_key="site:1", unique_scope=Scope.FINISHED)
    [(_, stored)] = await side.execute(
        ENQUEUE, [as_json([a_job(unique_key="site:1", unique_scope=Scope.FINISHED)])]
    )
    assert stored == "duplicate"

    async with asyncio.timeout(2):
        assert await store.settle([completed(job)]) == [applied(job, State.COMPLETED)]
