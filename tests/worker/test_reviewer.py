"""The reviewer: a reprocessed dead letter is closed or reopened by the end of its new job, in a real worker."""

from __future__ import annotations

import asyncio

import pytest

from build import a_running_job, claim, completed, failed
from rota._core.failure import ErrorClass
from rota._core.review import Review
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.worker.chores.reviewer import Reviewer


@pytest.mark.parametrize(("end", "stands"), [("well", Review.RESOLVED), ("badly", Review.PENDING)])
async def test_one_round_moves_what_has_ended(store, end, stands, monkeypatch):
    await store.publish([TaskSpec("email")])
    job = await a_running_job(store)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    await Admin(store, actor="ann").reprocess(job.id)
    [new] = await claim(store)
    await store.settle([completed(new) if end == "well" else failed(new, ErrorClass.NON_RETRYABLE)])
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", rest)
    reviewer = Reviewer(store)
    await reviewer.step()
    await reviewer.step()

    assert (await store.dead_letter(job.id)).review is stands
    assert rests[0] < 4
    assert rests[1] > 10
