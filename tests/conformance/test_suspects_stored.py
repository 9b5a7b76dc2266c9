"""Suspects in the store: losses, parked tasks, their release, and which code is the newest."""

from __future__ import annotations

import pytest

from build import LEASE, Clock, a_job, a_running_job, a_session, by_hand, claim, new_id, read
from rota._core.actions import Audit, Verb
from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job, State
from rota._core.outcome import Crashed, Parked, Raised, Snoozed, decide
from rota._core.retry import Retry
from rota._core.suspects import Crash, Death, suspect
from rota._core.task_spec import TaskSpec
from rota.stores.contract import Answer, Retention, SessionStart, Store

DEATH = Death(4711, signal=9)
RETRY = Retry(jitter=0.0)


async def crash(store: Store, job: Job, *, alone: bool) -> State | None:
    outcome = Crashed(DEATH.failure(alone=alone), alone=alone)
    [settled] = await store.settle([decide(job, outcome, retry=RETRY, now=await store.now())])
    assert settled.answer is Answer.APPLIED
    return settled.state


async def again(store: Store, clock: Clock) -> Job:
    clock.advance(600)
    [job] = await claim(store)
    return job


def a_crash(task: str = "resize", code_version: str = "v1", **fields) -> Crash:
    return Crash(task, code_version, fields.pop("job_id", None) or new_id(), 2, "SIGSEGV", **fields)


def an_audit(task: str) -> Audit:
    return Audit("ann", "release", None, "fixed", "parked", "released", about=f"task:{task}")


@pytest.mark.scenario(7)
async def test_a_poison_job_is_dead_after_three_losses_and_every_report_is_kept(store: Store, clock: Clock):
    job = await a_running_job(store)
    await crash(store, job, alone=False)
    job = await again(store, clock)
    assert (suspect(job), job.attempt, job.losses) == (True, 1, 1)
    await crash(store, job, alone=True)
    job = await again(store, clock)
    assert (suspect(job), job.attempt, job.losses) == (True, 2, 2)

    assert await crash(store, job, alone=True) is State.DEAD
    dead = await read(store, job)
    assert (dead.error_class, dead.losses, dead.attempt) == ("crash", 3, 2)
    noted = await store.attempts(job.id)
    assert [(row.outcome, row.attempt) for row in noted] == [("suspect", 1), ("retry", 1), ("die", 2)]
    assert all("process 4711 was ended by SIGKILL" in (row.stack or "") for row in noted)


async def test_an_innocent_suspect_completes_as_if_nothing_had_happened(store: Store, clock: Clock):
    job = await a_running_job(store, max_attempts=1)
    await crash(store, job, alone=False)
    [job] = await claim(store)  # at once: it need not wait for others' faults

    assert (job.attempt, suspect(job)) == (1, True)


@pytest.mark.parametrize("how", ["raised", "snoozed"])
async def test_an_end_of_its_own_clears_a_suspect(store: Store, clock: Clock, how):
    job = await a_running_job(store)
    await crash(store, job, alone=False)
    job = await again(store, clock)
    outcome = Snoozed(1.0) if how == "snoozed" else Raised(Failure.because(ErrorClass.RETRYABLE, "no"))
    await store.settle([decide(job, outcome, retry=RETRY, now=clock.now)])

    job = await again(store, clock)
    assert (job.losses, suspect(job)) == (0, False)


async def test_a_poison_job_that_a_person_retries_runs_alone_again(store: Store, clock: Clock):
    job = await a_running_job(store)
    for _ in range(3):
        await crash(store, job, alone=True)
        if (await read(store, job)).state is not State.DEAD:
            job = await again(store, clock)
    await by_hand(store, await read(store, job), Verb.RETRY)

    job = await again(store, clock)
    assert (job.attempt, job.losses, suspect(job)) == (1, 1, True)


async def test_a_task_is_parked_when_so_many_of_its_jobs_crashed(store: Store, clock: Clock):
    first, second = a_crash(), a_crash()
    assert await store.note_crash(first, limit=3, within=3600) is None
    assert await store.note_crash(first, limit=3, within=3600) is None
    assert await store.note_crash(first._replace(version=4), limit=3, within=3600) is None
    assert await store.note_crash(second, limit=3, within=3600) is None
    parked = await store.note_crash(a_crash(), limit=3, within=3600)

    assert parked is not None
    assert (parked.task, parked.code_version, parked.crashes, parked.what, parked.parked_at) == (
        "resize",
        "v1",
        3,
        "SIGSEGV",
        clock.now,
    )
    assert await store.parked_tasks() == [parked]
    assert await store.note_crash(a_crash(), limit=3, within=3600) is None, "it is parked once"


async def test_other_tasks_other_code_and_old_crashes_do_not_count(store: Store, clock: Clock):
    await store.note_crash(a_crash(), limit=2, within=3600)
    assert await store.note_crash(a_crash(task="other"), limit=2, within=3600) is None
    assert await store.note_crash(a_crash(code_version="v2"), limit=2, within=3600) is None
    clock.advance(3601)
    assert await store.note_crash(a_crash(), limit=2, within=3600) is None
    assert await store.note_crash(a_crash(), limit=0, within=3600) is None, "0 means never"

    assert await store.parked_tasks() == []


async def parked_job(store: Store, task: str = "resize", **options) -> Job:
    """A job that a worker met while its task was parked."""
    job = await a_running_job(store, task, **options)
    await store.settle([decide(job, Parked("its task is parked"), retry=RETRY, now=await store.now())])
    return job


