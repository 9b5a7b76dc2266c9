"""One verb on all jobs that match a filter, as a tracked operation: bounded, paced, stopped, resumed, on the record."""

from __future__ import annotations

import asyncio

import pytest

from build import read
from rota._core.actions import AuditFilter, Verb
from rota._core.filtering import FilterError
from rota._core.job import State
from rota._core.operation import JobsWanted, OperationState, Progress, grown
from rota.admin import Admin, bulk, operations
from rota.admin.job_operations import GrownMeanwhile, KeptArgument
from rota.admin.operations import words
from rota.admin.scope import OutOfScope


async def states(store, ids) -> list[State]:
    return [job.state for job in await store.get(ids)]


@pytest.mark.parametrize(
    ("verb", "asked", "became"),
    [
        (Verb.HOLD, "task:mail", State.HELD),
        (Verb.CANCEL, "queue:default task:mail", State.CANCELLED),
        (Verb.RETRY, "state:pending task:mail", State.PENDING),
    ],
)
async def test_it_is_done_to_every_job_that_matches_and_to_nothing_else(
    admin: Admin, shop, store, verb, asked, became
):
    mail = [await shop.add("mail") for _ in range(5)]
    other = await shop.add("export")
    seen: list[int] = []

    assert str(await admin.match_jobs(verb, asked)) == "5"
    begun = await admin.begin_job_operation(verb, asked, reason="flood", expected=5)
    assert (begun.total, begun.capped, begun.verb) == (5, False, verb)
    assert await admin.operation(begun.id) == begun
    done = await admin.drive(begun, on_progress=lambda progress: seen.append(progress.met))

    assert (done.state, done.progress._replace(cursor=None)) == (OperationState.FINISHED, Progress(5))
    assert (seen[-1], done.progress.cursor) == (5, min(mail))
    assert await states(store, mail) == [became] * 5
    assert await states(store, [other]) == [State.PENDING]
    rows = await admin.trail(AuditFilter(about=begun.about, limit=100))
    assert [row.action for row in rows] == [verb.value] * 5 + ["operation_begun"]
    assert {row.job_id for row in rows[:-1]} == set(mail)
    assert (rows[-1].after, {row.reason for row in rows}) == (f"{verb.value} 5 jobs ({asked})", {"flood"})


async def test_dead_jobs_are_retried_and_ended_ones_deleted(admin: Admin, shop, store):
    dead = [await shop.dead() for _ in range(3)]
    waiting = await shop.add("mail")
    retried = await admin.drive(await admin.begin_job_operation(Verb.RETRY, ""))
    assert (retried.progress.done, await states(store, dead)) == (3, [State.PENDING] * 3)

    await admin.drive(await admin.begin_job_operation(Verb.CANCEL, f"id:{dead[0]}"))
    deleted = await admin.drive(await admin.begin_job_operation(Verb.DELETE, "task:mail", reason="test data"))
    assert (deleted.progress.done, deleted.total) == (1, 1)
    assert await states(store, [*dead, waiting]) == [State.PENDING] * 3


@pytest.mark.parametrize("asked", ["state:pending", "state:held,pending", "state:running"])
async def test_what_has_not_ended_is_never_deleted_by_filter(admin: Admin, shop, store, asked):
    job_id = await shop.add("mail")
    with pytest.raises(FilterError, match="not deleted by filter: only jobs that have ended"):
        await admin.begin_job_operation(Verb.DELETE, asked)
    with pytest.raises(FilterError, match="Cancel them first"):
        await admin.sweep(Verb.DELETE, await admin.filter(asked))

    both = await admin.match_jobs(Verb.DELETE, "state:pending,cancelled")
    assert (both.jobs, await states(store, [job_id])) == (0, [State.PENDING])


async def test_what_is_made_later_is_not_touched_however_late_it_is_driven(admin: Admin, shop, store, clock):
    old = await shop.add("mail")
    begun = await admin.begin_job_operation(Verb.HOLD, "created<1h")
    clock.advance(1)
    recent = await admin.begin_job_operation(Verb.HOLD, "created>1m")
    clock.advance(0.001)
    late = await shop.add("mail")
    clock.advance(7200)

    assert begun.total == 0  # nothing was an hour old then, so nothing is meant now
    assert (await admin.drive(begun)).progress.met == 0
    assert (await admin.drive(recent)).progress.done == 1
    assert await states(store, [old, late]) == [State.HELD, State.PENDING]


