"""Bulk operations as records, and the audit by filter: "rows are added, and never changed or removed"."""

from __future__ import annotations

import asyncio

import pytest

from build import Clock, a_job, a_running_job, by_hand, new_id, read
from rota._core.actions import Audit, AuditFilter, Verb
from rota._core.dead_letter import DeadFilter
from rota._core.job import State
from rota._core.operation import JobsWanted, Operation, OperationState, Progress
from rota._core.review import Review, ReviewVerb
from rota.stores.contract import Retention, Store

RUNNING, STOPPED, FINISHED = OperationState.RUNNING, OperationState.STOPPED, OperationState.FINISHED


def an_operation(clock: Clock, **fields) -> Operation:
    wanted = DeadFilter((Review.PENDING,), task="mail", until=clock.now)
    values = {"rate": 2.5, "reason": "fixed", "total": 10} | fields
    return Operation(
        id=new_id(), verb=ReviewVerb.REPROCESS, wanted=wanted, actor="ann", progress=Progress(), state=RUNNING,
        driver=new_id(), began_at=clock.now, updated_at=clock.now, **values,
    )  # fmt: skip


def told(operation: Operation, action: str = "operation_begun") -> Audit:
    return Audit("ann", action, None, about=operation.about)


async def begun(store: Store, clock: Clock) -> Operation:
    operation = an_operation(clock)
    await store.begin_operation(operation, told(operation))
    return operation


async def the(store: Store, operation: Operation) -> Operation:
    [found] = await store.operations(operation_id=operation.id)
    return found


async def test_an_operation_is_stored_as_it_is_and_once(store: Store, clock: Clock):
    operation = await begun(store, clock)
    await store.begin_operation(operation, told(operation))

    assert await the(store, operation) == operation
    assert [row.action for row in await store.audit(about=operation.about)] == ["operation_begun"]


async def test_an_operation_on_jobs_keeps_the_words_of_its_filter_and_when_they_were_said(
    store: Store, clock: Clock
):
    wanted = JobsWanted('state:dead args.to:"ann bell" created>1h', clock.now, "acme")
    operation = an_operation(clock, capped=True)._replace(verb=Verb.RETRY, wanted=wanted)
    plain = an_operation(clock)._replace(verb=Verb.DELETE, wanted=JobsWanted("", clock.now))
    for one in (operation, plain):
        await store.begin_operation(one, told(one))

    assert [await the(store, one) for one in (operation, plain)] == [operation, plain]
    assert await store.operations(tenant="acme") == [operation]
    assert await store.steer_operation(operation.id, STOPPED, told(operation)) == operation._replace(
        state=STOPPED
    )
    which = wanted.which()
    assert (which.tenant, which.states) == ("acme", (State.DEAD,))


async def test_operations_are_listed_newest_first(store: Store, clock: Clock):
    made = [await begun(store, clock) for _ in range(3)]

    assert await store.operations(limit=2) == made[:0:-1]
    assert await store.operations(operation_id=new_id()) == []


async def test_its_driver_says_how_far_it_is_and_when_it_has_finished(store: Store, clock: Clock):
    operation = await begun(store, clock)
    progress = Progress(3, 1, 0, new_id())
    clock.advance(9)
    assert await store.advance_operation(operation.id, operation.driver, progress)
    assert await the(store, operation) == operation._replace(progress=progress, updated_at=clock.now)
    assert await store.advance_operation(operation.id, operation.driver, progress, finished=True)

    assert (await the(store, operation)).state is FINISHED
    assert not await store.advance_operation(operation.id, operation.driver, progress)


async def test_a_stopped_operation_tells_its_driver_and_goes_on_under_another(store: Store, clock: Clock):
    operation = await begun(store, clock)
    assert (
        await store.steer_operation(operation.id, STOPPED, told(operation, "operation_stopped")) is not None
    )
    assert await store.steer_operation(operation.id, STOPPED, told(operation, "operation_stopped")) is None
    assert not await store.advance_operation(operation.id, operation.driver, Progress(1))
    driver = new_id()
    resumed = await store.steer_operation(
        operation.id, RUNNING, told(operation, "operation_resumed"), driver=driver
    )

    assert resumed is not None
    assert (resumed.state, resumed.driver, resumed.progress) == (RUNNING, driver, Progress())
    assert not await store.advance_operation(operation.id, operation.driver, Progress(1))
    assert await store.advance_operation(operation.id, driver, Progress(1))
    trail = [row.action for row in await store.audit(about=operation.about)]
    assert trail == ["operation_resumed", "operation_stopped", "operation_begun"]


