"""One good call of every route, for the test of all routes by roles by tenants. A new route adds a line to EXAMPLES."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from build import a_job, a_session, claim, failed
from rota._core.dead_letter import DeadFilter
from rota._core.failure import ErrorClass
from rota._core.numbers import Minute, TenantTotal
from rota._core.review import ReviewVerb
from rota._core.schedule import ScheduleSpec
from rota._core.suspects import Crash
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.stores.contract import SessionStart, Store

CANARY = "canary-of-red"


class Stage:
    """Makes what a route is about."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.admin = Admin(store, actor="stage")

    async def job(self, tenant: str | None, **fields: Any) -> UUID:
        job = a_job("mail", {"to": "ann"}, tenant=tenant, **fields)
        await self.store.enqueue([job])
        return job.id

    async def running(self, tenant: str | None) -> UUID:
        job_id = await self.job(tenant)
        await claim(self.store, await a_session(self.store, lease=1e6))
        return job_id

    async def dead(self, tenant: str | None) -> UUID:
        await self.store.publish([TaskSpec("mail", queue="post")])
        job_id = await self.job(tenant)
        jobs = await claim(self.store, await a_session(self.store, lease=1e6))
        job = next(job for job in jobs if job.id == job_id)
        now = await self.store.now()
        await self.store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such address", now=now)])
        return job_id

    async def litter(self, tenant: str) -> list[UUID]:
        """One of everything that lists show, with a canary in every text: jobs that wait, run and died, a review, an
        operation, a worker, and what somebody did to them."""
        marked: dict[str, Any] = {
            "tenant": tenant, "subject": CANARY, "external_id": CANARY, "tags": (CANARY,), "category": CANARY,
            "queue": CANARY, "correlation_id": CANARY,
        }  # fmt: skip
        waits, runs, dies = (a_job("mail", {"to": CANARY}, **marked) for _ in range(3))
        session = SessionStart(uuid4(), CANARY, 7, {"general": 5}, ("mail",), tenant=tenant)
        await self.store.open_session(session, lease=1e6)
        await self.store.enqueue([runs, dies])
        jobs = {job.id: job for job in await claim(self.store, session.id)}
        now = await self.store.now()
        await self.store.settle([failed(jobs[dies.id], ErrorClass.NON_RETRYABLE, CANARY, now=now)])
        done = Minute(now.replace(second=0, microsecond=0), tenants=[TenantTotal(tenant, 2, 1)])
        await self.store.note_minutes(session.id, [done])
        await self.store.enqueue([waits])
        somebody = Admin(self.store, actor=CANARY)
        await somebody.hold(waits.id, reason=CANARY)
        await somebody.release(waits.id, reason=CANARY)
        await somebody.begin_operation(
            ReviewVerb.DISCARD, DeadFilter(tenant=tenant, group=CANARY), reason=CANARY
        )
        return [waits.id, runs.id, dies.id]


Made = Callable[[Stage, str | None], Awaitable[dict[str, str]]]


class Example(NamedTuple):
    """How to call a route so that it works."""

    path: Made | None = None
    """Makes what the path names, for this tenant; what it answers fills the path."""
    json: Any = None
    params: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    shared: bool = False
    """True: it is about code, not about anybody's data, so that every tenant may look."""
    stream: bool = False
    """True: its answer does not end by itself."""
    scoped: bool = True
    """False: it is about all tenants, so that somebody of one tenant may not ask (403)."""


def of(make: Callable[[Stage, str | None], Awaitable[UUID]], name: str = "job_id") -> Made:
    """A path whose only variable is the id of what `make` makes."""

    async def made(stage: Stage, tenant: str | None) -> dict[str, str]:
        return {name: str(await make(stage, tenant))}

    return made


async def held(stage: Stage, tenant: str | None) -> UUID:
    return await stage.job(tenant, held=True)


def named(name: str) -> Made:
    """A path about something that every tenant's jobs have: a queue with a job in it, its task."""

    async def made(stage: Stage, tenant: str | None) -> dict[str, str]:
        await stage.store.publish([TaskSpec("mail", queue="post")])
        await stage.job(tenant, queue="post")
        return {"name": name}

    return made


async def parked(stage: Stage, _tenant: str | None) -> dict[str, str]:
    """A task that is parked because its jobs kill their process."""
    name = f"bomb-{uuid4().hex}"
    await stage.store.publish([TaskSpec(name)])
    await stage.store.note_crash(Crash(name, "v1", uuid4(), 2, "killed by SIGSEGV"), limit=1, within=3600.0)
    return {"name": name}


async def a_worker(stage: Stage, tenant: str | None) -> dict[str, str]:
    session = SessionStart(uuid4(), "host", 7, {"general": 5}, ("mail",), tenant=tenant, hears=True)
    await stage.store.open_session(session, lease=1e6)
    return {"worker_id": str(session.id)}


async def a_schedule(stage: Stage, _tenant: str | None) -> dict[str, str]:
    name = f"nightly-{uuid4().hex}"
    await stage.store.publish_schedules(
        [ScheduleSpec(name, "mail", '{"payload": {"to": "ann"}}', "30 2 * * *")]
    )
    return {"name": name}


