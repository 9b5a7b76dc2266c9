"""Builders, so that tests read like sentences: a_job(), a_session(store), completed(job), failed(job)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from rota._core.actions import Audit, Refusal, Verb, act
from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job, NewJob, State
from rota._core.outcome import Cancelled, HandedBack, Lost, Raised, Returned, Snoozed, Transition, decide
from rota._core.retry import Retry
from rota.stores.contract import Answer, SessionStart, Settled, Store, Wanted

LEASE = 15.0
ANY = Wanted(limit=100)
ONE = Wanted(limit=1)

_numbers = count(1)


def new_id() -> UUID:
    """A UUIDv7 of now, by the real clock; each is later than the one before."""
    return UUID(int=int(time.time() * 1000) << 80 | 7 << 76 | 2 << 62 | next(_numbers) << 40)


# The day of the whole run, also when midnight passes on the way: the tests' databases have its days, and one week more.
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


class Clock:
    """A clock that only moves when told. It starts at noon of the day on which the run began."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def a_job(task: str = "email", payload: dict[str, Any] | None = None, **options: Any) -> NewJob:
    """A job that is ready to be stored."""
    chosen = {"id": new_id(), "payload_json": json.dumps(payload or {})} | options
    return NewJob(task=task, **chosen)


def a_stored_job(state: State = State.RUNNING, **fields: Any) -> Job:
    """A job as a store would show it, for rules that need no store."""
    moment = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
    begun = state not in (State.PENDING, State.BLOCKED, State.HELD)
    values: dict[str, Any] = {
        "id": UUID(int=7 << 76),
        "version": 2 if begun else 1,
        "state": state,
        "task": "email",
        "queue": "default",
        "priority": 100,
        "payload_json": "{}",
        "attempt": 1 if begun else 0,
        "max_attempts": 5,
        "snoozes": 0,
        "losses": 0,
        "run_at": moment,
        "created_at": moment,
        "updated_at": moment,
    }
    return Job(**(values | fields))


async def a_session(store: Store, host: str = "here", *, lease: float = LEASE) -> UUID:
    """A living session's id."""
    session = SessionStart(id=new_id(), host=host, pid=4711, lanes={"general": 5}, tasks=("email",))
    await store.open_session(session, lease=lease)
    return session.id


async def a_running_job(store: Store, task: str = "email", **options: Any) -> Job:
    """A job that was stored and claimed by a session of its own."""
    new = a_job(task, **options)
    await store.enqueue([new])
    [job] = [job for job in await claim(store) if job.id == new.id]
    return job


async def claim(store: Store, session: UUID | None = None, wanted: Wanted = ANY) -> list[Job]:
    """Claim as a worker does: look what is due first, and once more when the answer was short.

    A claim may answer with fewer jobs than are due, so one alone proves
    nothing. Without a session, a new one claims.
    """
    owner = session or await a_session(store)
    jobs: list[Job] = []
    for _ in range(2):
        await store.next_due()
        jobs += await store.claim(wanted._replace(limit=wanted.limit - len(jobs)), session=owner)
        if len(jobs) >= wanted.limit:
            break
    return jobs


async def read(store: Store, job: Job | NewJob | UUID) -> Job:
    """The job as the store sees it now."""
    [found] = await store.get([job if isinstance(job, UUID) else job.id])
    return found


def completed(job: Job, result: Any = None) -> Transition:
    return _decided(job, Returned(None if result is None else json.dumps(result)))


def partial(job: Job, result: Any = None) -> Transition:
    return _decided(job, Returned(None if result is None else json.dumps(result), partial=True))


def failed(
    job: Job,
    error_class: ErrorClass = ErrorClass.RETRYABLE,
    message: str = "boom",
    *,
    retry: Retry | None = None,
    now: datetime | None = None,
) -> Transition:
    failure = Failure(error_class, "ValueError", message, "Traceback: boom")
    return _decided(job, Raised(failure), retry=retry, now=now)


def snoozed(job: Job, delay: float = 60.0, reason: str | None = None) -> Transition:
    return _decided(job, Snoozed(delay, reason))


def handed_back(job: Job) -> Transition:
    return _decided(job, HandedBack())


def cancelled(job: Job, reason: str | None = None) -> Transition:
    return _decided(job, Cancelled(reason))


def lost(job: Job, *, retry: Retry | None = None, now: datetime | None = None) -> Transition:
    return _decided(job, Lost(), retry=retry, now=now)


def _decided(
    job: Job, outcome: Any, *, retry: Retry | None = None, now: datetime | None = None
) -> Transition:
    moment = now or job.claimed_at or job.updated_at
    return decide(job, outcome, retry=retry or Retry(), now=moment)


async def rescue(store: Store, *, retry: Retry | None = None) -> list[Job]:
    """What the rescuer does: end expired sessions, then take their jobs. The jobs as they were."""
    await store.end_expired()
    orphans = await store.lost(limit=100)
    await store.settle([lost(job, retry=retry, now=await store.now()) for job in orphans])
    return orphans


async def by_hand(
    store: Store, job: Job, verb: Verb, *, reason: str | None = None, force: bool = False, actor: str = "ada"
) -> Settled:
    """Take an operator's action on the job as it was read."""
    change = act(job, verb, retry=Retry(), now=await store.now(), reason=reason, force=force)
    assert not isinstance(change, Refusal), change
    return await store.change(change, Audit(actor, verb.value, job.id, reason, before=job.state.value))


def applied(job: Job, state: State) -> Settled:
    return Settled(job.id, Answer.APPLIED, state)


def already(job: Job, state: State) -> Settled:
    return Settled(job.id, Answer.ALREADY, state)


def fenced(job: Job, state: State | None) -> Settled:
    return Settled(job.id, Answer.FENCED, state)
