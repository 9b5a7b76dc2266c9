"""What people do to one job: the rule, the fence and the audit row of every verb."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.outcome import Cancelled, Returned, decide
from rota._core.retry import Retry
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.errors import JobChanged, JobNotFound, MoveRefused
from rota.stores.contract import Answer

NOBODY = UUID(int=1)


async def state(admin, job_id):
    return (await admin.job(job_id)).state


async def trail(admin, job_id):
    return [
        (row.actor, row.action, row.reason, row.before, row.after) for row in await admin.store.audit(job_id)
    ]


async def test_retry_runs_a_dead_job_again_from_its_first_attempt(admin, shop):
    job_id = await shop.dead()

    done = await admin.retry(job_id, reason="address fixed")

    job = await admin.job(job_id)
    assert (done.before, done.after) == ("dead", "pending")
    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert await trail(admin, job_id) == [("ann@office", "retry", "address fixed", "dead", "pending")]


async def test_retry_of_a_waiting_job_makes_it_due_now(admin, shop, clock):
    job_id = await shop.add(delay=3600.0)

    await admin.retry(job_id)

    assert (await admin.job(job_id)).run_at == clock()


async def test_a_completed_job_is_not_retried_and_the_refusal_says_what_to_do(admin, shop):
    job_id = await shop.add()
    await shop.finish(await shop.run(job_id))

    with pytest.raises(MoveRefused) as refused:
        await admin.retry(job_id)

    assert str(refused.value) == (
        f"cannot retry job {job_id}: it is completed. Enqueue its task again for another run."
    )
    assert await trail(admin, job_id) == []


async def test_cancel_takes_a_waiting_job_off_the_list(admin, shop):
    job_id = await shop.add()

    done = await admin.cancel(job_id, reason="sent twice")

    job = await admin.job(job_id)
    assert (done.after, done.asked) == ("cancelled", False)
    assert (job.state, job.reason) == (State.CANCELLED, "sent twice")
    assert await trail(admin, job_id) == [("ann@office", "cancel", "sent twice", "pending", "cancelled")]


async def test_cancel_of_a_running_job_asks_its_worker_and_says_so(admin, shop):
    job_id = await shop.add()
    running = await shop.run(job_id)

    done = await admin.cancel(job_id)

    job = await admin.job(job_id)
    assert (done.after, done.asked) == ("cancelling", True)
    assert (job.state, job.version) == (State.RUNNING, running.version)
    assert job.cancel_requested_at is not None


async def test_a_forced_cancel_fences_a_worker_that_does_not_confirm_within_its_grace(admin, shop, clock):
    job_id = await shop.add()
    running = await shop.run(job_id)
    await admin.cancel(job_id)
    clock.advance(26)

    done = await admin.cancel(job_id, force=True, grace=25)

    late = await admin.store.settle([decide(running, Returned(None), retry=Retry(), now=clock())])
    assert done.after == "cancelled"
    assert late[0].answer is Answer.FENCED
    assert await state(admin, job_id) is State.CANCELLED


async def test_a_forced_cancel_waits_for_a_worker_that_confirms(admin, shop, clock):
    job_id = await shop.add()
    running = await shop.run(job_id)

    cancelling = asyncio.create_task(admin.cancel(job_id, force=True, grace=25))
    while (await admin.job(job_id)).cancel_requested_at is None:
        await asyncio.sleep(0)
    [confirmed] = await admin.store.settle([decide(running, Cancelled("asked"), retry=Retry(), now=clock())])

    done = await cancelling
    assert confirmed.answer is Answer.APPLIED
    assert done.after == "cancelled"


async def test_a_job_that_completes_during_the_grace_of_a_forced_cancel_stays_completed(admin, shop):
    job_id = await shop.add()
    running = await shop.run(job_id)

    cancelling = asyncio.create_task(admin.cancel(job_id, force=True, grace=25))
    while (await admin.job(job_id)).cancel_requested_at is None:
        await asyncio.sleep(0)
    await shop.finish(running)

    assert (await cancelling).after == "completed"
    assert await state(admin, job_id) is State.COMPLETED


async def test_hold_sets_a_job_aside_and_release_brings_it_back(admin, shop):
    job_id = await shop.add()

    held = await admin.hold(job_id, reason="smtp is down")
    between = await state(admin, job_id)
    released = await admin.release(job_id)

    assert (held.after, between, released.after) == ("held", State.HELD, "pending")
    assert [row[1] for row in await trail(admin, job_id)] == ["release", "hold"]


@pytest.mark.req("L15")
async def test_a_failed_attempt_is_retried_as_the_tasks_stored_policy_says(admin, shop, clock):
    await admin.store.publish([TaskSpec("mail", retry=Retry(base=40.0, jitter=0.0))])
    job_id = await shop.add()
    running = await shop.run(job_id)

    done = await admin.fail(job_id, reason="hangs")

    job = await admin.job(job_id)
    [attempt] = await admin.store.attempts(job_id)
    late = await admin.store.settle([decide(running, Returned(None), retry=Retry(), now=clock())])
    assert (done.after, job.state) == ("pending", State.PENDING)
    assert (job.run_at - clock()).total_seconds() == 40.0
    assert (attempt.error_class, attempt.message) == (ErrorClass.OPERATOR, "hangs")
    assert late[0].answer is Answer.FENCED


@pytest.mark.req("L15")
async def test_a_failed_attempt_without_retry_ends_the_job_as_dead(admin, shop):
    job_id = await shop.add()
    await shop.run(job_id)

    done = await admin.fail(job_id, reason="poison", will_retry=False)

    job = await admin.job(job_id)
    assert (done.after, job.state, job.error_message) == ("dead", State.DEAD, "poison")
    assert await trail(admin, job_id) == [("ann@office", "fail", "poison", "running", "dead")]


async def test_only_a_running_job_can_be_failed_with_or_without_retry(admin, shop):
    job_id = await shop.add()

    for will_retry in (True, False):
        with pytest.raises(MoveRefused, match="Only a running job can be failed; use kill"):
            await admin.fail(job_id, will_retry=will_retry)


@pytest.mark.req("L16")
async def test_kill_moves_a_waiting_job_to_the_dead(admin, shop):
    job_id = await shop.add()

    done = await admin.kill(job_id, reason="poison message")

    job = await admin.job(job_id)
    assert (done.after, job.state, job.error_message) == ("dead", State.DEAD, "poison message")


async def test_delete_removes_the_job_and_leaves_the_audit(admin, shop):
    job_id = await shop.dead()

    done = await admin.delete(job_id, reason="customer asked")

    assert done.after == "deleted"
    with pytest.raises(JobNotFound):
        await admin.job(job_id)
    assert await trail(admin, job_id) == [("ann@office", "delete", "customer asked", "dead", "deleted")]


async def test_a_running_job_is_not_deleted(admin, shop):
    job_id = await shop.add()
    await shop.run(job_id)

    with pytest.raises(MoveRefused, match=r"it is running\. Cancel it first, then delete it"):
        await admin.delete(job_id)


@pytest.mark.parametrize("verb", list(Verb))
async def test_an_unknown_id_is_said_to_be_unknown_by_every_verb(admin, verb):
    with pytest.raises(JobNotFound) as missing:
        await getattr(admin, verb.value)(NOBODY)

    assert str(missing.value) == (
        f"no job has the id {NOBODY}. It may have been removed by retention; `rota jobs list` shows what is there."
    )


class Rival:
    """A store in which somebody else changes the job just before our write, as often as told."""

    def __init__(self, store, times):
        self.store, self.left = store, times
        self.rival = Admin(store, actor="bob@office")

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def change(self, change, audit):
        if self.left:
            self.left -= 1
            held = change.job.state is State.HELD
            await (self.rival.release if held else self.rival.hold)(change.job.id)
        return await self.store.change(change, audit)


async def test_an_action_that_somebody_outran_is_decided_again(store, shop):
    job_id = await shop.add()

    done = await Admin(Rival(store, 2), actor="ann@office").cancel(job_id)

    assert (done.before, done.after) == ("pending", "cancelled")
    assert [row.actor for row in await store.audit(job_id)] == ["ann@office", "bob@office", "bob@office"]


async def test_an_action_that_is_outrun_three_times_gives_up_and_names_the_state(store, shop):
    job_id = await shop.add()

    with pytest.raises(JobChanged) as changed:
        await Admin(Rival(store, 3), actor="ann@office").cancel(job_id)

    assert str(changed.value) == (
        f"job {job_id} was changed by somebody else meanwhile and is held now. Look at it again, then repeat."
    )


async def test_an_expected_version_is_never_decided_again(store, shop):
    job_id = await shop.add()
    seen = (await store.get([job_id]))[0].version

    with pytest.raises(JobChanged):
        await Admin(Rival(store, 1), actor="ann@office").cancel(job_id, version=seen)

    assert [row.actor for row in await store.audit(job_id)] == ["bob@office"]


async def test_an_old_version_is_refused_before_anything_is_written(admin, shop):
    job_id = await shop.add()
    seen = (await admin.job(job_id)).version
    await admin.hold(job_id)

    with pytest.raises(JobChanged):
        await admin.release(job_id, version=seen)

    assert await state(admin, job_id) is State.HELD


async def test_a_plan_says_what_would_happen_and_changes_nothing(admin, shop):
    job_id = await shop.dead()
    before = await admin.job(job_id)

    planned = await admin.plan(Verb.RETRY, job_id)

    assert (planned.before, planned.after) == ("dead", "pending")
    assert await admin.job(job_id) == before
    assert await trail(admin, job_id) == []


async def test_a_plan_is_refused_like_the_action_itself(admin, shop):
    job_id = await shop.add()

    with pytest.raises(MoveRefused, match="Only a held job can be released"):
        await admin.plan(Verb.RELEASE, job_id)
