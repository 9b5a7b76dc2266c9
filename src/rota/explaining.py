"""Gathers the facts about one job from a store, for `handle.explain()` and everybody who shows why a job waits."""

from __future__ import annotations

from uuid import UUID

from rota._core.explain import explain
from rota._core.explanation import Explanation, Facts, Standing, WorkerSeen, queues_of
from rota._core.job import Job, State
from rota.stores.archive import missing
from rota.stores.contract import SessionRecord, Store

COUNTED = 10_000
"""So many jobs ahead are counted; behind more, the exact number is of no use."""


async def explained(store: Store, job_id: UUID) -> Explanation:
    """Why this job is not running, or that it is, and what would unblock it."""
    found = await store.get([job_id])
    if not found:
        raise await missing(store, job_id)
    return explain(await facts_of(store, found[0]))


async def facts_of(store: Store, job: Job) -> Facts:
    """What is known about a job and about what stands before it. A few small reads, never of the whole backlog."""
    facts = Facts(job, await store.now())
    if job.state.terminal or job.state is State.HELD:
        return facts._replace(audit=tuple(await store.audit(job.id, limit=20)))
    alive = [
        record
        for record in await store.sessions()
        if record.ended_at is None and record.lease_until > facts.now
    ]
    workers = tuple(map(seen, alive))
    if job.state is State.RUNNING:
        return facts._replace(owner=next((worker for worker in workers if worker.id == job.session_id), None))
    standing = await store.standing(job, cap=COUNTED) if job.state is State.PENDING else Standing()
    inside = None if standing.inside is None else await store.get([standing.inside])
    return facts._replace(
        workers=workers,
        standing=standing,
        inside=inside[0] if inside else None,
        parked=tuple(row for row in await store.parked_tasks() if row.task == job.task),
        task=next((spec for spec in await store.tasks() if spec.name == job.task), None),
        target=next(
            (queue.target_seconds for queue in await store.queues() if queue.name == job.queue), None
        ),
    )


def seen(session: SessionRecord) -> WorkerSeen:
    """A session in the words of the rules."""
    return WorkerSeen(
        session.id,
        session.host,
        session.pid,
        session.tasks,
        queues_of(session.queues),
        session.tenant,
        sum(session.lanes.values()),
        tuple((slots, (session.queues or {}).get(name)) for name, slots in session.lanes.items()),
        session.order is not None,
        session.memory,
    )
