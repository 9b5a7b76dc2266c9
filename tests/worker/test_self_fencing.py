"""A worker that may have lost its session acts as if it had: it asks for nothing, begins nothing, writes nothing."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest
from worker_stage import until

from build import a_stored_job, new_id
from rota._core.job import State
from rota.stores.contract import Beat
from rota.stores.memory import MemoryStore
from rota.worker.custody import Custody
from rota.worker.desk import Desk
from rota.worker.execution import Run
from rota.worker.heart import Beats
from rota.worker.lanes import Lane, LaneSpec
from rota.worker.session import Session, introduce

LEASE = 15.0


def a_desk() -> Desk:
    """With one lane of ten slots and a session that is trusted."""
    desk = Desk([Lane(LaneSpec("general", 10, None))], {})
    desk.session = Session(new_id(), LEASE, time.monotonic())
    return desk


def freeze(desk: Desk) -> None:
    """What it is like to wake up after the lease: the last beat was sent long ago, and nobody has noticed yet."""
    assert desk.session is not None
    desk.session.prolong(time.monotonic() - LEASE)


def test_trust_in_a_session_ends_before_its_lease_does():
    now = time.monotonic()
    session, brief = Session(new_id(), LEASE, now), Session(new_id(), 1.0, now)

    assert session.trusted_until == now + LEASE - 2.0
    assert brief.trusted_until == now + 0.8


async def test_trust_counts_from_when_a_beat_was_sent_and_not_from_its_answer():
    class Slow(MemoryStore):
        async def beat(self, session: UUID, **told: Any) -> Beat:
            await asyncio.sleep(0.1)
            return await super().beat(session, **told)

    nobody = Custody(a_desk(), None)  # type: ignore[arg-type]
    beats = Beats(Slow(), lambda: introduce({}, ()), set(), lambda *_: None, nobody, lease=LEASE, every=0.2)
    await beats.step()
    opened = beats.session.sent
    await beats.step()

    assert beats.session.sent > opened, "it was not prolonged at all"
    assert time.monotonic() - beats.session.sent >= 0.1


def test_an_untrusted_session_asks_for_no_work_and_writes_no_ends():
    desk = a_desk()
    desk.settle(Run(a_stored_job(), None, time.monotonic()))
    freeze(desk)

    assert desk.next_order() is None
    assert len(desk.outbox) == 1, "what has ended waits for a session that is trusted"


def test_what_a_claim_brings_after_a_freeze_past_the_lease_is_not_taken_in():
    desk = a_desk()
    order = desk.next_order()
    freeze(desk)

    assert desk.answered(order, (), order.asked) is False
    assert [lane.free for lane in desk.lanes] == [10], "the slots that were set aside are free again"


async def test_after_a_freeze_past_the_lease_nothing_that_waits_is_begun(in_memory):
    stage = in_memory
    begun: list[str] = []

    @stage.app.task
    async def freezes() -> None:
        begun.append("freezes")
        [here] = stage._running
        here.desk.session = Session(here.desk.session.id, LEASE, time.monotonic() - LEASE)
        time.sleep(0.02)  # longer than the others wait for their turn

    @stage.app.task
    async def behind() -> None:
        begun.append("behind")

    await freezes.enqueue()
    handle = await behind.enqueue()
    worker = await stage.work()
    await until(lambda: begun)
    await until(lambda: not worker.desk.busy)
    job = await stage.job(handle)
    await stage.crash(worker)

    assert begun == ["freezes"]
    assert job.state is State.RUNNING, "whoever rescues it decides about it"


@pytest.mark.scenario(6)
def test_a_stray_is_not_handed_back_while_a_claim_is_on_its_way_that_may_bring_it():
    desk = a_desk()
    custody = Custody(desk, None)  # type: ignore[arg-type] - strays have no handler to stop
    stray = a_stored_job()
    desk.flights["exchange 1"] = time.monotonic()
    for _ in range(3):
        custody.strays(desk.session, [stray])

    assert desk.outbox == []
    desk.flights.clear()
    time.sleep(0.001)
    custody.strays(desk.session, [stray])
    [run] = desk.outbox
    assert (run.job, run.transition.to, run.transition.attempt) == (stray, State.PENDING, 0)


def test_a_stray_that_is_seen_for_the_first_time_is_not_handed_back_yet():
    desk = a_desk()
    custody = Custody(desk, None)  # type: ignore[arg-type]
    custody.strays(desk.session, [a_stored_job()])

    assert desk.outbox == []


def test_a_job_that_is_held_is_no_stray_but_another_claim_of_it_is():
    desk = a_desk()
    custody = Custody(desk, None)  # type: ignore[arg-type]
    held = a_stored_job(version=4)
    desk.held.add(Run(held, None, time.monotonic()))
    for _ in range(2):
        custody.strays(desk.session, [held, held._replace(version=2)])
        time.sleep(0.001)

    assert [run.job.version for run in desk.outbox] == [2]
