"""Transitions on their way to PostgreSQL: which of them go together, and how each is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rota._core.failure import storable
from rota._core.fingerprint import fingerprint
from rota._core.job import Scope, State
from rota._core.outcome import Transition
from rota.stores.contract import Settled
from rota.stores.postgres.keyring import WAITING


def all_plain(transitions: Sequence[Transition]) -> list[int]:
    """All places, if all are plain completions of different jobs, as nearly always; else none."""
    done = State.COMPLETED
    numbers = {
        transition.job.id.int
        for transition in transitions
        if transition.to is done and transition.failure is None
    }
    return list(range(len(transitions))) if len(numbers) == len(transitions) else []


def sorted_out(
    transitions: Sequence[Transition], answers: Mapping[int, Settled]
) -> tuple[list[int], list[int], bool]:
    """The places of plain completions, those of others, and whether a job stands there twice.

    An old claim and a new one of the same job: one statement can hold one of them.
    """
    plain: list[int] = []
    special: list[int] = []
    seen: set[int] = set()
    twice = False
    for place, transition in enumerate(transitions):
        if place in answers:
            continue
        done = transition.to is State.COMPLETED and transition.failure is None
        if not done and wants_key(transition):
            continue  # the last of all: see _retakes
        number = transition.job.id.int
        if number in seen:
            twice = True
            continue
        seen.add(number)
        (plain if done else special).append(place)
    return plain, special, twice


def wants_key(transition: Transition) -> bool:
    """Whether the job gave its unique key up when it started, and must win it again to wait."""
    job = transition.job
    return (
        transition.to is State.PENDING
        and job.state is State.RUNNING
        and job.unique_key is not None
        and job.unique_scope == Scope.STARTED
    )


def verb_of(transition: Transition) -> str:
    if transition.to in WAITING:
        return "settle_waiting"
    return "settle_dead" if transition.to is State.DEAD else "settle_ended"


def row_of(transition: Transition) -> str:
    """A transition as the JSON object that the settle statements read; results are JSON already."""
    job, failure = transition.job, transition.failure
    fields: dict[str, Any] = {"id": str(job.id), "version": job.version, "state": transition.to.value}
    if transition.attempt is not None:
        fields["attempt"] = transition.attempt
    if transition.run_at is not None:
        fields["run_at"] = transition.run_at.isoformat()
    if transition.reason is not None:
        fields["reason"] = storable(transition.reason)
    if transition.snoozed:
        fields["snoozed"] = True
    if transition.lost:
        fields["lost"] = True
    if transition.cleared:
        fields["cleared"] = True
    if failure is not None:
        fields |= {
            "outcome": transition.verb,
            "error_class": failure.error_class.value,
            "error_type": failure.type,
            "message": failure.message,
            "stack": failure.stack,
        }
        if transition.to is State.DEAD:
            kind = fingerprint(job.task, failure.type, failure.message, failure.stack)
            fields |= {"fingerprint": kind.value, "frame": kind.frame}
    changes = dict(transition.changes or {})
    payload = changes.pop("payload_json", None)
    text = json.dumps(fields | changes)
    if payload is not None:
        text = text[:-1] + f', "payload": {payload}' + "}"
    if transition.result_json is not None:
        text = text[:-1] + f', "result": {transition.result_json}' + "}"
    return text
