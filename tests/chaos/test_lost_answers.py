"""F16 and F17: the connection is cut around a commit: before it, during it, or after it and before its answer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import psycopg
import pytest

from build import a_job, a_session, completed, failed, new_id
from chaos.orders import Order
from chaos.proxy import Cut, Cutter
from rota._core.actions import Audit
from rota._core.job import State
from rota.stores.contract import Answer, Enqueued, Settled, Stored, Wanted
from rota.stores.postgres import PostgresStore

ENQUEUES = ("INSERT INTO rota.jobs", "COPY rota.jobs", "rota.enqueue_jobs")
CERTAIN = [Cut.BEFORE, Cut.AFTER]
"""Cuts with one possible end. What a cut in the middle leaves is for the heartbeat to find."""
MODES = {"single": 1, "together": 20, "bulk": 250, "keyed": 10}


@pytest.mark.chaos
@pytest.mark.scenario(6)
@pytest.mark.timeout(900)
def test_an_enqueue_cut_around_its_commit_is_stored_once_while_a_worker_drains(stage, proxy, seed, long):
    run = stage(seed, workers=1, slots=16, through=proxy.url)
    proxy.rule = run.nemesis.cut_commits(0.3, *ENQUEUES)
    run.begin()
    for mode, batch in MODES.items():
        count = {"single": 60, "together": 400, "bulk": 2000, "keyed": 150}[mode] * (10 if long else 1)
        run.produce(Order(mode, mode, count, ms=1, batch=batch, seed=seed))
    run.produced(300)

    evidence = run.verdict(within=60)

    cuts = Counter(cut for cut, _ in proxy.cuts)
    assert set(cuts) == set(Cut)
    assert [entry for entry in evidence.entries if not entry.acked] == []
    assert {len(runs) for runs in evidence.runs.values()} == {1}


@pytest.mark.chaos
@pytest.mark.scenario(6)
@pytest.mark.timeout(900)
def test_claims_and_settles_cut_around_their_commit_run_no_job_twice(stage, proxy, seed, long):
    # Beats come often, because a claim that is cut three times in a row is found again by them.
    run = stage(seed, workers=2, slots=8, beat=2.0, through=proxy.url)
    proxy.rule = run.nemesis.cut_commits(0.15, "rota.jobs", "rota.sessions")
    run.begin()
    run.produce(
        Order("a", "together", 4000 if long else 400, ms=20, batch=40, mix=True, pause=0.1, seed=seed)
    )
    run.produced(300)

    evidence = run.verdict(within=90)

    assert any("claim_no" in sql for _, sql in proxy.cuts)
    assert {effect.how for effect in evidence.effects} <= {"returned", "Planned"}


@pytest.fixture
async def store(proxy):
    """A PostgreSQL store whose every connection goes through the proxy."""
    store = PostgresStore(proxy.url)
    yield store
    await store.close()


@pytest.mark.scenario(6)
@pytest.mark.parametrize("cut", CERTAIN)
async def test_a_claim_whose_answer_was_lost_is_recovered_at_once(store, proxy, cut):
    jobs = [a_job() for _ in range(5)]
    await store.enqueue(jobs)
    session = await a_session(store)
    await store.next_due()
    proxy.rule = Cutter("claim_no =", cut)
    began = time.monotonic()

    claimed = await store.claim(Wanted(5), session=session)

    assert proxy.rule.done
    assert time.monotonic() - began < 3.0  # a fifth of the lease
    assert sorted(job.id for job in claimed) == sorted(job.id for job in jobs)
    assert {(job.version, job.attempt) for job in claimed} == {(2, 1)}
    assert await store.claim(Wanted(5), session=session) == []


@pytest.mark.scenario(6)
@pytest.mark.parametrize("way", [completed, failed], ids=["complete", "fail"])
@pytest.mark.parametrize(
    ("cut", "answer"), [(Cut.AFTER, Answer.ALREADY), (Cut.BEFORE, Answer.APPLIED)], ids=["after", "before"]
)
async def test_a_settle_whose_answer_was_lost_is_answered_already(store, proxy, cut, answer, way):
    await store.enqueue([a_job()])
    session = await a_session(store)
    [job] = await store.claim(Wanted(1), session=session)
    transition = way(job)
    proxy.rule = Cutter("DELETE FROM rota.jobs" if way is completed else "UPDATE rota.jobs", cut)

    assert await store.settle([transition]) == [Settled(job.id, answer, transition.to)]
    assert proxy.rule.done
    assert (await store.get([job.id]))[0].version == job.version + 1
    assert len(await store.attempts(job.id)) == (0 if way is completed else 1)


@pytest.mark.scenario(6)
@pytest.mark.parametrize("cut", CERTAIN)
async def test_an_exchange_whose_answer_was_lost_settles_once_and_claims_once(store, proxy, cut):
    jobs = [a_job() for _ in range(8)]
    await store.enqueue(jobs)
    session = await a_session(store)
    mine = await store.claim(Wanted(3), session=session)
    proxy.rule = Cutter("DELETE FROM rota.jobs", cut)

    settled, claimed = await store.exchange([completed(job) for job in mine], Wanted(3), session=session)

    assert proxy.rule.done
    assert {(answer.id, answer.state) for answer in settled} == {(job.id, State.COMPLETED) for job in mine}
    assert {answer.answer for answer in settled} <= {Answer.APPLIED, Answer.ALREADY}
    assert len({job.id for job in claimed} - {job.id for job in mine}) == len(claimed) == 3
    running = [job for job in await store.get([job.id for job in jobs]) if job.state is State.RUNNING]
    assert len(running) == 3


@pytest.mark.scenario(6)
@pytest.mark.parametrize("cut", Cut)
async def test_a_keyed_enqueue_whose_answer_was_lost_says_created(store, proxy, cut):
    job = a_job(key="order:7")
    proxy.rule = Cutter("rota.enqueue_jobs", cut)

    assert await store.enqueue([job]) == [Enqueued(job.id, Stored.CREATED)]
    assert proxy.rule.done


@pytest.mark.scenario(6)
@pytest.mark.parametrize("count", [1, 300], ids=["insert", "copy"])
async def test_an_enqueue_repeated_after_its_job_has_ended_does_not_run_it_again(
    proxy, fresh_database, count
):
    """The worst case: committed, answer lost, and before the repeat arrives a worker has finished the jobs."""
    loop = asyncio.get_running_loop()
    straight = PostgresStore(fresh_database)
    session = await a_session(straight)

    async def drain() -> None:
        while mine := await straight.claim(Wanted(500), session=session):
            await straight.settle([completed(job) for job in mine])

    proxy.rule = Cutter("rota.jobs", Cut.AFTER)
    proxy.meanwhile = lambda: asyncio.run_coroutine_threadsafe(drain(), loop).result()
    jobs = [a_job() for _ in range(count)]
    store = PostgresStore(proxy.url)

    answers = await store.enqueue(jobs)

    assert answers == [Enqueued(job.id, Stored.CREATED) for job in jobs]
    assert proxy.rule.done
    with psycopg.connect(fresh_database) as connection:
        found = connection.execute("SELECT state, count(*) FROM rota.all_jobs GROUP BY 1").fetchall()
    assert found == [("completed", count)]
    await store.close()
    await straight.close()


@pytest.mark.parametrize("cut", CERTAIN)
async def test_a_deploy_whose_answer_was_lost_is_told_once(store, proxy, cut):
    proxy.rule = Cutter("INSERT INTO rota.audit", cut)

    await store.publish([], Audit("ann", "deploy", None, after="v2", about="deploy:1"))

    assert proxy.rule.done
    assert len(await store.audit(about="deploy:1")) == 1


async def test_a_session_whose_opening_was_answered_twice_is_one_session(store, proxy):
    proxy.rule = Cutter("INSERT INTO rota.sessions", Cut.AFTER)
    session = await a_session(store)

    assert proxy.rule.done
    assert [life.id for life in await store.sessions()] == [session]
    assert (await store.beat(session, lease=15.0, holding={new_id(): 2})).alive