async def a_group(stage: Stage, tenant: str | None) -> dict[str, str]:
    letter = await stage.admin.dead_letter(await stage.dead(tenant))
    assert letter.fingerprint is not None
    return {"fingerprint": letter.fingerprint}


async def an_operation(stage: Stage, tenant: str | None) -> dict[str, str]:
    wanted = DeadFilter(tenant=tenant, group=uuid4().hex)
    operation = await stage.admin.begin_operation(ReviewVerb.ACKNOWLEDGE, wanted)
    return {"operation_id": str(operation.id)}


A_JOB, A_RUNNING_JOB, A_DEAD_JOB = of(Stage.job), of(Stage.running), of(Stage.dead)

EXAMPLES: dict[str, Example] = {
    "jobs.submit": Example(json={"task": "mail", "args": {"to": "ann"}}),
    "jobs.list": Example(),
    "jobs.show": Example(A_JOB),
    "jobs.attempts": Example(A_DEAD_JOB),
    "jobs.logs": Example(A_JOB),
    "jobs.tree": Example(A_JOB),
    "jobs.explain": Example(A_JOB),
    "jobs.retry": Example(A_DEAD_JOB, json={"reason": "the mail server is back"}),
    "jobs.cancel": Example(A_JOB),
    "jobs.hold": Example(A_JOB),
    "jobs.release": Example(of(held)),
    "jobs.fail": Example(A_RUNNING_JOB),
    "jobs.edit": Example(A_JOB, json={"priority": 5}),
    "jobs.reveal": Example(A_JOB, json={"reason": "the customer asked"}),
    "jobs.kill": Example(A_RUNNING_JOB),
    "jobs.delete": Example(A_DEAD_JOB),
    "jobs.sweep": Example(json={"verb": "hold", "filter": "", "dry_run": False}),
    "jobs.operate": Example(json={"verb": "hold", "filter": "", "expected": 10}),
    "jobs.purge": Example(json={"filter": "", "dry_run": False}),
    "queues.list": Example(scoped=False),
    "queues.show": Example(named("post"), scoped=False),
    "queues.purge": Example(named("post"), json={"name": "post"}, shared=True),
    "tasks.list": Example(),
    "tasks.show": Example(named("mail"), shared=True),
    "tasks.release": Example(parked, scoped=False),
    "workers.list": Example(),
    "workers.show": Example(a_worker),
    "workers.drain": Example(a_worker, json={"reason": "deploy"}, scoped=False),
    "workers.stop": Example(a_worker, scoped=False),
    "schedules.list": Example(scoped=False),
    "schedules.show": Example(a_schedule, scoped=False),
    "schedules.next": Example(a_schedule, params={"count": "3"}, scoped=False),
    "schedules.run": Example(a_schedule, scoped=False),
    "schedules.pause": Example(a_schedule, json={"reason": "maintenance"}, scoped=False),
    "schedules.resume": Example(a_schedule, scoped=False),
    "schedules.edit": Example(a_schedule, json={"timing": "0 4 * * *", "dry_run": True}, scoped=False),
    "schedules.reset": Example(a_schedule, scoped=False),
    "schedules.backfill": Example(
        a_schedule,
        json={"begin": "2026-01-01T00:00Z", "end": "2026-01-02T00:00Z", "dry_run": True},
        scoped=False,
    ),
    "dead_letters.list": Example(),
    "dead_letters.show": Example(A_DEAD_JOB),
    "dead_letters.acknowledge": Example(A_DEAD_JOB, json={"notes": "known"}),
    "dead_letters.discard": Example(A_DEAD_JOB),
    "dead_letters.reprocess": Example(A_DEAD_JOB, json={"notes": "again", "edits": {"to": "bob"}}),
    "failures.list": Example(),
    "failures.show": Example(a_group),
    "failures.acknowledge": Example(a_group),
    "failures.discard": Example(a_group),
    "failures.reprocess": Example(a_group, json={"dry_run": True}),
    "operations.list": Example(),
    "operations.begin": Example(json={"verb": "acknowledge", "which": {"task": "mail"}}),
    "operations.show": Example(an_operation),
    "operations.stop": Example(an_operation),
    "operations.resume": Example(an_operation),
    "audit.list": Example(),
    "statistics.show": Example(scoped=False),
    "statistics.tenants": Example(),
    "statistics.series": Example(params={"since": "6h", "queue": "post"}, scoped=False),
    "statistics.depths": Example(params={"step": "5m"}, scoped=False),
    "doc20_dlq.list": Example(),
    "doc20_dlq.statistics": Example(),
    "doc20_dlq.show": Example(of(Stage.dead, "dlq_id")),
    "doc20_dlq.reprocess": Example(of(Stage.dead, "dlq_id"), json={"notes": "fixed"}),
    "doc20_dlq.discard": Example(of(Stage.dead, "dlq_id")),
    "doc20_queue.list": Example(),
    "doc20_queue.statistics": Example(),
    "docverse.show": Example(A_JOB),
    "events.follow": Example(params={"topics": "jobs"}, stream=True),
    "session.show": Example(),
    "system.openapi": Example(),
}
