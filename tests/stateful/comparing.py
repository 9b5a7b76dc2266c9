"""Two stores' answers in one form: JSON as values, orders that nobody promised as sets."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from rota._core.job import Job, Scope, State
from rota._core.outcome import Transition
from rota.stores.contract import Answer, Beat, JobFilter, SessionRecord, Settled, Store

EVERYTHING = JobFilter(limit=10_000)


def as_stored(job: Job) -> dict[str, Any]:
    """A job field by field; its JSON texts as what they mean."""
    fields = job._asdict()
    for name in ("payload_json", "result_json", "headers_json"):
        fields[name] = None if fields[name] is None else json.loads(fields[name])
    if job.gate is not None and job.state is State.PENDING:
        # When a job is parked is the store's own affair; that it runs when it may is checked at the claim.
        del fields["parked"], fields["updated_at"]
    return fields


def as_claimed(jobs: list[Job]) -> dict[UUID, dict[str, Any]]:
    """Claimed jobs by id. A worker hears of a cancel by its beat, and the stored row has the last update."""
    shown = {job.id: as_stored(job) for job in jobs}
    for fields in shown.values():
        del fields["cancel_requested_at"], fields["updated_at"], fields["reason"]
    return shown


async def jobs_of(store: Store) -> dict[UUID, dict[str, Any]]:
    return {job.id: as_stored(job) for job in await store.find(EVERYTHING)}


async def history_of(store: Store) -> dict[str, Any]:
    """Everything else that a store can be asked for."""
    jobs = await store.find(EVERYTHING)
    return {
        "attempts": {job.id: await store.attempts(job.id) for job in jobs},
        "audit": await store.audit(limit=10_000),
        "sessions": sorted(map(_session, await store.sessions())),
        "counts": sorted(await store.counts()),
    }


def _session(record: SessionRecord) -> tuple[Any, ...]:
    return record.id, record.started_at, record.lease_until, record.ended_at, record.host, dict(record.lanes)


def as_answered(
    answers: list[Settled], transitions: list[Transition]
) -> list[tuple[UUID, str, State | None]]:
    """Answers to a settle. Whether a job that was to take its key again is called settled already or
    fenced may depend on what became of its rival meanwhile; that nothing was changed does not."""
    told = []
    for answer, transition in zip(answers, transitions, strict=True):
        torn = transition.job.unique_scope == Scope.STARTED and transition.to is State.PENDING
        unsure = torn and answer.answer is not Answer.APPLIED
        told.append((answer.id, "not applied" if unsure else answer.answer.value, answer.state))
    return told


def as_told(beat: Beat, holding: dict[UUID, int]) -> tuple[Any, ...]:
    """A beat without the order of its lists; only held jobs were asked about."""
    return beat.alive, set(beat.cancel) & set(holding), set(beat.lost), set(as_claimed(list(beat.strays)))


def differences(real: Any, model: Any, place: str = "") -> list[str]:
    """Where two answers differ, one line a place: whole answers are too long to be read."""
    if isinstance(real, dict) and isinstance(model, dict):
        return [
            line
            for name in sorted(real.keys() | model.keys(), key=str)
            for line in differences(
                real.get(name, "(missing)"), model.get(name, "(missing)"), f"{place} {name}"
            )
        ]
    if isinstance(real, list) and isinstance(model, list) and len(real) == len(model):
        return [
            line
            for number, both in enumerate(zip(real, model, strict=True))
            for line in differences(*both, f"{place} [{number}]")
        ]
    return [] if real == model else [f"{place}: real {real}, model {model}"]
