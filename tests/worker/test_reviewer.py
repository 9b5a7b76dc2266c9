"""The reviewer: a reprocessed dead letter is closed or reopened by the end of its new job, in a real worker."""

from __future__ import annotations

import asyncio

import pytest

from build import a_running_job, a_stored_job, claim, completed, failed, new_id
from rota._core.failure import ErrorClass
from rota._core.review import Review
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.worker.chores.reviewer import Reviewer
from rota.worker.desk import Desk


@pytest.mark.parametrize(("end", "stands"), [("well", Review.RESOLVED), ("badly", Review.PENDING)])
async def test_one_round_moves_what_has_ended(store, end, stands, monkeypatch):
    await store.publish([TaskSpec("email")])
    job = await a_running_job(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    await Admin(store, actor="ann").reprocess(job.id)
    [new] = await claim(store)
    await store.settle([completed(new) if end == "well" else failed(new, ErrorClass.NON_RETRYABLE)])
    reviewer = Reviewer(store, Desk([], {}))
    monkeypatch.setattr("rota.worker.chores.reviewer.OFTEN", 0.0)
    await reviewer.step()

    assert (await store.dead_letter(job.id)).review is stands


async def test_with_nothing_under_way_it_rests_for_a_minute_or_until_a_job_with_a_parent_comes(
    store, monkeypatch
):
    monkeypatch.setattr("rota.worker.chores.reviewer.OFTEN", 0.0)
    desk = Desk([], {})
    round_ = asyncio.create_task(Reviewer(store, desk).step())

    done, _ = await asyncio.wait([round_], timeout=0.3)
    assert not done

    desk.notice(a_stored_job(parent_id=new_id()))
    await asyncio.wait_for(round_, 5)
    assert not desk.kin_came.is_set()
