"""What handlers log reaches the store: by current_job().log and by logging, from coroutines and threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from worker_stage import FaultyStore, Stage, until

from build import a_stored_job
from rota import Retry, current_job
from rota.current import keeper, running
from rota.errors import ConfigError, StoreUnavailable
from rota.stores.memory import MemoryStore
from rota.worker import capture
from rota.worker.execution import Run
from rota.worker.log_place import SIZE_LIMIT, Files, log_place
from rota.worker.logbook import Logbook

theirs = logging.getLogger("shop.orders")


class Notes(MemoryStore):
    """A memory store that counts how often it is given logs, and may refuse them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.down = False

    async def keep_logs(self, tails):
        self.calls += 1
        if self.down:
            raise StoreUnavailable("the line is cut")
        await super().keep_logs(tails)


def a_run(**fields) -> Run:
    return Run(a_stored_job(**fields), None, 0.0)


async def messages(store, job_id) -> list[list[str]]:
    return [[line.message for line in tail.lines] for tail in await store.logs(job_id)]


@pytest.mark.req("D23")
async def test_what_a_handler_says_is_in_the_store_while_it_runs_and_when_it_has_ended(stage, caplog):
    caplog.set_level(logging.INFO)
    go_on = asyncio.Event()

    @stage.app.task
    async def order(number: int) -> None:
        current_job().log.info("order %d begun", number)
        theirs.warning("stock of %s is low", "paper")
        theirs.debug("not of interest")
        await go_on.wait()
        current_job().log("done")

    await stage.work()
    handle = await order.enqueue(7)
    await until(lambda: stage.store.logs(handle.id))
    [tail] = await stage.store.logs(handle.id)
    assert [(line.level, line.message) for line in tail.lines] == [
        ("INFO", "order 7 begun"),
        ("WARNING", "shop.orders: stock of paper is low"),
    ]
    job = await stage.job(handle)
    assert (tail.version, tail.attempt, tail.written) == (job.version, 1, 2)
    assert abs((tail.lines[0].at - job.claimed_at).total_seconds()) < 5

    go_on.set()
    await stage.ended(handle)
    await until(lambda: _has(stage.store, handle.id, "done"))
    assert "order 7 begun" in caplog.text  # the console hears it too


async def _has(store, job_id, message: str) -> bool:
    return any(message in said for said in await messages(store, job_id))


async def test_a_handler_in_a_thread_and_threads_of_its_own_are_heard(stage):
    from contextvars import copy_context

    @stage.app.task
    def work() -> None:
        current_job().log.error("in the thread")
        helper = threading.Thread(target=copy_context().run, args=(theirs.error, "in %s", "a helper"))
        helper.start()
        helper.join()

    await stage.work()
    handle = await work.enqueue()
    await until(lambda: _has(stage.store, handle.id, "in the thread"))

    assert await messages(stage.store, handle.id) == [["in the thread", "shop.orders: in a helper"]]


async def test_each_attempt_has_its_own_lines(stage):
    @stage.app.task(retry=Retry(attempts=2, base=0.01))
    async def shaky() -> None:
        job = current_job()
        job.log.info("attempt %d", job.attempt)
        if job.attempt == 1:
            try:
                raise ValueError("token=hunter2")
            except ValueError:
                job.log.exception("it failed")
                raise

    worker = await stage.work()
    handle = await shaky.enqueue()
    await stage.ended(handle)
    await stage.stop(worker)  # a stop waits for the last lines

    first, second = await stage.store.logs(handle.id)
    assert [line.message for line in second.lines] == ["attempt 2"]
    assert first.lines[0].message == "attempt 1"
    assert first.lines[1].message.startswith("it failed\nTraceback")
    assert "ValueError: token=***" in first.lines[1].message
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.version > first.version


async def test_jobs_side_by_side_do_not_mix_their_lines(in_memory):
    @in_memory.app.task
    async def work(number: int) -> None:
        theirs.error("%d begins", number)
        await asyncio.sleep(0.01)
        theirs.error("%d ends", number)

    worker = await in_memory.work()
    handles = [await work.enqueue(number) for number in range(5)]
    for handle in handles:
        await in_memory.ended(handle)
    await in_memory.stop(worker)

    for number, handle in enumerate(handles):
        assert await messages(in_memory.store, handle.id) == [
            [f"shop.orders: {number} begins", f"shop.orders: {number} ends"]
        ]


async def test_jobs_that_log_nothing_cost_no_call_and_many_lines_travel_together():
    stage = Stage(Notes())

    @stage.app.task
    async def silent() -> None: ...

    @stage.app.task
    async def chatty() -> None:
        for number in range(1000):
            current_job().log.info("line %d", number)

    worker = await stage.work()
    for handle in [await silent.enqueue() for _ in range(20)]:
        await stage.ended(handle)
    assert worker._logbook._open == {}
    handle = await chatty.enqueue()
    await stage.ended(handle)
    await stage.stop(worker)

    assert stage.store.calls == 1
    [tail] = await stage.store.logs(handle.id)
    assert (tail.written, len(tail.lines), tail.lines[-1].message) == (1000, 50, "line 999")
    assert worker._logbook._open == {}


async def test_lines_wait_while_the_store_cannot_be_reached_and_memory_stays_bounded():
    store = Notes()
    book = Logbook(store, every=0)
    run = a_run()
    store.down = True
    for number in range(500):
        book.keep(run, logging.INFO, f"line {number} " + "x" * 10_000)
    with pytest.raises(StoreUnavailable):
        await book.step()
    run.ended = True
    book.keep(run, logging.INFO, "after the end")

    store.down = False
    await book.step()  # what was refused rings again by itself

    [tail] = await store.logs(run.job.id)
    assert (tail.written, tail.lines[-1].message[:8]) == (500, "line 499")
    assert book._open == {}


