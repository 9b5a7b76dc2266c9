"""What a handler in a child process can end with, and what reaches the store of it."""

from __future__ import annotations

import logging

import process_tasks as tasks
import pytest
from process_stage import ProcessStage, variables

from rota._core.job import State
from rota.errors import JobDead, NotSupported, TaskError

STARTS = 30.0
"""Seconds that a test waits for a job whose child must start first, on a busy machine."""


async def test_plain_and_async_functions_return_their_results(children: ProcessStage):
    await children.work()
    sums = [await tasks.add.enqueue(1), await tasks.add_later.enqueue(3, 4), await tasks.add.enqueue(5, b=6)]

    assert [(await children.ended(handle, STARTS)).result for handle in sums] == [3, 7, 11]


async def test_the_handler_knows_its_job_and_the_resources_of_its_process(children: ProcessStage):
    await children.work()
    handle = await tasks.whoami.using(tenant="acme", correlation_id="order-7").enqueue()
    seen = (await children.ended(handle, STARTS)).result

    assert (seen["attempt"], seen["tenant"], seen["correlation"]) == (1, "acme", "order-7")
    assert seen["greeting"] == "hello"
    assert seen["session_is_own"]


async def test_a_child_sees_no_secret_of_the_environment_unless_its_task_asks(children: ProcessStage):
    with variables(SHOP_TOKEN="t0ps3cret", DATABASE_URL="postgresql://u:p@h/d", ROTA_URL="memory://"):
        await children.work()
        plain, asked = await tasks.whoami.enqueue(), await tasks.shop_variable.enqueue()
        seen = (await children.ended(plain, STARTS)).result["environment"]

        assert {"PATH", "HOME"} <= set(seen)
        assert not {"SHOP_TOKEN", "DATABASE_URL", "ROTA_URL"} & set(seen)
        assert (await children.ended(asked, STARTS)).result == "t0ps3cret"


async def test_what_a_child_writes_is_for_its_own_user_unless_its_task_says_otherwise(children: ProcessStage):
    await children.work()
    plain, asked = await tasks.rights_of_a_file.enqueue(), await tasks.rights_for_others.enqueue()

    assert (await children.ended(plain, STARTS)).result == "0o600"
    assert (await children.ended(asked, STARTS)).result == "0o644"


async def test_children_are_used_again_and_replaced_when_they_are_worn_out(children: ProcessStage):
    await children.work(lanes={"general": 1})
    handles = [await tasks.worn_out.enqueue() for _ in range(5)]
    pids = [(await children.ended(handle, STARTS)).result for handle in handles]

    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


@pytest.mark.parametrize(
    ("how", "state", "error_class", "words"),
    [
        ("error", State.PENDING, "retryable", "no such row: 7"),
        ("unpicklable", State.PENDING, "retryable", "odd"),
        ("mute", State.PENDING, "retryable", "str() of it fails"),
        ("exit", State.PENDING, "retryable", "3"),
        ("die", State.DEAD, "non_retryable", "beyond help"),
        ("retry_after", State.PENDING, "rate_limited", "busy"),
        ("result", State.DEAD, "non_retryable", "its result cannot be stored"),
        ("large", State.DEAD, "non_retryable", "the limit is 262,144"),
    ],
)
async def test_errors_cross_the_line_as_words(children: ProcessStage, how, state, error_class, words):
    await children.work()
    handle = await tasks.fail.using(max_attempts=2).enqueue(how)
    job = await children.seen(handle, lambda job: job.error_class is not None, STARTS)
    [attempt] = (await children.store.attempts(job.id))[:1]

    assert attempt.error_class == error_class
    assert words in attempt.message
    assert (job.state is state) or job.attempt > 1
    if how == "error":
        assert attempt.error_type == "LookupError"
        assert "process_tasks.py" in attempt.stack
        assert 'raise LookupError("no such row: 7")' in attempt.stack


