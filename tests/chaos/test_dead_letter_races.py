"""Everything that can be done to a dead letter, done at the same moment, again and again."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import psycopg
import pytest

from build import a_job, a_session, completed, failed, new_id
from chaos.trail import Letter, Told, wrong
from rota._core.actions import Audit, Verb, act
from rota._core.dead_letter import follower, review_audit
from rota._core.failure import ErrorClass
from rota._core.job import Job
from rota._core.retry import Retry
from rota._core.review import REQUESTED, SUCCESS, Landed, ReviewChange, ReviewVerb, review
from rota.stores.contract import Answer, Store, Wanted
from rota.stores.postgres import PostgresStore

BATCH = 500
LETTERS = "SELECT id::text, review, reprocessed_as::text FROM rota.dead_jobs"
AUDIT = "SELECT job_id::text, action, after FROM rota.audit WHERE job_id IS NOT NULL ORDER BY id"
FOLLOWERS = "SELECT parent_id::text, count(*) FROM rota.all_jobs WHERE parent_id IS NOT NULL GROUP BY 1"
ENDED = "SELECT id::text FROM rota.all_jobs WHERE parent_id IS NOT NULL AND state = %s"


async def buried(store: Store, count: int) -> list[Job]:
    """So many dead jobs, each with a key of its own."""
    session = await a_session(store, lease=3600)
    for start in range(0, count, BATCH):
        await store.enqueue([a_job(key=f"k{n}") for n in range(start, min(start + BATCH, count))])
        jobs = await store.claim(Wanted(BATCH), session=session)
        while jobs:
            await store.settle([failed(job, ErrorClass.NON_RETRYABLE) for job in jobs])
            jobs = await store.claim(Wanted(BATCH), session=session)
    found: list[Job] = []
    with psycopg.connect(store.url) as connection:  # type: ignore[attr-defined]
        ids = [row[0] for row in connection.execute("SELECT id FROM rota.dead_jobs ORDER BY id")]
    for start in range(0, len(ids), BATCH):
        found += await store.get(ids[start : start + BATCH])
    return found


async def reprocess(store: Store, job: Job, by: str) -> tuple[str, bool]:
    change = review(job, ReviewVerb.REPROCESS, by=by)
    assert isinstance(change, ReviewChange)
    new = follower(job, new_id(), by=by)
    pair = [Audit(by, action, job.id, after=f"job {new.id}") for action in (REQUESTED, SUCCESS)]
    answer = await store.reprocess(change, new, pair)
    return f"reprocess:{answer.new_job}", answer.landed is Landed.APPLIED


async def discard(store: Store, job: Job, by: str) -> tuple[str, bool]:
    change = review(job, ReviewVerb.DISCARD, by=by)
    assert isinstance(change, ReviewChange)
    answer = await store.change_review(change, review_audit(by, job, change, ReviewVerb.DISCARD))
    return "discard", answer.landed is Landed.APPLIED


async def retry(store: Store, job: Job, by: str) -> tuple[str, bool]:
    change = act(job, Verb.RETRY, retry=Retry(), now=job.updated_at)
    answer = await store.change(change, Audit(by, "retry", job.id))  # type: ignore[arg-type]
    return "retry", answer.answer is Answer.APPLIED


WAYS = {"ann": reprocess, "bob": reprocess, "cal": discard, "dee": retry}


@pytest.mark.chaos
@pytest.mark.scenario(14)
@pytest.mark.req("W33")
@pytest.mark.timeout(900)
def test_clicks_at_the_same_moment_make_one_job_or_none_and_are_told_once(fresh_database, one_seed, long):
    """Two reprocess it, one discards it, one runs it again in place; then the new jobs end, well and badly."""
    rounds = 10_000 if long else 60
    barrier = threading.Barrier(len(WAYS))
    answers: list[list[tuple[str, bool]]] = [[] for _ in range(rounds)]

    async def prepare() -> list[Job]:
        store = PostgresStore(fresh_database)
        jobs = await buried(store, rounds)
        await store.close()
        return jobs

    async def clicker(by: str, jobs: list[Job]) -> None:
        store = PostgresStore(fresh_database)
        await store.open()
        for round_, job in enumerate(jobs):
            await asyncio.to_thread(barrier.wait)
            answers[round_].append(await WAYS[by](store, job, by))
        await store.close()

    jobs = asyncio.run(prepare())
    assert len(jobs) == rounds
    clickers = [threading.Thread(target=lambda by=by: asyncio.run(clicker(by, jobs))) for by in WAYS]
    for thread in clickers:
        thread.start()
    for thread in clickers:
        thread.join()

    winners = Counter()
    for said in answers:
        [winner] = [way for way, won in said if won]
        winners[winner.partition(":")[0]] += 1
        if winner.startswith("reprocess"):
            assert [way for way, _ in said].count(winner) == 2, "both who clicked are told of the same job"
    assert len(winners) > 1
    trails(fresh_database)
    with psycopg.connect(fresh_database) as connection:
        assert {count for _, count in connection.execute(FOLLOWERS)} <= {1}
        assert len(connection.execute(FOLLOWERS).fetchall()) == winners["reprocess"]

    asyncio.run(ends(fresh_database))
    trails(fresh_database)
    with psycopg.connect(fresh_database) as connection:
        stands = dict(connection.execute("SELECT review, count(*) FROM rota.dead_jobs GROUP BY 1").fetchall())
        done = len(connection.execute(ENDED, ["completed"]).fetchall())
    assert stands.get("resolved", 0) == done
    assert "reprocessing" not in stands


async def ends(url: str) -> None:
    """Half of what waits completes, the other half dies; several look after the reviews at once."""
    stores = [PostgresStore(url) for _ in range(3)]
    store = stores[0]
    session = await a_session(store, lease=3600)
    while jobs := await store.claim(Wanted(BATCH), session=session):
        await store.settle(
            [completed(job) if n % 2 else failed(job, ErrorClass.NON_RETRYABLE) for n, job in enumerate(jobs)]
        )
    while sum(
        still + moved for moved, still in await asyncio.gather(*(one.settle_reviews() for one in stores))
    ):
        pass
    for one in stores:
        await one.close()


def trails(url: str) -> None:
    """What the audit tells of every dead letter is true."""
    with psycopg.connect(url) as connection:
        letters = [Letter(*row) for row in connection.execute(LETTERS)]
        told: dict[str, list[Told]] = {}
        for row in connection.execute(AUDIT):
            told.setdefault(row[0], []).append(Told(*row))
    faults = [(letter.job, what) for letter in letters if (what := wrong(letter, told.get(letter.job, [])))]
    assert faults == []