async def test_an_attempt_that_lost_its_job_is_not_heard_any_more():
    from rota.worker.execution import Stop

    store = Notes()
    book = Logbook(store, every=0)
    run = a_run()
    run.stop = Stop.LOST
    book.keep(run, logging.INFO, "too late")
    await book.flush()

    assert store.calls == 0


async def test_too_many_attempts_at_once_are_not_kept_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr("rota.worker.logbook.ATTEMPTS", 1)
    store = Notes()
    book = Logbook(store, every=0)
    for _ in range(3):
        book.keep(a_run(), logging.INFO, "x")
    await book.flush()

    assert "2 lines of jobs were not kept: too many attempts log at once." in caplog.text


# The whole log


@pytest.mark.req("D23")
async def test_the_whole_log_is_in_a_file_if_there_is_a_place_for_it(tmp_path):
    stage = Stage(MemoryStore(), log_location=(tmp_path / "job logs").as_uri())

    @stage.app.task
    async def work() -> None:
        for number in range(120):
            current_job().log.info("line %d, password=hunter2", number)

    worker = await stage.work()
    handle = await work.enqueue()
    await stage.ended(handle)
    await stage.stop(worker)

    [tail] = await stage.store.logs(handle.id)
    path = Path(unquote(urlsplit(tail.location).path))
    lines = path.read_text().splitlines()
    assert path.name == f"{handle.id}.{tail.version}.log"
    assert (len(lines), len(tail.lines)) == (120, 50)
    assert lines[0].endswith("INFO line 0, password=***")
    assert str(tail.lines[-1]) == lines[-1]


async def test_a_place_that_cannot_be_written_costs_the_whole_log_only(tmp_path, caplog):
    (tmp_path / "taken").write_text("a file, no directory")
    store = Notes()
    book = Logbook(store, Files(tmp_path / "taken"), every=0)
    for _ in range(2):
        run = a_run()
        book.keep(run, logging.INFO, "x")
        await book.flush()

    assert (await store.logs(run.job.id))[0].location is None
    assert caplog.text.count("the logs of jobs cannot be written below") == 1


async def test_a_file_says_what_it_lacks_and_does_not_grow_for_ever(tmp_path):
    store = Notes()
    book = Logbook(store, Files(tmp_path), every=0)
    run = a_run()
    for number in range(1500):
        book.keep(run, logging.INFO, f"line {number}")
    await book.flush()
    [path] = tmp_path.glob("*/*.log")
    first, second, *_ = path.read_text().splitlines()
    assert first == "… 500 lines were left out: too many at once"
    assert second.endswith("line 500")

    with path.open("a") as file:
        file.write("x" * SIZE_LIMIT)
    size = path.stat().st_size
    book.keep(run, logging.INFO, "one more")
    await book.flush()
    assert path.stat().st_size == size


@pytest.mark.parametrize("location", ["gs://bucket/logs", "/var/log", "file://host/logs", "file:logs"])
def test_a_location_that_is_none_is_refused_when_the_worker_starts(location):
    with pytest.raises(ConfigError, match=r"which is no place for logs\. Write file:///var/log/rota"):
        log_place(location)


# Capturing


async def test_logging_is_as_it_was_when_the_last_worker_has_gone():
    before = logging.getLogRecordFactory()
    one, two = Stage(MemoryStore()), Stage(FaultyStore())
    first, second = await one.work(), await two.work()
    assert logging.getLogRecordFactory() is not before
    await one.stop(first)
    assert logging.getLogRecordFactory() is not before

    await two.stop(second)

    assert logging.getLogRecordFactory() is before


def test_a_factory_that_somebody_laid_over_ours_stays_and_ours_is_not_laid_over_it_again():
    before = logging.getLogRecordFactory()
    capture.start()
    ours = logging.getLogRecordFactory()
    theirs_over_ours = lambda *args, **kwargs: ours(*args, **kwargs)  # noqa: E731
    logging.setLogRecordFactory(theirs_over_ours)
    try:
        capture.stop()
        capture.start()
        assert logging.getLogRecordFactory() is theirs_over_ours
        theirs.error("no endless loop")
        capture.stop()
    finally:
        logging.setLogRecordFactory(ours)
        capture.start()
        capture.stop()
    assert logging.getLogRecordFactory() is before


def test_a_record_that_cannot_be_put_into_words_is_kept_as_it_is_and_what_rota_says_is_not(capsys):
    heard: list[str] = []
    job = a_run()
    tokens = running.set(job), keeper.set(lambda _, level, message: heard.append(message))
    capture.start()
    try:
        logging.raiseExceptions, before = False, logging.raiseExceptions
        theirs.error("%d apples", "many")
        logging.getLogger("rota.worker").error("not theirs")
        logging.getLogger("rotary").error("theirs")
    finally:
        logging.raiseExceptions = before
        capture.stop()
        running.reset(tokens[0])
        keeper.reset(tokens[1])

    assert heard == ["shop.orders: %d apples", "rotary: theirs"]


def test_outside_a_worker_a_jobs_log_is_only_logged(caplog):
    from rota.current import RunningJob

    with caplog.at_level(logging.INFO):
        RunningJob(a_stored_job()).log.info("hello %s", "you")

    assert [(record.name, record.getMessage()) for record in caplog.records] == [("rota.job", "hello you")]
