"""Jobs as lines of JSON, from one store to another: how a line is written, and what one that is read must be. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from rota._core.durations import seconds
from rota._core.job import Job, NewJob, Scope, State
from rota._core.payload import LIMIT_BYTES, problem
from rota._core.priority import checked
from rota._core.redaction import for_people, redacted_text
from rota.errors import RotaError
from rota.options import attempts as attempts_read
from rota.options import moment, name, text
from rota.options import tags as tags_read

if TYPE_CHECKING:
    from rota.stores.contract import Attempt

FORMAT = "rota.job/1"
TEXTS = (
    "tenant",
    "subject",
    "external_id",
    "key",
    "gate",
    "correlation_id",
    "created_by",
    "category",
    "payload_version",
)
STAYS = {
    State.RUNNING: "running: a worker has them where they were exported; export them again when they wait",
    State.BLOCKED: "blocked: they wait for other jobs, which only their own store knows",
    State.DEAD: "dead: retry or reprocess them where they died (`rota jobs retry`, `rota dlq`), then export what waits",
    State.COMPLETED: "completed: there is nothing left to run",
    State.PARTIAL: "partial: they have ended; there is nothing left to run",
    State.CANCELLED: "cancelled: retry them where they were cancelled, then export what waits",
}
"""What is not imported, and why. Only what waits or is held is work that another store can take over."""
PAST = "past their deadline: they must not start any more"
AHEAD = timedelta(minutes=10)
"""So far a clock may have been ahead where the job was made."""
DELETED = "deleted here by somebody: an id is not used again"


class LineWrong(RotaError, ValueError):
    """A line that is no exported job, or one that no store can take."""


class Stays(NamedTuple):
    """A job that is not imported, by the rule."""

    id: UUID
    why: str


def written(job: Job, attempts: Sequence[Attempt], *, reveal: bool) -> str:
    """One line: all that is known of the job. What is hidden from most is hidden in it, unless it is revealed."""
    shown = job if reveal else for_people(job)
    fields = shown._asdict()
    texts = {field: fields.pop(f"{field}_json") for field in ("payload", "result", "headers")}
    line: dict[str, Any] = {"format": FORMAT, **fields, "state": job.state.value, "hidden": shown != job}
    line["attempts"] = [_attempt(one, reveal=reveal) for one in attempts]
    told = json.dumps(line, ensure_ascii=False, default=_plain)
    # As stored, digit for digit: reading and writing numbers again could change them.
    stored = "".join(f', "{field}": {"null" if value is None else value}' for field, value in texts.items())
    return f"{told[:-1]}{stored}}}"


def _attempt(seen: Attempt, *, reveal: bool) -> dict[str, Any]:
    fields = seen._asdict()
    del fields["job_id"]
    if not reveal:
        hide = {field: redacted_text(fields[field]) for field in ("message", "stack") if fields[field]}
        fields |= hide
    return fields


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def read(line: str, now: datetime, *, payload_limit: int = LIMIT_BYTES) -> NewJob | Stays:
    """The job that a line tells of, as it waited there; or why it stays there. `LineWrong` for any other line."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineWrong(f"it is not JSON ({error}). Give a file that `rota export` has written.") from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise LineWrong(
            f'it has no "format": "{FORMAT}", so it is no job. Give a file that `rota export` has written.'
        )
    if told.get("hidden"):
        raise LineWrong(
            "its secrets are hidden (***), and it would run without them. Export it again with --reveal."
        )
    try:
        return _job(told, now, payload_limit)
    except KeyError as error:
        raise LineWrong(f"it has no {error.args[0]!r}. Export it again; every field is needed.") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise LineWrong(f"{error}") from error


def _job(told: dict[str, Any], now: datetime, payload_limit: int) -> NewJob | Stays:
    job_id, state = _own_id(told, now), _state(told)
    if state in STAYS:
        return Stays(job_id, STAYS[state])
    deadline = _moment(told, "deadline")
    if deadline is not None and deadline <= now:
        return Stays(job_id, PAST)
    payload, headers, timeout = told["payload"], told.get("headers"), told.get("timeout")
    if not isinstance(payload, dict):
        raise TypeError(f"payload {payload!r} is not an object of arguments by name.")
    if headers is not None and not isinstance(headers, dict):
        raise TypeError(f"headers {headers!r} are not an object.")
    scope = _scope(told)
    unique = (
        told.get("unique_key") if scope is not Scope.WINDOW else None
    )  # how long it still counts is not told
    begun = told["attempt"]
    if isinstance(begun, bool) or not isinstance(begun, int) or begun < 0:
        raise ValueError(f"attempt {begun!r} is not a whole number from 0.")
    texts: dict[str, Any] = {
        field: None if told.get(field) is None else text(field, told[field]) for field in TEXTS
    }
    return NewJob(
        job_id,
        name("task", told["task"]),
        _stored("payload", payload, payload_limit),
        queue=name("queue", told["queue"]),
        priority=checked(told["priority"]),
        max_attempts=max(1, attempts_read(told["max_attempts"]) - begun),
        run_at=_moment(told, "run_at") or now,
        deadline_in=None if deadline is None else (deadline - now).total_seconds(),
        timeout=None if timeout is None else seconds(timeout, "timeout"),
        unique_key=None if unique is None else text("unique_key", unique),
        unique_scope=Scope.STARTED if unique is None else scope,
        parent_id=None if told.get("parent_id") is None else _identity(told, "parent_id"),
        tags=tags_read(told.get("tags") or ()),
        headers_json=None if headers is None else _stored("headers", headers, LIMIT_BYTES),
        held=state is State.HELD,
        **texts,
    )


def _stored(field: str, value: dict[str, Any], limit: int) -> str:
    """As the store keeps it, or why no store can."""
    stored = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    trouble = problem(stored, limit=limit)
    if trouble is not None:
        raise ValueError(f"its {field} cannot be stored: {trouble}.")
    return stored


def _own_id(told: dict[str, Any], now: datetime) -> UUID:
    """An id that Rota could have made by now: lists and operations go by the time that is in it."""
    job_id = _identity(told, "id")
    if job_id.version != 7 or (job_id.int >> 80) / 1000 > (now + AHEAD).timestamp():
        raise ValueError(
            f"id {told['id']!r} is none that Rota made: it has no time of the past in it (UUIDv7)."
        )
    return job_id


def _identity(told: dict[str, Any], field: str) -> UUID:
    try:
        return UUID(_text(told, field))
    except ValueError as error:
        raise ValueError(f"{field} {told[field]!r} is not a job's id, which is a UUID.") from error


def _scope(told: dict[str, Any]) -> Scope:
    scope = told.get("unique_scope")
    if scope is not None and scope not in list(Scope):
        raise ValueError(f"unique_scope {scope!r} is none of {', '.join(Scope)}.")
    return Scope.STARTED if scope is None else Scope(scope)


def _state(told: dict[str, Any]) -> State:
    if told["state"] not in list(State):
        raise ValueError(f"state {told['state']!r} is none of {', '.join(State)}.")
    return State(told["state"])


def _text(told: dict[str, Any], field: str) -> str:
    if not isinstance(told[field], str):
        raise TypeError(f"{field} {told[field]!r} is not a text.")
    return str(told[field])


def _moment(told: dict[str, Any], field: str) -> datetime | None:
    if told.get(field) is None:
        return None
    try:
        return moment(field, datetime.fromisoformat(_text(told, field)))
    except ValueError as error:
        raise ValueError(f"{field} {told[field]!r} is not a moment with a time zone.") from error
