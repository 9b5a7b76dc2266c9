"""Each race rule with both sides held still: one transaction stays open while the other side runs into it."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from build import (
    ANY,
    ONE,
    a_job,
    a_running_job,
    a_session,
    applied,
    claim,
    completed,
    fenced,
    lost,
    new_id,
    read,
)
from rota._core.actions import Audit, CancelRequest
from rota._core.job import State
from rota._core.outcome import Transition
from rota.stores.contract import Answer, SessionStart, Wanted
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.encoding import as_json
from rota.stores.postgres.sqlfiles import statement

ENQUEUE = "SELECT id, stored FROM rota.enqueue_jobs(%s::jsonb)"


async def expire(store: PostgresStore, session: UUID) -> None:
    """Let a session's lease be past."""
    async with store._desks().connections.connection() as connection:
        await connection.execute(
            "UPDATE rota.sessions SET lease_until = now() - interval '1 second' WHERE id = %s", [session]
        )


# Claim


@pytest.mark.req("D26", "W11", "L17")
async def test_a_job_that_an_open_claim_holds_is_passed_over_and_not_waited_for(store, side):
    first, second = a_job(), a_job()
    await store.enqueue([first, second])
    await side.execute("SELECT id FROM rota.jobs WHERE id = %s FOR UPDATE", [first.id])

    async with asyncio.timeout(2):
        jobs = await claim(store)

    assert [job.id for job in jobs] == [second.id]


@pytest.mark.req("W38")
async def test_an_exchange_passes_over_what_an_open_claim_holds_and_does_not_wait_either(store, side):
    session = await a_session(store)
    await store.enqueue([a_job()])
    [running] = await claim(store, session, ONE)
    first, second = a_job(), a_job()
    await store.enqueue([first, second])
    await side.execute("SELECT id FROM rota.jobs WHERE id = %s FOR UPDATE", [first.id])
    await store.next_due()

    async with asyncio.timeout(2):
        settled, jobs = await store.exchange([completed(running)], ANY, session=session)

    assert settled == [applied(running, State.COMPLETED)]
    assert [job.id for job in jobs] == [second.id]


async def test_a_job_committed_late_below_the_floor_is_still_claimed(store, side):
    """Its run_at is older than jobs that were claimed before it became visible."""
    late = a_job()
    await side.execute(statement("enqueue"), {"jobs": as_json([late]), "now": None, "hint": False})
    await store.enqueue([a_job() for _ in range(30)])
    session = await a_session(store)
    assert len(await store.claim(Wanted(10), session=session)) == 10
    await side.commit()

    seen: set[UUID] = set()
    async with asyncio.timeout(5):
        while late.id not in seen:
            seen |= {job.id for job in await store.claim(Wanted(2), session=session)}
            await store.enqueue([a_job(), a_job()])

    assert late.id in seen


async def test_a_hint_that_comes_while_a_claim_is_under_way_is_not_forgotten_with_it(store):
    session = await a_session(store)
    claims = store._desks().claims
    claims.hint("default", 100, gated=False)
    plan = claims.plan(ANY, session, 1)

    claims.hint("default", 100, gated=False)
    claims.received(plan, [])

    assert claims.plan(ANY, session, 2) is not None


async def test_a_claim_by_a_session_that_ends_meanwhile_leaves_jobs_that_the_rescuer_finds(store, side):
    job = a_job()
    await store.enqueue([job])
    session = await a_session(store)
    claims = store._desks().claims
    await claims.next_due(None)
    plan = claims.plan(ONE, session, 1)
    rows = await side.execute(statement("claim"), plan.parameters | {"now": await store.now()})
    assert len(rows) == 1
    await store.end_session(session)
    assert await store.lost(limit=10) == []
    await side.commit()

    assert [found.id for found in await store.lost(limit=10)] == [job.id]


# Settle against rescue, cancel and operators


@pytest.mark.req("D16")
async def test_a_settle_that_waited_for_a_rescue_is_fenced_by_it(store, side, waits):
    job = await a_running_job(store)
    assert await side.settle(lost(job)) == applied(job, State.PENDING)

    async with waits(store.settle([completed(job)])) as late:
        await side.commit()
        assert await late == [fenced(job, State.PENDING)]


async def test_a_rescue_that_waited_for_a_settle_is_fenced_by_it(store, side, waits):
    job = await a_running_job(store)
    assert await side.settle(completed(job)) == applied(job, State.COMPLETED)

    async with waits(store.settle([lost(job)])) as rescue:
        await side.commit()
        assert await rescue == [fenced(job, State.COMPLETED)]
    assert await store.attempts(job.id) == []


async def test_a_settle_that_was_rolled_back_leaves_the_job_to_the_one_that_waited(store, side, waits):
    job = await a_running_job(store)
    await side.settle(completed(job))

    async with waits(store.settle([lost(job)])) as rescue:
        await side.rollback()
        assert await rescue == [applied(job, State.PENDING)]


@pytest.mark.scenario(13)
async def test_asking_for_a_cancel_does_not_cost_a_finishing_worker_its_answer(store, side, waits):
    job = await a_running_job(store)
    asked = {"id": job.id, "version": job.version, "reason": "stop", "now": None}
    assert await side.execute(statement("request_cancel"), asked)

    async with waits(store.settle([completed(job)])) as worker:
        await side.commit()
        assert await worker == [applied(job, State.COMPLETED)]


@pytest.mark.scenario(13)
async def test_a_forced_cancel_and_a_success_have_one_winner(store, side, waits):
    job = await a_running_job(store)
    await side.settle(Transition(job, State.CANCELLED, "cancel", reason="now"))

    async with waits(store.settle([completed(job)])) as worker:
        await side.commit()
        assert await worker == [fenced(job, State.CANCELLED)]