@pytest.mark.parametrize("to", [STOPPED, RUNNING])
async def test_what_has_finished_is_neither_stopped_nor_resumed(store: Store, clock: Clock, to):
    operation = await begun(store, clock)
    await store.advance_operation(operation.id, operation.driver, Progress(10), finished=True)

    assert await store.steer_operation(operation.id, to, told(operation), driver=new_id()) is None
    assert await store.steer_operation(new_id(), to, told(operation)) is None
    assert len(await store.audit(about=operation.about)) == 1


async def test_operations_that_ended_long_ago_are_forgotten_and_their_audit_is_not(
    store: Store, clock: Clock
):
    ended, stopped, running = [await begun(store, clock) for _ in range(3)]
    await store.advance_operation(ended.id, ended.driver, Progress(10), finished=True)
    await store.steer_operation(stopped.id, STOPPED, told(stopped, "operation_stopped"))
    clock.advance(31 * 86_400)
    await store.tidy(Retention())

    assert [one.id for one in await store.operations()] == [running.id]
    assert len(await store.audit_trail(AuditFilter())) == 4


# The audit


async def test_the_audit_is_found_by_who_what_which_and_when(store: Store, clock: Clock):
    first, second = await a_running_job(store), await a_running_job(store)
    await by_hand(store, first, Verb.KILL, actor="ann", reason="stuck")
    clock.advance(60)
    await by_hand(store, second, Verb.CANCEL, actor="bob")
    clock.advance(60)
    await by_hand(store, await read(store, first), Verb.RETRY, actor="bob")

    async def found(**asked) -> list[str]:
        return [row.action for row in await store.audit_trail(AuditFilter(**asked))]

    assert await found() == ["retry", "cancel", "kill"]
    assert await found(limit=1) == ["retry"]
    assert await found(actor="bob") == ["retry", "cancel"]
    assert await found(action="kill") == ["kill"]
    assert await found(job_id=first.id) == ["retry", "kill"]
    assert await found(since=clock.now) == ["retry"]
    assert await found(until=first.updated_at, actor="ann") == ["kill"]
    assert await found(actor="carl") == []


async def test_the_audit_is_found_by_correlation_and_by_what_it_is_about(store: Store, clock: Clock):
    operation = await begun(store, clock)
    job = await a_running_job(store, correlation_id="c-1")
    change = Audit("ann", "kill", job.id, correlation_id="c-1", about=operation.about)
    from rota._core.actions import act
    from rota._core.retry import Retry

    decided = act(job, Verb.KILL, retry=Retry(), now=clock.now)
    await store.change(decided, change)  # type: ignore[arg-type]

    [row] = await store.audit_trail(AuditFilter(correlation_id="c-1"))
    assert row == change._replace(at=clock.now, place=row.place)
    rows = await store.audit_trail(AuditFilter(about=operation.about))
    assert [row.action for row in rows] == ["kill", "operation_begun"]


async def test_the_audit_goes_on_before_a_place_also_within_one_moment(store: Store):
    job = a_job()
    await store.enqueue([job])
    for number in range(5):
        await store.note(Audit("ann", f"look {number}", job.id))

    first = await store.audit_trail(AuditFilter(job_id=job.id, limit=2))
    rest = await store.audit_trail(AuditFilter(job_id=job.id, before=first[-1].place))
    assert [row.action for row in (*first, *rest)] == [f"look {number}" for number in (4, 3, 2, 1, 0)]
    assert await store.audit_trail(AuditFilter(job_id=job.id, before=rest[-1].place)) == []
    assert await store.audit_trail(AuditFilter(job_id=job.id, before=0)) == []


async def test_an_action_that_many_take_at_once_is_in_the_audit_once(store: Store):
    job = await a_running_job(store)
    await asyncio.gather(*(by_hand(store, job, Verb.KILL, actor=f"op{n}") for n in range(8)))

    assert len(await store.audit_trail(AuditFilter(job_id=job.id))) == 1


async def test_a_secret_that_somebody_writes_into_a_reason_is_not_kept(store: Store):
    job = await a_running_job(store)
    await by_hand(store, job, Verb.KILL, reason="it logs in with password=hunter2hunter2 and hangs")

    [row] = await store.audit_trail(AuditFilter(job_id=job.id))
    assert row.reason == "it logs in with password=*** and hangs"


async def test_what_changed_nothing_else_is_recorded_too(store: Store, clock: Clock):
    job = a_job()
    await store.enqueue([job])
    await store.note(Audit("ann", "reveal", job.id, "password=hunter2"))

    [row] = await store.audit_trail(AuditFilter(job_id=job.id))
    assert (row.actor, row.action, row.reason, row.at) == ("ann", "reveal", "password=***", clock.now)
