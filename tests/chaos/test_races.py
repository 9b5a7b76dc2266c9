"""Races without any fault: fifty workers for a thousand jobs, and every way to end a job at the same moment."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter

import psycopg
import pytest

from build import a_job, a_session, completed, failed, lost
from chaos.orders import Order
from rota import Rota
from rota._core.actions import Audit, Verb, act
from rota._core.job import State
from rota._core.retry import Retry
from rota.stores.contract import Answer, Wanted
from rota.stores.postgres import PostgresStore


@pytest.mark.chaos
@pytest.mark.scenario(1)
@pytest.mark.req("D28")
def test_fifty_workers_share_a_thousand_jobs_and_every_one_gets_its_part(stage_there, one_seed):
    run = stage_there(one_seed, workers=5, slots=1, crowd=10)
    run.begin()
    with psycopg.connect(run.url, autocommit=True) as connection:
        deadline = time.monotonic() + 60
        while connection.execute("SELECT count(*) FROM rota.sessions").fetchone() != (50,):
            assert time.monotonic() < deadline, run.fleet.logs()
            time.sleep(0.1)
    run.produce(Order("a", "bulk", 1000, ms=100, batch=1000))
    run.produced()

    evidence = run.verdict(within=60)

    assert len(evidence.effects) == 1000
    assert evidence.tables.tried == []
    parts = Counter(row.session for row in evidence.tables.rows)
    assert len(parts) == 50


@pytest.mark.chaos
@pytest.mark.scenario(13)
@pytest.mark.timeout(300)
def test_every_way_to_end_a_job_at_once_has_one_winner_and_all_hear_the_truth(fresh_database, one_seed, long):
    """Its worker completes it and (a bug) fails it, a rescuer takes it, a person cancels it by force."""
    rounds = 1000 if long else 60
    barrier = threading.Barrier(4)
    answers: list[list[tuple[str, Answer, State | None]]] = [[] for _ in range(rounds)]
    ways = {"complete": completed, "fail": failed, "rescue": lost, "cancel": None}

    async def racer(way: str, jobs: list) -> None:
        store = PostgresStore(fresh_database)
        await store.open()
        for round_, job in enumerate(jobs):
            if way == "cancel":
                change = act(job, Verb.CANCEL, retry=Retry(), now=await store.now(), force=True)
                write = store.change(change, Audit("ada", Verb.CANCEL, job.id, None))
            else:
                write = store.settle([ways[way](job)])
            await asyncio.to_thread(barrier.wait)
            said = await write
            answer = said if way == "cancel" else said[0]
            answers[round_].append((way, answer.answer, answer.state))
        await store.close()

    async def prepare() -> list:
        store = PostgresStore(fresh_database)
        await store.enqueue([a_job() for _ in range(rounds)])
        jobs = await store.claim(Wanted(rounds), session=await a_session(store))
        await store.close()
        return jobs

    jobs = asyncio.run(prepare())
    racers = [threading.Thread(target=lambda way=way: asyncio.run(racer(way, jobs))) for way in ways]
    for thread in racers:
        thread.start()
    for thread in racers:
        thread.join()

    ends = {"complete": "completed", "fail": "pending", "rescue": "pending", "cancel": "cancelled"}
    with psycopg.connect(fresh_database) as connection:
        stored = dict(connection.execute("SELECT id, (state, version) FROM rota.all_jobs").fetchall())
    for job, said in zip(jobs, answers, strict=True):
        [winner] = [way for way, answer, _ in said if answer is Answer.APPLIED]
        assert [answer for _, answer, _ in said].count(Answer.FENCED) == 3
        assert {state for _, _, state in said} == {State(ends[winner])}
        assert stored[job.id] == (ends[winner], "3")
    assert len({way for said in answers for way, answer, _ in said if answer is Answer.APPLIED}) > 1


@pytest.mark.chaos
@pytest.mark.scenario(13)
def test_cancels_at_any_moment_of_a_jobs_life_leave_one_end_that_both_sides_agree_on(stage, one_seed, long):
    run = stage(one_seed, workers=2, slots=6)
    run.begin()
    run.produce(Order("a", "bulk", 1000 if long else 200, ms=120, batch=1000 if long else 200, seed=one_seed))
    run.produced()
    heard = asyncio.run(cancel_at_random(run.url, one_seed))

    evidence = run.verdict(within=60, ends=("completed", "cancelled"))

    states = Counter(row.state for row in evidence.tables.rows)
    assert min(states["completed"], states["cancelled"]) > 0
    for row in evidence.tables.rows:
        first, again = heard[row.job]
        if row.state == "cancelled":
            assert first is True
        if not first:
            assert (row.state, again) == ("completed", False)
        if row.attempt == 0:
            assert row.job not in evidence.runs, "it was cancelled before its start, and ran"
    assert asyncio.run(cancel_all_again(run.url, list(heard))) == {False}


async def cancel_at_random(url: str, seed: int) -> dict[str, tuple[bool, bool]]:
    """Cancel every job at some moment, and once more a little later; what was answered."""
    dice = random.Random(seed)
    app = Rota(url)
    with psycopg.connect(url) as connection:
        jobs = [job for (job,) in connection.execute("SELECT id::text FROM rota.all_jobs ORDER BY id")]
    waits = {job: dice.uniform(0.0, len(jobs) / 60) for job in jobs}

    async def cancel(job: str) -> tuple[bool, bool]:
        await asyncio.sleep(waits[job])
        first = await app.job(job).cancel("chaos")
        await asyncio.sleep(0.05)
        return first, await app.job(job).cancel("chaos")

    heard = dict(zip(jobs, await asyncio.gather(*map(cancel, jobs)), strict=True))
    await app.close()
    return heard


async def cancel_all_again(url: str, jobs: list[str]) -> set[bool]:
    """A cancel of a job that has ended is refused."""
    app = Rota(url)
    answers = {await app.job(job).cancel() for job in jobs}
    await app.close()
    return answers
