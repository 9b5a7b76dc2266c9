"""How the work goes, asked of the one service: every part known, or None."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import NOON, Clock, a_job, new_id
from rota._core.job import State
from rota._core.numbers import Ending, Minute, TenantTotal, Total, bucket
from rota._core.queue import Queue
from rota.errors import StoreUnavailable
from rota.stores.contract import SessionStart


@pytest.mark.req("L14")
async def test_the_whole_at_once(admin, shop, store, clock: Clock):
    await shop.dead("mail")
    waits = {bucket(45.0): 4}
    sent = Total("mail", "send", Ending.COMPLETED, 4, 180.0, 2.0, waits, {bucket(0.5): 4})
    await store.note_minutes(new_id(), [Minute(NOON, [sent], [TenantTotal("acme", 4), TenantTotal("b", 9)])])
    await store.publish_queues([Queue("mail", target="30s"), Queue("idle", target="1m")])
    await store.enqueue(
        [
            a_job("send", queue="mail", run_at=NOON - timedelta(minutes=2)),
            a_job("send", queue="mail", delay=60.0),
        ]
    )
    start = SessionStart(
        new_id(), "h", 1, {"mail": 2, "any": 3}, ("send",), queues={"mail": ("mail",), "any": ("x",)}
    )
    await store.open_session(start, lease=60)

    seen = await admin.overview(600.0)
    assert (seen.jobs(State.PENDING), seen.jobs(State.DEAD), seen.capped) == (2, 1, False)
    assert seen.oldest_wait == timedelta(minutes=2)
    views = {view.queue: view for view in seen.queues()}
    mail = views["mail"]
    assert (mail.pending, mail.running, mail.oldest_wait) == (2, 0, timedelta(minutes=2))
    assert mail.slots == 7  # 2 of the lane that serves it, and 5 of the worker that serves every queue
    assert (mail.target, mail.late) == (30.0, True)
    assert mail.done is not None
    assert mail.done.done == 4
    assert views["default"].late is None
    assert [total.tenant for total in await admin.tenants(600.0)] == ["b", "acme"]


async def test_a_queue_that_keeps_its_target_is_not_late(admin, store, clock: Clock):
    await store.publish_queues([Queue("mail", target="30s")])
    await store.enqueue([a_job("send", queue="mail")])
    clock.advance(29)
    assert [view.late for view in (await admin.overview()).queues()] == [False]

    clock.advance(2)
    assert [view.late for view in (await admin.overview()).queues()] == [True]


@pytest.mark.scenario(20)
async def test_what_cannot_be_read_is_none_and_says_why(admin, store, monkeypatch):
    async def away(*_given):
        raise StoreUnavailable("the line is cut")

    await store.enqueue([a_job("send", queue="mail")])
    monkeypatch.setattr(store, "counts", away)
    monkeypatch.setattr(store, "figures", away)
    seen = await admin.overview()

    assert (seen.jobs(State.PENDING), seen.figures, seen.lanes) == (None, None, None)
    assert seen.unknown == {"counts": "the line is cut", "figures": "the line is cut"}
    [mail] = seen.queues()
    assert (mail.pending, mail.done, mail.slots) == (None, None, 0)


async def test_charts_are_drawn_of_slices_that_fit_the_stretch(admin, store, clock: Clock):
    sent = Total("mail", "send", Ending.COMPLETED, 4, runs={bucket(0.5): 4})
    await store.note_minutes(
        new_id(), [Minute(NOON, [sent, sent._replace(queue="slow", ending=Ending.DEAD)])]
    )

    chart = await admin.series()
    assert (chart.step, len(chart.points), chart.since) == (60.0, 61, NOON - timedelta(hours=1))
    assert (chart.points[-1].completed, chart.points[-1].dead) == (4, 4)
    assert [point.attempts for point in (await admin.series(86_400.0, queue="slow")).points][-1:] == [4]
    assert (await admin.series(600.0, 300.0, task="other")).points[-1].attempts == 0
