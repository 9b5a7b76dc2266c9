"""What can be asked: one job with its history, lists, counts, and who is at work."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from rota._core.job import State
from rota.errors import JobNotFound
from rota.stores.contract import JobFilter


@pytest.mark.req("D24")
async def test_a_job_is_shown_with_its_attempts_its_audit_and_who_created_it(admin, shop):
    job_id = await shop.dead(created_by="admin-ui")
    await admin.retry(job_id, reason="fixed")

    view = await admin.show(job_id)

    assert (view.job.id, view.label, view.job.created_by) == (job_id, "pending", "admin-ui")
    assert [(seen.attempt, seen.message) for seen in view.attempts] == [(1, "no such address")]
    assert [(done.actor, done.action) for done in view.audit] == [("ann@office", "retry")]


async def test_an_unknown_job_cannot_be_shown(admin):
    with pytest.raises(JobNotFound):
        await admin.show(UUID(int=5))


@pytest.mark.req("L13")
async def test_the_children_of_a_job_are_found_by_parent_within_a_correlation(admin, shop):
    parent = await shop.add(correlation_id="order-7")
    first = await shop.add(parent_id=parent, correlation_id="order-7")
    second = await shop.add(parent_id=parent, correlation_id="order-7")
    await shop.add(parent_id=parent, correlation_id="order-8")
    await shop.add(correlation_id="order-7")

    within = await admin.list(JobFilter(parent_id=parent, correlation_id="order-7"))
    view = await admin.show(parent)

    assert [job.id for job in within] == [second, first]
    assert [job.id for job in view.children][:2] == [first, second]
    assert len(view.children) == 3


async def test_stats_count_by_state_queue_and_task(admin, shop):
    await shop.dead("mail", queue="fast")
    await shop.add("mail", queue="fast")
    await shop.add("mail", queue="fast")
    await shop.add("report")

    stats = await admin.stats()

    assert stats.by_state() == {State.DEAD: 1, State.PENDING: 3}
    assert stats.by_queue() == {
        ("fast", State.DEAD): 1,
        ("fast", State.PENDING): 2,
        ("default", State.PENDING): 1,
    }
    assert stats.by_task() == {
        ("mail", State.DEAD): 1,
        ("mail", State.PENDING): 2,
        ("report", State.PENDING): 1,
    }


async def test_stats_say_how_long_the_oldest_due_job_has_waited(admin, shop, clock):
    await shop.add("report", delay=7200.0)
    nothing_due = await admin.stats()
    await shop.add("mail")
    clock.advance(90)

    stats = await admin.stats()

    assert nothing_due.oldest_wait is None
    assert stats.oldest_wait == timedelta(seconds=90)


async def test_an_empty_store_has_no_counts_and_no_wait(admin):
    stats = await admin.stats()

    assert (stats.by_state(), stats.oldest_wait) == ({}, None)


async def test_living_sessions_are_those_that_hold_a_lease_now(admin, shop, clock):
    ended = await shop.open("mail")
    await admin.store.end_session(ended)
    await shop.open("mail", lease=10)
    clock.advance(11)
    alive = await shop.open("mail")

    assert [session.id for session in await admin.living()] == [alive]


async def test_tasks_with_waiting_jobs_that_no_living_worker_knows_are_named(admin, shop):
    await shop.open("mail")
    await shop.add("mail")
    await shop.add("report")
    await shop.add("report")

    assert await admin.unserved() == {"report": 2}
