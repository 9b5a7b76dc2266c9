"""Which jobs are meant: what every store can be asked for, and what a job must be to match."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from rota._core.job import Job, Json, State
from rota._core.redaction import redacted

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?([0-9]+))?")
LONGEST_NUMBER = 1000
"""Digits, and the exponent, of what is meant as a number: more than that no store can compare."""
LISTED = 4_096
"""Characters of a payload or result that a list shows. Of more, the size is told: 200 of the largest are 50 MB."""
UNFINISHED = (State.PENDING, State.BLOCKED, State.HELD, State.RUNNING)


class ArgumentIs(NamedTuple):
    """An argument of the job, found by the names on the way to it, has this value.

    On the way, and at its end, a list stands for each of its elements: one that fits is enough.
    """

    path: tuple[str, ...]
    value: str
    """As people write it: what reads as a number, true, false or null means that, and the text alike."""

    @property
    def literals(self) -> tuple[str, ...]:
        """The JSON values that are meant, as JSON."""
        said = self.value
        as_text = json.dumps(said)
        return (said, as_text) if said in ("true", "false", "null") or _comparable(said) else (as_text,)

    @property
    def hidden(self) -> bool:
        """Whether a payload that has it would be shown without it: to find it is to learn what is not shown."""
        values: list[Any] = [exact(literal) for literal in self.literals]
        for name in reversed(self.path):
            values = [{name: value} for value in values]
        return bool(redacted(values) != values)

    def matches(self, payload: Any) -> bool:
        """Whether this payload (read by `exact`) has it."""
        found: list[Any] = [payload]
        for name in self.path:
            found = [one[name] for one in _each(found) if isinstance(one, dict) and name in one]
        meant = [exact(literal) for literal in self.literals]
        return any(_same(one, value) for one in _each(found) for value in meant)


class LeftOut(str):
    """Stands in a listed job for a payload or a result that is too long for a list; reads as an empty one.

    `size` says how many bytes it has.
    """

    __slots__ = ("size",)

    size: int

    @classmethod
    def of(cls, text: str, size: int) -> LeftOut:
        stands = cls(text)
        stands.size = size
        return stands


class JobFilter(NamedTuple):
    """Which jobs to list; every field narrows. Newest first; page on with `before`."""

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None
    tenant: str | None = None
    subject: str | None = None
    external_id: str | None = None
    key: str | None = None
    correlation_id: str | None = None
    parent_id: UUID | None = None
    session_id: UUID | None = None
    tag: str | None = None
    before: UUID | None = None
    oldest_first: bool = False
    limit: int = 50
    ids: tuple[UUID, ...] = ()
    """These jobs only (empty: any)."""
    worker: str | None = None
    """The host of the worker that has it or had it last, or `host:pid`, of sessions that are still known."""
    error: str | None = None
    """How an attempt failed that it has not got over: a class (`retryable`), or a type with or without its module."""
    category: str | None = None
    args: tuple[ArgumentIs, ...] = ()
    """Arguments that it must have, all of them."""
    created_from: datetime | None = None
    created_until: datetime | None = None
    """Made before this moment."""
    finished_from: datetime | None = None
    finished_until: datetime | None = None
    """Ended before this moment."""
    priority_from: int | None = None
    priority_to: int | None = None
    """At most this priority: this urgent or more."""
    attempt_from: int | None = None
    """Begun so often at least, as `Job.attempt` counts: of a pending job, 1 means that it waits for another attempt."""
    attempt_to: int | None = None
    by_priority: bool = False
    """Most urgent first, then oldest first; unfinished jobs only, for those that have ended are no longer urgent."""
    before_priority: int | None = None
    """With `by_priority`, the priority that the job `before` had: the place of a job that is gone is still a place."""
    brief: bool = False
    """For lists: payloads and results of more than `LISTED` characters are not read; `LeftOut` stands for each."""

    @property
    def walks(self) -> bool:
        """Whether no index answers it, so that jobs are looked at one by one, newest first, until a page is full."""
        asked = (self.worker, self.error, self.category)
        numbers = (self.priority_from, self.priority_to, self.attempt_from, self.attempt_to)
        moments = (self.created_from, self.created_until, self.finished_from, self.finished_until)
        return bool(self.args) or any(one is not None for one in (*asked, *numbers, *moments))

    @property
    def meant_states(self) -> tuple[State, ...] | None:
        """The states that can match; None: all of them; empty: none."""
        if not self.by_priority:
            return self.states or None
        return tuple(state for state in UNFINISHED if not self.states or state in self.states)


def shortened(job: Job) -> Job:
    """A job as brief lists have it."""
    payload, result = job.payload_json, job.result_json
    if len(payload) > LISTED:
        job = job._replace(payload_json=LeftOut.of("{}", len(payload.encode())))
    if result is not None and len(result) > LISTED:
        job = job._replace(result_json=LeftOut.of("null", len(result.encode())))
    return job


def type_fits(error_type: str, asked: str) -> bool:
    """Whether an error's type is the one that was asked for, with or without its module."""
    return error_type == asked or error_type.endswith(f".{asked}")


def exact(text: str) -> Any:
    """JSON with numbers as exact as they are written."""
    return json.loads(text, parse_float=Decimal)


def _comparable(text: str) -> bool:
    number = NUMBER.fullmatch(text)
    if number is None or len(text) > LONGEST_NUMBER:
        return False
    return number[4] is None or int(number[4]) <= LONGEST_NUMBER


def _each(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _same(one: Any, other: Json | Decimal) -> bool:
    """Equal as JSON: true is not 1."""
    kinds = [
        bool if isinstance(value, bool) else Decimal if _number(value) else type(value)
        for value in (one, other)
    ]
    return kinds[0] is kinds[1] and bool(one == other)


def _number(value: Any) -> bool:
    return isinstance(value, (int, Decimal))