async def test_a_parked_job_is_passed_over_until_its_task_is_released(store: Store, clock: Clock):
    await store.note_crash(a_crash(), limit=1, within=3600)
    job = await parked_job(store)
    gated = await parked_job(store, gate="serial::7")
    other = await parked_job(store, "email")
    waiting = await read(store, job)
    assert (waiting.state, waiting.parked, waiting.attempt) == (State.PENDING, "task", 0)
    assert waiting.label(clock.now) == "parked"
    assert await claim(store) == []

    assert await store.release_task("resize", an_audit("resize")) == 2
    assert {claimed.id for claimed in await claim(store)} == {job.id, gated.id}
    assert (await read(store, other)).parked == "task"
    assert await store.parked_tasks() == []


async def test_the_release_is_in_the_audit_and_a_task_that_is_not_parked_is_not_released(store: Store):
    assert await store.release_task("resize", an_audit("resize")) is None
    assert await store.audit(about="task:resize") == []
    await store.note_crash(a_crash(), limit=1, within=3600)
    await store.release_task("resize", an_audit("resize"))

    [row] = await store.audit(about="task:resize")
    assert (row.actor, row.action, row.reason) == ("ann", "release", "fixed")


async def test_one_code_version_can_be_released_alone(store: Store):
    await store.note_crash(a_crash(code_version="v1"), limit=1, within=3600)
    await store.note_crash(a_crash(code_version="v2"), limit=1, within=3600)
    await store.release_task("resize", an_audit("resize"), code_version="v1")

    assert [row.code_version for row in await store.parked_tasks()] == ["v2"]


async def test_after_a_release_only_new_crashes_count(store: Store, clock: Clock):
    for _ in range(2):
        await store.note_crash(a_crash(), limit=2, within=3600)
    clock.advance(1)
    await store.release_task("resize", an_audit("resize"))
    clock.advance(1)

    assert await store.note_crash(a_crash(), limit=2, within=3600) is None
    assert await store.note_crash(a_crash(), limit=2, within=3600) is not None


async def test_a_job_that_was_parked_too_late_is_found(store: Store, clock: Clock):
    """A worker that has not heard of the release yet may still park what it claims."""
    await store.note_crash(a_crash(), limit=1, within=3600)
    await store.release_task("resize", an_audit("resize"))
    clock.advance(5)
    job = await parked_job(store)
    assert await claim(store) == []

    assert await store.unpark() == 1
    assert [claimed.id for claimed in await claim(store)] == [job.id]


async def test_jobs_of_a_task_that_is_parked_stay_so(store: Store):
    await store.note_crash(a_crash(), limit=1, within=3600)
    await parked_job(store)

    assert await store.unpark() == 0


async def test_crashes_and_releases_are_forgotten_in_time(store: Store, clock: Clock):
    await store.note_crash(a_crash(), limit=1, within=1e9)
    clock.advance(3600)
    await store.release_task("resize", an_audit("resize"))
    await store.note_crash(a_crash(task="kept"), limit=1, within=1e9)
    clock.advance(Retention().finished + 1)
    await store.tidy(Retention())

    assert [row.task for row in await store.parked_tasks()] == ["kept"]
    assert await store.note_crash(a_crash(), limit=2, within=1e9) is None


# Which code is the newest


async def at_work(store: Store, code_version: str) -> None:
    start = SessionStart(new_id(), "here", 1, {}, ("email",), code_version)
    await store.open_session(start, lease=LEASE)


async def published(store: Store) -> tuple[str, str | None]:
    [task] = await store.tasks()
    return task.queue, task.code_version


async def test_an_old_worker_that_restarts_in_a_deploy_does_not_undo_it(store: Store, clock: Clock):
    await store.publish([TaskSpec("email", queue="old", code_version="v1")])
    await at_work(store, "v1")
    clock.advance(1)
    await store.publish([TaskSpec("email", queue="new", code_version="v2")])
    await at_work(store, "v2")
    clock.advance(1)
    await store.publish([TaskSpec("email", queue="old", code_version="v1")])

    assert await published(store) == ("new", "v2")


async def test_older_code_wins_again_when_no_worker_of_the_newer_lives(store: Store, clock: Clock):
    await store.publish([TaskSpec("email", queue="old", code_version="v1")])
    clock.advance(1)
    await store.publish([TaskSpec("email", queue="new", code_version="v2")])
    await at_work(store, "v2")
    clock.advance(LEASE)
    await store.publish([TaskSpec("email", queue="old", code_version="v1")])

    assert await published(store) == ("old", "v1")


async def test_the_same_code_may_always_speak_again(store: Store, clock: Clock):
    await store.publish([TaskSpec("email", queue="a", code_version="v1")])
    await at_work(store, "v1")
    await store.publish([TaskSpec("email", queue="b", code_version="v1")])
    await store.publish([TaskSpec("email", queue="c")])

    assert await published(store) == ("c", None)


async def test_a_session_says_which_code_it_runs(store: Store):
    await at_work(store, "v7")
    await a_session(store)

    assert {record.code_version for record in await store.sessions()} == {"v7", None}


async def test_an_enqueue_does_not_ask_whether_its_task_is_parked(store: Store):
    await store.note_crash(a_crash(), limit=1, within=3600)
    [stored] = await store.enqueue([a_job("resize")])

    assert stored.created
