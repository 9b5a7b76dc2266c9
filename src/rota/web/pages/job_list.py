"""What a list of jobs is made of: the columns that may be chosen, its rows, and where its pages begin and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from rota._core.filtering import PRIORITIES, FilterError, split
from rota._core.ids import parse_id
from rota._core.job import Job, State
from rota._core.job_filter import JobFilter, LeftOut, shortened
from rota._core.redaction import for_people
from rota._core.review import Review
from rota.web.pages.words import line, size
from rota.web.paging import BadCursor

COLUMNS = {
    "state": "State",
    "task": "Task",
    "args": "Arguments",
    "queue": "Queue",
    "attempt": "Attempt",
    "wait": "Wait",
    "run": "Run",
    "worker": "Worker",
    "id": "Id",
    "priority": "Priority",
    "tenant": "Tenant",
    "subject": "Subject",
    "tags": "Tags",
    "category": "Category",
    "key": "Key",
    "due": "Due",
    "finished": "Finished",
    "error": "Error",
    "creator": "Created by",
    "age": "Age",
}
"""What a list may show of a job, by the name that stands in the address."""
USUAL = ("state", "task", "args", "queue", "attempt", "wait", "run", "worker", "age")
NUMBERS = frozenset({"attempt", "wait", "run", "age", "priority"})
SHORT_ARGS = 90
ROOM = 2


class Offer(NamedTuple):
    """Something that people may do to a job as it is."""

    verb: str
    word: str
    icon: str
    ask: str | None = None


RETRY = Offer("retry", "Retry", "retry")
NOW = Offer("retry", "Run now", "play")
HOLD = Offer("hold", "Hold", "hold")
RELEASE = Offer("release", "Release", "play")
FORCE = Offer(
    "force",
    "Cancel by force",
    "stop",
    "Cancel it without its worker? What that still does is not taken back; only its answer is refused.",
)
CANCEL = Offer("cancel", "Cancel", "stop", "Cancel this job? A worker that runs it is asked to stop it.")


def offered(job: Job, now: datetime) -> tuple[Offer, ...]:
    """What an operator may do to it, most likely first."""
    match job.state:
        case State.PENDING:
            later = job.run_at > now or job.parked is not None
            return (NOW, HOLD, CANCEL) if later else (HOLD, CANCEL)
        case State.HELD:
            return (RELEASE, CANCEL)
        case State.BLOCKED:
            return (CANCEL,)
        case State.RUNNING:
            return (CANCEL,) if job.cancel_requested_at is None else (FORCE,)
        case State.DEAD | State.CANCELLED:
            return () if job.review in (Review.REPROCESSING, Review.RESOLVED) else (RETRY,)
    return ()


def removable(job: Job) -> bool:
    """Whether a manager may delete it as it is."""
    return job.state is not State.RUNNING and job.review != Review.REPROCESSING


class Row(NamedTuple):
    """One job of a list, without what is sensitive."""

    job: Job
    label: str
    args: str
    wait: float | None
    """Seconds from being due to being started, or until now; None: it is not due."""
    run: float | None
    worker: str | None
    offers: tuple[Offer, ...]

    @property
    def asks_why(self) -> bool:
        """Whether somebody may wonder why it does not run."""
        return self.job.state in (State.PENDING, State.BLOCKED, State.HELD)


def row(job: Job, now: datetime, workers: Mapping[UUID, str]) -> Row:
    return Row(
        listed(job),
        job.label(now),
        short_args(job),
        waited(job, now),
        ran(job, now),
        None if job.session_id is None else workers.get(job.session_id, "gone"),
        _foremost(offered(job, now)),
    )


def _foremost(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """The two that a row has room for; the job's page has all."""
    return offers if len(offers) <= ROOM else (offers[0], offers[-1])


def listed(job: Job) -> Job:
    """The job as a list shows it: its payload and its result are not in it."""
    return for_people(job._replace(payload_json="{}", result_json=None))


def short_args(job: Job) -> str:
    payload = shortened(job).payload_json
    if isinstance(payload, LeftOut):
        return f"{size(payload.size)} of arguments"
    return line(for_people(job._replace(result_json=None)).payload, SHORT_ARGS)


def waited(job: Job, now: datetime) -> float | None:
    """How long its latest attempt was due before it began, or has been due until now."""
    if job.state in (State.PENDING, State.BLOCKED):
        until = now
    elif job.claimed_at is not None:
        until = job.claimed_at
    else:
        return None
    passed = (until - max(job.run_at, job.created_at)).total_seconds()
    return passed if passed >= 0 else None


def ran(job: Job, now: datetime) -> float | None:
    """How long its latest attempt took, or takes until now."""
    if job.claimed_at is None or job.state in (State.PENDING, State.BLOCKED, State.HELD):
        return None
    until = now if job.state is State.RUNNING else job.finished_at
    return None if until is None else max((until - job.claimed_at).total_seconds(), 0.0)


def columns(said: Sequence[str]) -> tuple[str, ...]:
    """The columns that were chosen, in the order of all; the usual ones where nothing sensible was."""
    wanted = {name for one in said for name in one.split(",")}
    return tuple(name for name in COLUMNS if name in wanted) or USUAL


# Filters, as words: what a click changes.


def words_of(text: str) -> list[str]:
    """The words of a filter; none where it cannot be read."""
    try:
        return split(text)
    except FilterError:
        return []


def with_word(text: str, field: str, value: str | None) -> str:
    """The filter with this word instead of those of its field; None: without them."""
    kept = [word for word in words_of(text) if not word.startswith(f"{field}:")]
    return " ".join([*([] if value is None else [f"{field}:{value}"]), *kept])


def only_id(text: str) -> UUID | None:
    """The job that is meant where an id is all that was typed."""
    try:
        return parse_id(text.strip()) if text.strip() else None
    except ValueError:
        return None


def about_all(which: JobFilter) -> bool:
    """Whether the filter narrows by nothing but state, queue and task: what counts of jobs are kept by."""
    plain = which._replace(
        states=(),
        queue=None,
        task=None,
        before=None,
        before_priority=None,
        by_priority=False,
        oldest_first=False,
    )
    return plain == JobFilter(limit=which.limit, brief=which.brief)


# Pages: below a job, or above one.


class Place(NamedTuple):
    """Where a page of the list is."""

    below: str | None = None
    """It goes on after this job: its id; by priority, with the priority before it."""
    above: str | None = None
    """It ends before this job."""


def narrowed(which: JobFilter, place: Place) -> JobFilter:
    """The filter that finds this page; what lies above is found backwards."""
    if place.above is not None and not which.by_priority:
        return which._replace(before=_uuid(place.above), oldest_first=not which.oldest_first)
    if place.below is None:
        return which
    if not which.by_priority:
        return which._replace(before=_uuid(place.below))
    priority, _, job_id = place.below.partition("-")
    if not (priority.isascii() and priority.isdigit() and int(priority) in PRIORITIES):
        raise BadCursor
    return which._replace(before_priority=int(priority), before=_uuid(job_id))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadCursor from None


def place_of(job: Job, which: JobFilter) -> str:
    return f"{job.priority}-{job.id}" if which.by_priority else str(job.id)


def workers_by_id(sessions: Iterable[Any]) -> dict[UUID, str]:
    """What people call the workers that are still known."""
    return {session.id: f"{session.host}:{session.pid}" for session in sessions}
