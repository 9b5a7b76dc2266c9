"""There are several ways to a job (a claim, an exchange, each behind a gate too), and all keep the same rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from build import LEASE, ONE, Clock, a_job, a_session, applied, claim, completed
from rota._core.job import Job, NewJob, State
from rota.stores.contract import Store, Wanted

WAYS = pytest.mark.parametrize(
    ("way", "gate"),
    [("claim", None), ("exchange", None), ("claim", "site:7"), ("exchange", "site:7")],
    ids=["claim", "exchange", "gated claim", "gated exchange"],
)


async def a_worker(store: Store) -> tuple[UUID, Job]:
    """A session, and the job that it runs."""
    session = await a_session(store)
    await store.enqueue([a_job("running", queue="running")])
    [job] = await claim(store, session, ONE)
    return session, job


async def taken(store: Store, way: str, session: UUID, running: Job, **wanted: Any) -> list[Job]:
    """What the session gets by this way; an exchange writes the end of its job besides."""
    await store.next_due()
    if way == "claim":
        return await store.claim(Wanted(limit=10, **wanted), session=session)
    settled, jobs = await store.exchange([completed(running)], Wanted(limit=10, **wanted), session=session)
    assert settled == [applied(running, State.COMPLETED)]
    return jobs


def ids(jobs: list[Job] | list[NewJob]) -> set[UUID]:
    return {job.id for job in jobs}


@WAYS
async def test_a_session_gets_work_by_every_way(store: Store, way: str, gate: str | None):
    session, running = await a_worker(store)
    job = a_job(gate=gate)
    await store.enqueue([job])

    [got] = await taken(store, way, session, running)

    assert (got.id, got.session_id, got.attempt) == (job.id, session, 1)


@WAYS
async def test_by_no_way_does_an_expired_session_get_work(
    store: Store, clock: Clock, way: str, gate: str | None
):
    session, running = await a_worker(store)
    clock.advance(LEASE)
    job = a_job(gate=gate)
    await store.enqueue([job])

    assert await taken(store, way, session, running) == []
    assert ids(await claim(store)) == {job.id}


@WAYS
async def test_by_no_way_does_an_ended_session_get_work(store: Store, way: str, gate: str | None):
    session, running = await a_worker(store)
    await store.end_session(session)
    job = a_job(gate=gate)
    await store.enqueue([job])

    assert await taken(store, way, session, running) == []
    assert ids(await claim(store)) == {job.id}


@WAYS
@pytest.mark.req("W13")
async def test_every_way_keeps_to_its_tenant(store: Store, way: str, gate: str | None):
    session, running = await a_worker(store)
    jobs = [
        a_job(tenant=tenant, gate=gate and f"{gate}:{tenant}") for tenant in (None, "umbrella", "acme", "acm")
    ]
    await store.enqueue(jobs)

    assert ids(await taken(store, way, session, running, tenant="acme")) == {jobs[2].id}
    assert ids(await claim(store)) == ids(jobs) - {jobs[2].id}


@WAYS
async def test_every_way_keeps_to_its_tasks(store: Store, way: str, gate: str | None):
    session, running = await a_worker(store)
    jobs = [a_job(task, gate=gate and f"{gate}:{task}") for task in ("email", "unknown here", "webhook")]
    await store.enqueue(jobs)

    assert ids(await taken(store, way, session, running, tasks=("email", "webhook"))) == {
        jobs[0].id,
        jobs[2].id,
    }
    assert ids(await claim(store)) == {jobs[1].id}


@WAYS
async def test_every_way_keeps_to_its_queues_and_to_what_is_due(
    store: Store, clock: Clock, way: str, gate: str | None
):
    session, running = await a_worker(store)
    soon = clock.now + timedelta(milliseconds=1)
    due, later, other = (
        a_job(queue="mail", gate=gate and f"{gate}:1"),
        a_job(queue="mail", gate=gate and f"{gate}:2", run_at=soon),
        a_job(queue="other", gate=gate and f"{gate}:3"),
    )
    await store.enqueue([later, other, due])

    assert ids(await taken(store, way, session, running, queues=("mail",))) == {due.id}
    clock.advance(0.001)
    assert ids(await claim(store)) == {later.id, other.id}
