"""Many jobs in one step: rows of arguments, answers in order, one wrong row and none is stored."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from rota import KeyConflict, PayloadInvalid, Unique
from rota.stores.contract import JobFilter


async def payloads(app) -> list[dict]:
    return [job.payload for job in await app.store.find(JobFilter(oldest_first=True, limit=1000))]


async def test_rows_may_be_tuples_lists_or_mappings_of_arguments(app):
    @app.task
    def send(to: str, times: int = 1) -> None: ...

    result = await send.enqueue_many([("a",), ("b", 2), ["c", 3], {"to": "d"}, {"times": 5, "to": "e"}])

    assert await payloads(app) == [
        {"to": "a"}, {"to": "b", "times": 2}, {"to": "c", "times": 3}, {"to": "d"}, {"to": "e", "times": 5},
    ]  # fmt: skip
    assert [job.payload["to"] for job in [await handle.refresh() for handle in result]] == [
        "a",
        "b",
        "c",
        "d",
        "e",
    ]


async def test_for_a_task_with_one_parameter_a_row_may_be_the_value_itself(app):
    @app.task
    def index(document: dict | int | list) -> None: ...

    await index.enqueue_many([7, {"title": "x"}, {"document": 8}, [1, 2], (9,)])

    assert [found["document"] for found in await payloads(app)] == [7, {"title": "x"}, 8, [1, 2], 9]


async def test_a_task_without_parameters_takes_empty_rows(app):
    @app.task
    def tick() -> None: ...

    assert len(await tick.enqueue_many([(), {}])) == 2


async def test_no_rows_are_no_jobs(app):
    @app.task
    def tick() -> None: ...

    result = await tick.enqueue_many([])

    assert (list(result), result.created, result.duplicates) == ([], [], [])


async def test_one_wrong_row_and_none_is_stored(app):
    @app.task
    def send(to: str, times: int) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        await send.enqueue_many([("a", 1), ("b", "many"), ("c", 3)])

    assert str(refused.value).startswith("row 1: send cannot be enqueued: argument 'times'")
    assert str(refused.value).endswith("Nothing was stored.")
    assert await payloads(app) == []


async def test_a_bare_value_for_several_parameters_is_refused(app):
    @app.task
    def send(to: str, times: int) -> None: ...

    with pytest.raises(PayloadInvalid, match="row 0: send takes 2 arguments and got the single value 'a'"):
        await send.enqueue_many(["a"])


async def test_options_hold_for_every_row(app):
    @app.task
    def send(to: str) -> None: ...

    result = await send.using(queue="bulk", tenant="acme", delay="1h").enqueue_many(["a", "b"])

    jobs = [await handle.refresh() for handle in result]
    assert {(job.queue, job.tenant) for job in jobs} == {("bulk", "acme")}
    assert all(job.run_at > job.created_at for job in jobs)


async def test_the_answer_says_which_rows_were_duplicates(app):
    @app.task(unique=lambda to: to)
    def send(to: str) -> None: ...

    [first] = await send.enqueue_many(["a"])
    result = await send.enqueue_many(["b", "a", "b"])

    assert [handle.created for handle in result] == [True, False, False]
    assert result[1].id == first.id
    assert result[2].id == result[0].id
    assert result.created == [result[0]]
    assert result.duplicates == result[1:]
    assert not result.refused


async def test_rows_that_were_refused_are_named_and_the_others_are_stored(app, caplog):
    @app.task(key=lambda order, cents: f"order:{order}")
    def charge(order: int, cents: int) -> None: ...

    [first] = await charge.enqueue_many([(1, 100)])
    with caplog.at_level(logging.WARNING, "rota.enqueue"):
        result = await charge.enqueue_many([(2, 100), (1, 999)])

    assert result[0].created
    assert list(result.refused) == [1]
    assert isinstance(result.refused[1], KeyConflict)
    assert result[1].id == first.id
    assert result.duplicates == []
    assert "1 of 2 rows for charge were refused: row 1: the key 'order:1' belongs to job" in caplog.text


async def test_rejected_rows_are_refused_too(app):
    @app.task(unique=Unique(lambda to: to, on_duplicate="reject"))
    def send(to: str) -> None: ...

    result = await send.enqueue_many(["a", "a"])

    assert "a job with the unique key 'a' exists already" in str(result.refused[1])


async def test_order_within_a_batch_is_kept(app, work):
    @app.task
    def send(number: int) -> None: ...

    await send.enqueue_many(range(100))

    assert [job.payload["number"] for job in await work(app)] == list(range(100))


async def test_fifty_thousand_rows_are_prepared_quickly_and_stored_in_one_call(memory_app):
    @memory_app.task
    def send(number: int) -> None: ...

    calls = []

    async def enqueue(jobs):
        calls.append(len(jobs))
        return await type(memory_app.store).enqueue(memory_app.store, jobs)

    memory_app.store.enqueue = enqueue
    list(send.prepare_many([1], {}))
    began = time.process_time()
    prepared = sum(1 for _ in send.prepare_many(range(50_000), {}))
    took = time.process_time() - began
    result = await send.enqueue_many(range(50_000))

    assert (prepared, len(result), calls) == (50_000, 50_000, [50_000])
    assert took < 2.5, f"{took / 50_000 * 1e6:.1f} us a row"  # 8 us on an idle machine


async def test_a_large_batch_lets_others_have_their_turn(memory_app):
    @memory_app.task
    def send(number: int) -> None: ...

    turns = 0

    async def neighbour() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(neighbour())
    await send.enqueue_many(range(5000))
    other.cancel()

    assert turns >= 10