async def test_it_is_stopped_and_resumed_from_where_it_is(admin: Admin, shop, store, monkeypatch):
    monkeypatch.setattr(operations, "LOOK_EVERY", 0.02)
    jobs = [await shop.add("mail") for _ in range(4)]
    begun = await admin.begin_job_operation(Verb.HOLD, "task:mail", rate=0.01)
    moved = asyncio.Event()
    driving = asyncio.create_task(admin.drive(begun, on_progress=lambda _: moved.set()))
    await moved.wait()
    bob = Admin(store, actor="bob")
    await bob.stop_operation(begun.id, reason="wait")
    async with asyncio.timeout(5):
        rested = await driving
    assert (rested.state, rested.progress.done) == (OperationState.STOPPED, 1)
    assert await states(store, jobs) == [State.PENDING] * 3 + [State.HELD]  # the newest first

    resumed = await bob.resume_operation(begun.id)
    done = await bob.drive(resumed._replace(rate=None))
    assert (done.state, done.progress.done) == (OperationState.FINISHED, 4)
    rows = await admin.trail(AuditFilter(about=begun.about, limit=100))
    assert sorted((row.actor, row.action) for row in rows) == sorted(
        [("ann@office", "hold"), ("ann@office", "operation_begun")]
        + [("bob", "operation_stopped"), ("bob", "operation_resumed")]
        + [("bob", "hold")] * 3
    )


async def test_pages_follow_each_other_and_what_others_changed_is_left_alone(
    admin: Admin, shop, store, monkeypatch
):
    monkeypatch.setattr(operations, "PAGE", 3)
    monkeypatch.setattr("rota.admin.job_operations.PAGE", 3)
    jobs = [await shop.add("mail") for _ in range(8)]
    begun = await admin.begin_job_operation(Verb.HOLD, "task:mail")
    real = store.find

    async def overtaken(wanted):
        page = await real(wanted)
        for job in page:
            if job.id == jobs[4]:
                await admin.cancel(job.id)
        return page

    monkeypatch.setattr(store, "find", overtaken)
    done = await admin.drive(begun)

    assert done.progress._replace(cursor=None) == Progress(7, changed=1)
    assert (await read(store, jobs[4])).state is State.CANCELLED


async def test_what_their_state_does_not_allow_is_counted_as_refused(admin: Admin, shop, store):
    await shop.add("mail")
    begun = await admin.begin_job_operation(Verb.RELEASE, "state:pending,held")
    assert (await admin.drive(begun)).progress._replace(cursor=None) == Progress(refused=1)


async def test_who_was_shown_far_fewer_is_asked_again(admin: Admin, shop, store, monkeypatch):
    for _ in range(12):
        await shop.add("mail")
    with pytest.raises(GrownMeanwhile, match=r"12 jobs match now, and you were shown 1\. Nothing was begun"):
        await admin.begin_job_operation(Verb.HOLD, "", expected=1)
    assert await admin.operations() == []
    assert (await admin.begin_job_operation(Verb.HOLD, "", expected=2)).total == 12

    monkeypatch.setattr(bulk, "COUNT_CAP", 8)
    monkeypatch.setattr("rota.admin.job_operations.COUNT_CAP", 8)
    with pytest.raises(GrownMeanwhile, match=r"8\+ jobs match now"):
        await admin.begin_job_operation(Verb.HOLD, "", expected=7)
    many = await admin.begin_job_operation(Verb.HOLD, "", expected=8)
    assert (many.total, many.capped, words(many)) == (8, True, "hold 8+ jobs (all it is for)")
    assert await admin.operation(many.id) == many
    assert (await admin.drive(many)).progress.done == 12


def test_a_few_more_are_no_surprise():
    assert [grown(0, found) for found in (0, 10, 11)] == [False, False, True]
    assert [grown(1000, found) for found in (500, 1100, 1101)] == [False, False, True]


async def test_what_is_hidden_cannot_be_in_a_filter_that_is_kept(admin: Admin):
    with pytest.raises(KeptArgument, match="the filter is kept and shown"):
        await admin.begin_job_operation(Verb.HOLD, "args.password:hunter2")
    with pytest.raises(FilterError, match="colour"):
        await admin.match_jobs(Verb.HOLD, "colour:red")
    with pytest.raises(ValueError, match="kill works on one job at a time"):
        await admin.begin_job_operation(Verb.KILL, "")


async def test_a_tenant_operates_on_his_own_jobs_whoever_drives_it(admin: Admin, shop, store):
    mine, theirs, nobodys = [await shop.add("mail", tenant=name) for name in ("red", "blue", None)]
    red = Admin(store, actor="rita", tenant="red")
    begun = await red.begin_job_operation(Verb.HOLD, "task:mail")

    assert (begun.total, begun.wanted.tenant) == (1, "red")
    with pytest.raises(OutOfScope, match="jobs of 'blue'"):
        await red.begin_job_operation(Verb.HOLD, "tenant:blue")
    assert [one.id for one in await red.operations()] == [begun.id]
    assert await Admin(store, actor="bob", tenant="blue").operations() == []
    await red.stop_operation(begun.id)
    done = await admin.drive(await admin.resume_operation(begun.id))
    assert done.progress.done == 1
    assert await states(store, [mine, theirs, nobodys]) == [State.HELD, State.PENDING, State.PENDING]
    assert [row.action for row in await red.trail(AuditFilter(about=begun.about))][-1:] == ["operation_begun"]
    named = await admin.begin_job_operation(Verb.HOLD, "tenant:blue")
    assert isinstance(named.wanted, JobsWanted)
    assert [one.id for one in await Admin(store, actor="bob", tenant="blue").operations()] == [named.id]