async def test_snooze_and_cancel_are_answers(children: ProcessStage):
    await children.work()
    snoozed, cancelled = await tasks.fail.enqueue("snooze"), await tasks.fail.enqueue("cancel")
    ended = await children.ended(cancelled, STARTS)
    waiting = await children.seen(snoozed, lambda job: job.snoozes == 1, STARTS)

    assert (ended.state, ended.reason) == (State.CANCELLED, "nobody wants it")
    assert (waiting.state, waiting.attempt, waiting.reason) == (State.PENDING, 0, "later")


async def test_arguments_that_do_not_fit_kill_the_job_not_the_child(children: ProcessStage):
    await children.work()
    bad = await tasks.add.enqueue(1)
    [job] = await children.store.get([bad.id])
    children.store._book.put(job._replace(payload_json='{"a": "seven"}'))
    ended = await children.ended(bad, STARTS)

    assert (ended.state, ended.error_class) == (State.DEAD, "payload_invalid")


async def test_log_records_arrive_in_the_worker_with_their_job(children: ProcessStage, caplog):
    caplog.set_level(logging.INFO)
    await children.work()
    await children.ended(await tasks.speak.enqueue("hear me"), STARTS)

    spoken = [record for record in caplog.records if record.name == "process_tasks"]
    assert [record.levelname for record in spoken] == ["INFO", "ERROR"]
    assert spoken[0].getMessage() == "it says hear me"
    assert spoken[0].colour == "green"
    assert "ZeroDivisionError" in spoken[1].getMessage()


async def test_a_child_cannot_pretend_to_store_in_its_worker_s_memory(children: ProcessStage):
    await children.work()
    handle = await tasks.follow_up.using(max_attempts=1).enqueue(7)
    job = await children.ended(handle, STARTS)

    assert job.state is State.DEAD
    assert "the memory store cannot be reached from a child process" in (job.error_message or "")
    assert issubclass(NotSupported, Exception)


async def test_jobs_enqueued_in_a_child_are_stored_and_inherit(children_on_postgres: ProcessStage):
    stage = children_on_postgres
    await stage.work()
    parents = [
        await tasks.follow_up.using(tenant="acme").enqueue(40),
        await tasks.follow_up_sync.using(tenant="acme").enqueue(50),
    ]
    for parent, result in zip(parents, (42, 52), strict=True):
        job = await stage.ended(parent, STARTS)
        follower = await stage.ended(stage.app.job(job.result), STARTS)

        assert follower.result == result
        assert (follower.tenant, follower.parent_id) == ("acme", parent.id)


async def test_a_handler_s_own_transaction_takes_its_enqueues_along(
    children_on_postgres: ProcessStage, fresh_database
):
    stage = children_on_postgres
    await stage.work()
    kept = await stage.ended(await tasks.follow_up_within.enqueue(fresh_database, commit=True), STARTS)
    given_up = await stage.ended(await tasks.follow_up_within.enqueue(fresh_database, commit=False), STARTS)

    assert (await stage.ended(stage.app.job(kept.result), STARTS)).result == 7
    assert await stage.store.get([stage.app.job(given_up.result).id]) == []


async def test_a_function_inside_a_function_is_refused_at_once(children: ProcessStage):
    def inner() -> None: ...

    with pytest.raises(TaskError, match="needs a function at the top of a module"):
        children.app.task(executor="process")(inner)


async def test_a_child_that_cannot_start_costs_no_attempt_and_says_why(
    children: ProcessStage, caplog, monkeypatch
):
    monkeypatch.setattr(tasks.add.fn, "__module__", "a_module_that_is_not_there")
    await children.work()
    handle = await tasks.add.enqueue(1)
    job = await children.seen(handle, lambda job: job.reason is not None, STARTS)

    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert "a_module_that_is_not_there" in (job.reason or "")
    assert 'executor=Process(env=["DATABASE_URL"])' in caplog.text


async def test_a_result_can_be_awaited_as_with_any_executor(children: ProcessStage):
    await children.work()

    assert await (await tasks.add.enqueue(20, 22)).result(timeout=STARTS) == 42
    with pytest.raises(JobDead, match="beyond help"):
        await (await tasks.fail.enqueue("die")).result(timeout=STARTS)
