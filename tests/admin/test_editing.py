"""Editing a job that has not started: what it does, where, how urgently and when, and what must stay."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from build import ANY, claim
from rota import Rota
from rota._core.job import State
from rota.admin.editing import Edit
from rota.errors import JobChanged, JobNotFound, MoveRefused, PayloadInvalid, UnknownTask


@pytest.fixture
async def mail(store) -> Rota:
    """An app that published its tasks, and is not here any more."""
    app = Rota(store=store)

    @app.task(name="mail")
    def mail(to: str, copies: int = 1) -> None: ...

    @app.task(name="sync", serial="site")
    def sync(site: str, full: bool = False) -> None: ...

    @app.task(name="code", key=lambda to: to)
    def code(to: str) -> None: ...

    await store.publish([task.spec() for task in app.tasks.values()])
    return app


async def test_a_waiting_job_gets_other_arguments_priority_queue_and_time(admin, shop, mail, clock):
    job_id = await shop.add(payload={"to": "ann", "copies": 2})
    later = clock.now + timedelta(hours=1)
    edited = await admin.edit(job_id, Edit({"to": "bob"}, 5, "slow", later), reason="typo")

    assert edited.payload == {"to": "bob", "copies": 2}
    assert (edited.priority, edited.queue, edited.run_at) == (5, "slow", later)
    assert (edited.state, edited.version) == (State.PENDING, 2)
    [row] = await admin.store.audit(job_id)
    assert (row.actor, row.action, row.reason) == ("ann@office", "edit", "typo")
    assert row.before == f"priority=100 queue=default run_at={clock.now}"
    assert row.after == f"priority=5 queue=slow run_at={later} to edited"


async def test_the_edited_job_is_what_runs(admin, shop, mail):
    job_id = await shop.add(payload={"to": "ann"})
    await admin.edit(job_id, Edit({"copies": 2**60}, queue="slow"))
    [job] = await claim(shop.store, await shop.open(), ANY._replace(queues=("slow",)))

    assert (job.id, job.payload) == (job_id, {"to": "ann", "copies": 2**60})


async def test_a_held_job_stays_held_and_why(admin, shop, mail):
    job_id = await shop.add(payload={"to": "ann"})
    await admin.hold(job_id, reason="smtp is down")
    edited = await admin.edit(job_id, Edit(priority=1))

    assert (edited.state, edited.reason, edited.priority) == (State.HELD, "smtp is down", 1)


async def test_what_runs_or_has_ended_is_not_edited(admin, shop, mail):
    running, dead = await shop.add(payload={"to": "ann"}), await shop.dead(payload={"to": "ann"})

    for job_id in (running, dead):
        with pytest.raises(MoveRefused, match="Only a job that waits or is held can be edited"):
            await admin.edit(job_id, Edit(priority=1))
    with pytest.raises(JobNotFound):
        await admin.edit(UUID(int=7), Edit(priority=1))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit(), "nothing is to be edited"),
        (Edit(args={}), "nothing is to be edited"),
        (Edit(priority=40_000), "40000"),
        (Edit(queue=""), "queue must not be empty"),
        (Edit(args={"colour": "red"}), "mail has no argument 'colour'"),
        (Edit(args={"copies": "many"}), "must be integer"),
        (Edit(args={"to": "a\x00b"}), "NUL character"),
    ],
    ids=str,
)
async def test_an_edit_that_cannot_be_meant_is_refused_and_changes_nothing(admin, shop, mail, edit, words):
    job_id = await shop.add(payload={"to": "ann"})
    before = await admin.job(job_id)

    with pytest.raises(PayloadInvalid, match=words):
        await admin.edit(job_id, edit)
    assert await admin.job(job_id) == before
    assert await admin.store.audit(job_id) == []


async def test_an_argument_that_names_a_key_stays(admin, shop, mail):
    serial = await shop.add("sync", payload={"site": "a"}, gate="serial::a")
    coded = await shop.add("code", payload={"to": "ann"}, key="ann")

    with pytest.raises(PayloadInvalid, match="the serial key of sync comes from its argument 'site'"):
        await admin.edit(serial, Edit({"site": "b"}))
    with pytest.raises(PayloadInvalid, match="the key of code comes from one of its arguments"):
        await admin.edit(coded, Edit({"to": "bob"}))
    assert (await admin.edit(serial, Edit({"full": True}))).payload == {"site": "a", "full": True}


async def test_arguments_of_a_task_that_nobody_published_are_not_edited(admin, shop):
    job_id = await shop.add("gone")

    with pytest.raises(UnknownTask):
        await admin.edit(job_id, Edit({"to": "bob"}))
    assert (await admin.edit(job_id, Edit(priority=3))).priority == 3


async def test_an_old_version_is_a_conflict(admin, shop, mail):
    job_id = await shop.add(payload={"to": "ann"})
    await admin.edit(job_id, Edit(priority=3), version=1)

    with pytest.raises(JobChanged):
        await admin.edit(job_id, Edit(priority=4), version=1)
    assert (await admin.job(job_id)).priority == 3
