"""Suspects at work: they run alone, the guilty one kills its child only, and a task that goes on crashing is parked."""

from __future__ import annotations

import os
from typing import Any

import process_tasks as tasks
import pytest
from process_stage import ProcessStage, variables
from worker_stage import until

from build import a_session, new_id
from rota._core.actions import Audit
from rota._core.alert import Alert
from rota._core.job import State
from rota._core.outcome import Crashed, decide
from rota._core.retry import Retry
from rota._core.suspects import Crash, Death
from rota.handle import Handle
from rota.stores.contract import Wanted
from rota.worker.code import code_version

STARTS = 30.0


async def suspected(stage: ProcessStage, *handles: Handle[Any]) -> None:
    """Let a worker die that ran these jobs, as its supervisor would record it."""
    session = await a_session(stage.store)
    jobs = await stage.store.claim(Wanted(len(handles)), session=session)
    assert {job.id for job in jobs} == {handle.id for handle in handles}
    outcome = Crashed(Death(4711, signal=9).failure(alone=False), alone=False)
    now = await stage.store.now()
    await stage.store.settle([decide(job, outcome, retry=Retry(), now=now) for job in jobs])
    await stage.store.end_session(session)


@pytest.mark.scenario(7)
async def test_among_suspects_only_the_guilty_one_dies_and_the_worker_goes_on(
    children_on_postgres: ProcessStage,
):
    stage = children_on_postgres
    poison = await tasks.poison.enqueue()
    innocent = [await tasks.innocent.enqueue(number) for number in range(4)]
    await suspected(stage, poison, *innocent)
    worker = await stage.work(lanes={"general": 10})
    fresh = [await tasks.innocent.enqueue(number) for number in range(50)]
    dead = await stage.ended(poison, STARTS)
    cleared = [await stage.ended(handle, STARTS) for handle in innocent]

    assert (dead.state, dead.error_class, dead.losses, dead.attempt) == (State.DEAD, "crash", 3, 2)
    assert [(job.state, job.attempt, job.result) for job in cleared] == [
        (State.COMPLETED, 1, number) for number in range(4)
    ]
    assert {(await stage.ended(handle, STARTS)).attempt for handle in fresh} == {1}
    assert worker.runner.isolation.children is not None
    assert worker.runner.isolation.children.deaths == 2, "one child's death for each attempt"


async def test_a_suspect_runs_in_a_child_that_sees_what_the_worker_sees(children_on_postgres: ProcessStage):
    stage = children_on_postgres
    with variables(SHOP_TOKEN="t0ps3cret"):
        handle = await tasks.whereabouts.enqueue()
        await suspected(stage, handle)
        await stage.work()
        pid, token = (await stage.ended(handle, STARTS)).result
        again, _ = (await stage.ended(await tasks.whereabouts.enqueue(), STARTS)).result

    assert pid != os.getpid()
    assert token == "t0ps3cret"
    assert again == os.getpid()


async def test_where_a_child_could_not_reach_the_store_a_suspect_runs_in_the_worker(children: ProcessStage):
    handle = await tasks.whereabouts.enqueue()
    await suspected(children, handle)
    await children.work()
    job = await children.ended(handle, STARTS)

    assert (job.result[0], job.attempt) == (os.getpid(), 1)


async def test_a_task_whose_jobs_crash_on_and_on_is_parked_with_an_alert(caplog, children: ProcessStage):
    stage = children
    stage.app._settings = stage.app.settings.model_copy(update={"crash_limit": 2})
    heard: list[Alert] = []

    async def hear(alert: Alert) -> None:
        heard.append(alert)

    def deaf(alert: Alert) -> None:
        raise ConnectionError("the pager is off")

    stage.app.alerts[:] = [deaf, hear]
    worker = await stage.work(lanes={"general": 2})
    for _ in range(2):
        await stage.ended(await tasks.crash.using(max_attempts=1).enqueue("kill"), STARTS)
    await until(lambda: worker.desk.parked, STARTS)
    waiting = await tasks.crash.enqueue("kill")
    parked = await stage.seen(waiting, lambda job: job.parked is not None, STARTS)

    [alert] = heard
    assert (alert.kind, alert.subject) == ("task_parked", "crash")
    assert alert.fix == "Deploy a repaired version, or `rota tasks release crash`."
    assert "2 of its jobs killed their process" in alert.message
    assert alert.message in caplog.text
    assert "the pager is off" in caplog.text
    assert (parked.state, parked.parked, parked.attempt) == (State.PENDING, "task", 0)
    assert "`rota tasks release crash`" in (parked.reason or "")
    other = await stage.ended(await tasks.add.enqueue(1), STARTS)
    assert other.result == 3
    stage.app.alerts.clear()


async def test_a_released_task_runs_again(children: ProcessStage, monkeypatch):
    monkeypatch.setattr("rota.worker.chores.parking.EVERY", 0.05)
    monkeypatch.setattr("rota.worker.chores.unparker.SELDOM", 0.05)
    monkeypatch.setattr("rota.worker.chores.unparker.OFTEN", 0.05)
    version = code_version(children.app)
    await children.store.note_crash(Crash("add", version, new_id(), 2, "SIGSEGV"), limit=1, within=60)
    await children.work()
    handle = await tasks.add.enqueue(1)
    await children.seen(handle, lambda job: job.parked is not None, STARTS)
    await children.store.release_task("add", Audit("ann", "release", None, about="task:add"))

    assert (await children.ended(handle, STARTS)).result == 3


async def test_new_code_gets_a_new_chance(children: ProcessStage, caplog):
    await children.store.note_crash(Crash("add", "older", new_id(), 2, "SIGSEGV"), limit=1, within=60)
    await children.store.note_crash(Crash("unknown", "older", new_id(), 2, "SIGSEGV"), limit=1, within=60)
    await children.work()

    assert [row.task for row in await children.store.parked_tasks()] == ["unknown"]
    assert "the task add is released: parked under code version older" in caplog.text
    [audit] = await children.store.audit(about="task:add")
    assert audit.action == "release"
    assert (await children.ended(await tasks.add.enqueue(1), STARTS)).result == 3


async def test_the_code_version_is_published_and_told_by_every_session(children: ProcessStage, monkeypatch):
    derived = code_version(children.app)
    assert derived.startswith("source-")
    monkeypatch.setattr(
        children.app, "_settings", children.app.settings.model_copy(update={"code_version": "e1f2"})
    )
    assert code_version(children.app) == "e1f2"
    monkeypatch.setattr(children.app, "code_version", "v9")
    await children.work()
    await until(lambda: _sessions(children))

    assert {task.code_version for task in await children.store.tasks()} == {"v9"}
    assert [record.code_version for record in await children.store.sessions()] == ["v9"]


async def _sessions(stage: ProcessStage) -> bool:
    return bool(await stage.store.sessions())
