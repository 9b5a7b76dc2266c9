"""Asking workers to go: who may be asked, what is answered, and what the audit keeps of it."""

from __future__ import annotations

from uuid import UUID

import pytest

from build import Clock, new_id
from rota._core.explanation import Cause
from rota._core.worker_order import about
from rota.admin import Admin
from rota.admin.scope import OutOfScope
from rota.admin.worker_orders import OrderRefused, WorkerNotFound
from rota.stores.contract import SessionStart, Store


async def a_worker(store: Store, pid: int = 7, *, hears: bool = True, lease: float = 60.0) -> UUID:
    start = SessionStart(new_id(), "web-1", pid, {"general": 5}, ("mail",), hears=hears, memory=80_000_000)
    await store.open_session(start, lease=lease)
    return start.id


async def test_a_worker_is_asked_to_drain_and_may_then_be_told_to_stop(admin: Admin, store: Store):
    worker = await a_worker(store)

    drained = await admin.drain_worker(worker, reason="deploy of v9")
    assert (drained.state, drained.living) == ("draining", True)
    stopped = await admin.stop_worker(worker, reason="it takes too long")

    assert stopped.state == "stopping"
    assert stopped.record.order is not None
    assert (stopped.record.order.by, stopped.record.order.reason) == ("ann@office", "it takes too long")
    told = [(row.action, row.before, row.after) for row in await store.audit(about=about(worker))]
    assert told == [("stop", "draining", "stopping"), ("drain", "alive", "draining")]


async def test_who_asks_again_is_answered_and_changes_nothing(admin: Admin, store: Store):
    worker = await a_worker(store)
    first = await admin.drain_worker(worker)

    again = await Admin(store, actor="bob").drain_worker(worker, reason="me too")

    assert again.record.order == first.record.order
    assert len(await store.audit(about=about(worker))) == 1


async def test_one_that_is_gone_lost_deaf_or_stopping_is_refused_with_what_to_do(
    admin: Admin, store: Store, clock: Clock
):
    lost = await a_worker(store, 1, lease=1.0)
    clock.advance(2)
    gone, deaf, stops = await a_worker(store, 2), await a_worker(store, 3, hears=False), await a_worker(store)
    await store.end_session(gone)
    await admin.stop_worker(stops)
    reasons = {
        lost: "worker web-1:1 cannot be asked to drain: it has not answered since 12:00:01 UTC",
        gone: "worker web-1:2 cannot be asked to drain: it ended at 12:00:02 UTC",
        deaf: "it does not answer orders: it runs a version of Rota from before them. On web-1, send it the signal "
        "that ends it: kill -TERM 3",
        stops: "it is stopping already, asked by ann@office, and a stop cannot be taken back.",
    }

    for worker, why in reasons.items():
        with pytest.raises(OrderRefused) as refused:
            await admin.drain_worker(worker)
        assert why in str(refused.value)
    with pytest.raises(WorkerNotFound, match="no worker has the id"):
        await admin.stop_worker(new_id())


async def test_a_worker_belongs_to_no_tenant(admin: Admin, store: Store):
    worker = await a_worker(store)
    red = Admin(store, actor="red", tenant="red")

    with pytest.raises(OutOfScope):
        await red.drain_worker(worker)
    await admin.drain_worker(worker, reason="the database of blue moves")
    [seen] = await red.store.sessions()
    assert seen.order is not None
    assert (seen.order.verb.value, seen.order.by, seen.order.reason) == ("drain", "an operator", None)


async def test_a_worker_that_goes_is_not_counted_on(admin: Admin, shop, store: Store):
    worker = await a_worker(store)
    job_id = await shop.add(queue="post")
    [queue] = (await admin.overview()).queues()
    assert queue.slots == 5

    await admin.drain_worker(worker)

    said = await admin.explain(job_id)
    assert said.cause is Cause.NO_WORKER
    assert "Every living worker (web-1 (process 7)) was asked to go, and takes no more jobs." in said.why
    [queue] = (await admin.overview()).queues()
    assert queue.slots == 0
    assert await admin.unserved() == {"mail": 1}
