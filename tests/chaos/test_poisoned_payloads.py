"""F8, F50: what cannot be stored, read or kept; and a batch of ends with one such among them, cut in the middle."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import psycopg
import pytest

from build import a_job, a_session, completed
from chaos.proxy import Cut
from rota import Rota
from rota._core.job import NewJob, State
from rota.config import Settings
from rota.errors import PayloadInvalid
from rota.stores.contract import Answer, JobFilter, Wanted
from rota.stores.postgres import PostgresStore
from rota.worker import Worker

BY_HAND = {
    "a list": "[1, 2]",
    "a text": '"hello"',
    "nothing": "null",
    "a missing argument": "{}",
    "an argument too many": '{"n": 1, "m": 2}',
    "another type": '{"n": "many"}',
    "a thousand lists": '{"n": ' + "[" * 1000 + "]" * 1000 + "}",
    "a key of emptiness": '{"": 1}',
}
"""Payloads that no task would have sent, but which PostgreSQL keeps."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


RETURNED = {
    "not a number": math.nan,
    "endless": math.inf,
    "half of a character": "\ud800",
    "the zero character": "a\0b",
    "a hundred thousand lists": deep(100_000),
    "an object": object(),
    "a megabyte": "x" * 1_000_000,
    "a mapping of halves": {"\udfff": 1},
}


@pytest.fixture
async def store(fresh_database):
    store = PostgresStore(fresh_database)
    yield store
    await store.close()


async def until_ended(store: PostgresStore, count: int) -> dict[object, Any]:
    """Every job, once all have ended."""
    async with asyncio.timeout(30):
        while True:
            jobs = await store.find(JobFilter(limit=200))
            if sum(job.state in (State.COMPLETED, State.DEAD) for job in jobs) == count:
                return {job.id: job for job in jobs}
            await asyncio.sleep(0.05)


@pytest.mark.scenario(7)
async def test_payloads_and_results_that_cannot_be_are_dead_with_a_reason_and_harm_no_neighbour(
    store, fresh_database
):
    app = Rota(store=store, settings=Settings.load(url="memory://", poll=0.1, idle_poll=0.2))

    @app.task
    async def count(n: int) -> int:
        return n

    @app.task
    async def returns(what: str) -> Any:
        return RETURNED[what]

    worker = Worker(app, lanes={"general": 8})
    running = asyncio.create_task(worker.run())
    await worker.ready()
    good = [await count.enqueue(n) for n in range(40)]
    bad = {(await returns.enqueue(what)).id: what for what in RETURNED}
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        for what, payload in BY_HAND.items():
            row = connection.execute(
                "INSERT INTO rota.jobs (id, run_at, created_at, updated_at, task, payload) "
                "VALUES (gen_random_uuid(), now(), now(), now(), 'count', %s::jsonb) RETURNING id",
                [payload],
            ).fetchone()
            bad[row[0]] = what
        connection.execute("SELECT rota.hint('default', 100::smallint, false)")
    good += [await count.enqueue(n) for n in range(40)]
    jobs = await until_ended(store, len(good) + len(bad))
    worker.stop()

    assert await running == 0
    assert {jobs[handle.id].state for handle in good} == {State.COMPLETED}
    assert {what for job_id, what in bad.items() if jobs[job_id].state is not State.DEAD} == set()
    for job_id, what in bad.items():
        [attempt] = await store.attempts(job_id)
        assert attempt.message, f"{what} is dead without a reason"
        assert len(attempt.message) < 3000


@pytest.mark.parametrize(
    "payload",
    [r'{"text": "\u0000"}', r'{"text": "\ud800"}', '{"n": NaN}', '{"n": 1'],
    ids=["zero", "surrogate", "nan", "cut off"],
)
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
async def test_a_payload_that_postgresql_cannot_keep_is_refused_and_its_companions_are_stored(
    store, payload, keyed
):
    poisoned = NewJob(task="email", id=a_job().id, payload_json=payload, key="k" if keyed else None)
    others = [a_job() for _ in range(10)]
    enqueues = [store.enqueue([job]) for job in [*others[:5], poisoned, *others[5:]]]

    answers = await asyncio.gather(*enqueues, return_exceptions=True)

    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert [type(error) for error in refused] == [PayloadInvalid]
    assert "Nothing was stored" in str(refused[0])
    assert {job.id for job in await store.find(JobFilter(limit=50))} == {job.id for job in others}


class NthCut:
    """A rule that cuts once: the n-th commit that is about our tables."""

    def __init__(self, number: int, cut: Cut) -> None:
        self._left, self._cut, self.done = number, cut, False

    def __call__(self, commit) -> Cut | None:
        if self.done or "rota." not in commit.sql:
            return None
        self._left -= 1
        self.done = self._left < 0
        return self._cut if self.done else None


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER], ids=["before", "after"])
@pytest.mark.parametrize("number", range(6))
async def test_a_batch_with_one_bad_result_that_is_cut_at_any_step_costs_only_the_bad_one(proxy, cut, number):
    store = PostgresStore(proxy.url)
    await store.enqueue([a_job() for _ in range(9)])
    session = await a_session(store)
    jobs = await store.claim(Wanted(9), session=session)
    ends = [completed(job, {"n": place}) for place, job in enumerate(jobs)]
    ends[4] = ends[4]._replace(result_json=r'"\u0000"')
    proxy.rule = NthCut(number, cut)

    answers = await store.settle(ends)

    assert proxy.rule.done
    # Of the bad one it may hear that it has moved on: that is dead, and not completed as it was asked.
    assert {answer.answer for answer in answers[:4] + answers[5:]} <= {Answer.APPLIED, Answer.ALREADY}
    assert [answer.state for answer in answers] == [State.COMPLETED] * 4 + [State.DEAD] + [
        State.COMPLETED
    ] * 4
    found = {job.id: job for job in await store.get([job.id for job in jobs])}
    assert [found[job.id].state for job in jobs] == [answer.state for answer in answers]
    assert [found[job.id].version for job in jobs] == [job.version + 1 for job in jobs]
    [attempt] = await store.attempts(jobs[4].id)
    assert "its result could not be stored" in attempt.message
    await store.close()