async def test_two_operators_with_the_same_version_do_one_change_and_one_audit_row(store):
    new = a_job()
    await store.enqueue([new])
    job = await read(store, new)

    answers = await asyncio.gather(
        *[
            store.change(Transition(job, State.CANCELLED, "cancel", reason=who), Audit(who, "cancel", job.id))
            for who in ("ada", "bob", "cyd", "dan")
        ]
    )

    assert [answer.answer for answer in answers].count(Answer.APPLIED) == 1
    assert len(await store.audit(job.id)) == 1


async def test_a_cancel_request_for_a_claim_that_was_rescued_meanwhile_is_fenced(store, side, waits):
    job = await a_running_job(store)
    await side.settle(lost(job))

    async with waits(store.change(CancelRequest(job), Audit("ada", "cancel", job.id))) as request:
        await side.commit()
        assert (await request).answer is Answer.FENCED


# Sessions


async def test_a_beat_that_waited_for_the_end_of_its_session_does_not_revive_it(store, side, waits):
    session = await a_session(store)
    await side.execute(statement("end_session"), {"session": session, "now": None})

    async with waits(store.beat(session, lease=15, holding={})) as beat:
        await side.commit()
        assert not (await beat).alive


async def test_a_session_that_beat_in_time_is_not_ended_by_a_rescuer_that_waited(store, side, waits):
    session = await a_session(store)
    await side.execute(
        statement("beat"),
        {"session": session, "lease": 15, "ids": "{}", "versions": "{}", "memory": None, "now": None},
    )
    # Expired as the rescuer's snapshot sees it; the open beat is newer.
    async with store._desks().connections.connection() as connection:
        row = await (
            await connection.execute("SELECT count(*) FROM rota.sessions WHERE ended_at IS NULL")
        ).fetchone()
    assert row == (1,)
    await side.commit()

    await store.end_expired()

    assert (await store.beat(session, lease=15, holding={})).alive


async def test_a_late_beat_of_an_expired_session_is_refused_even_before_anybody_ended_it(store):
    session = await a_session(store)
    await expire(store, session)

    assert not (await store.beat(session, lease=15, holding={})).alive


# A repeated enqueue


@pytest.mark.scenario(6)
async def test_a_repeated_enqueue_undoes_itself_when_the_job_finishes_under_its_hands(store, side, waits):
    new = a_job()
    await store.enqueue([new])
    [job] = await claim(store)
    await side.settle(completed(job))

    async with waits(store.enqueue([new])) as repeat:
        await side.commit()
        assert (await repeat)[0].created
    assert (await read(store, new)).state is State.COMPLETED
    assert await claim(store) == []


@pytest.mark.scenario(6)
async def test_a_repeated_bulk_enqueue_brings_no_finished_job_back(store):
    jobs = [a_job() for _ in range(300)]
    await store.enqueue(jobs)
    taken = await claim(store, wanted=Wanted(200))
    await store.settle([completed(job) for job in taken])

    answers = await store.enqueue(jobs)

    assert all(answer.created for answer in answers)
    assert len(await claim(store, wanted=Wanted(500))) == 100


# Gates


@pytest.mark.req("W10")
async def test_a_gate_that_an_open_claim_holds_lets_nobody_else_in(store, side):
    first, second = a_job(gate="account:1"), a_job(gate="account:1")
    await store.enqueue([first, second])
    await side.execute("SELECT pg_advisory_xact_lock(hashtextextended('account:1', 7091))")

    assert await claim(store) == []
    await side.rollback()

    assert len(await claim(store)) == 1


@pytest.mark.req("W10")
async def test_eight_claimers_never_run_two_jobs_of_one_gate(store, fresh_database):
    await store.enqueue([a_job(gate=f"account:{number % 3}") for number in range(60)])
    inside: dict[str, int] = {}
    done: list[UUID] = []

    async def work() -> None:
        own = PostgresStore(fresh_database)
        session = await a_session(own, lease=60)
        while len(done) < 60:
            for job in await own.claim(ONE, session=session):
                inside[job.gate] = inside.get(job.gate, 0) + 1
                assert inside[job.gate] == 1
                await asyncio.sleep(0)
                inside[job.gate] -= 1
                done.append(job.id)
                await own.settle([completed(job)])
            await own.unpark()
        await own.close()

    async with asyncio.timeout(60):
        await asyncio.gather(*[work() for _ in range(8)])

    assert sorted(done) == sorted(set(done))


# Days


async def test_two_janitors_make_the_same_days_once(store, side, waits):
    later = "now() + interval '40 days'"
    await side.execute(f"SELECT rota.open_days({later})")

    async def second() -> int:
        async with store._desks().connections.connection() as connection:
            row = await (await connection.execute(f"SELECT rota.open_days({later})")).fetchone()
            return row[0]

    async with waits(second()) as waiting:
        await side.commit()
        assert await waiting == 0


async def test_fifty_workers_and_a_thousand_jobs_make_one_claim_each(store, fresh_database):
    jobs = [a_job(task="email", priority=100 + number % 3) for number in range(1000)]
    await store.enqueue(jobs)
    taken: list[UUID] = []

    async def work() -> None:
        session = SessionStart(new_id(), "here", 1, {"general": 5}, ("email",))
        await store.open_session(session, lease=60)
        while len(taken) < 1000:
            got = await store.claim(Wanted(7), session=session.id)
            taken.extend(job.id for job in got)
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*[work() for _ in range(50)])

    assert sorted(taken) == sorted(job.id for job in jobs)
