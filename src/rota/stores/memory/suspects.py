"""Crashes, the tasks that are parked for them, and which code is the newest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rota._core.actions import Audit
from rota._core.failure import MESSAGE_LIMIT, clip, storable
from rota._core.job import State
from rota._core.suspects import Crash, ParkedTask, too_many
from rota._core.task_spec import TaskSpec
from rota.stores.memory.book import Book
from rota.stores.memory.sessions import living

AT_TASK = "task"


def note_crash(book: Book, crash: Crash, limit: int, within: float, now: datetime) -> ParkedTask | None:
    """Count a crash; the task, if that parked it."""
    blame = book.blame
    moment = crash.at or now
    noted = crash._replace(at=moment, what=clip(storable(crash.what), MESSAGE_LIMIT))
    blame.crashes.setdefault((crash.job_id, crash.version), noted)
    name = (crash.task, crash.code_version)
    since = moment - timedelta(seconds=within)
    released = blame.released.get(name)
    guilty = [
        other
        for other in blame.crashes.values()
        if (other.task, other.code_version) == name
        and other.at is not None
        and other.at > since
        and (released is None or other.at > released)
    ]
    if name in blame.parked or not too_many(guilty, limit):
        return None
    jobs = len({other.job_id for other in guilty})
    blame.parked[name] = ParkedTask(crash.task, crash.code_version, jobs, noted.what, moment)
    blame.released.pop(name, None)
    return blame.parked[name]


def parked_tasks(book: Book) -> list[ParkedTask]:
    """The tasks that are parked now."""
    return sorted(book.blame.parked.values(), key=lambda row: (row.task, row.parked_at, row.code_version))


def release(book: Book, task: str, audit: Audit, code_version: str | None, now: datetime) -> int | None:
    """Park a task no longer; how many jobs that frees, or None when it was not parked."""
    names = [name for name in book.blame.parked if name[0] == task and code_version in (None, name[1])]
    if not names:
        return None
    for name in names:
        del book.blame.parked[name]
        book.blame.released[name] = now
    book.tell(audit, now)
    return _free(book, {task}, now)


def unpark(book: Book, now: datetime) -> int:
    """Free what was parked by workers that had not yet heard of a release."""
    kept = {task for task, _ in book.blame.parked}
    return _free(book, {task for task, _ in book.blame.released} - kept, now)


def forget(book: Book, before: datetime) -> None:
    """Drop crashes and releases that are older than that."""
    blame = book.blame
    for key in [key for key, crash in blame.crashes.items() if crash.at is not None and crash.at < before]:
        del blame.crashes[key]
    for name in [name for name, at in blame.released.items() if at < before]:
        del blame.released[name]


def publish(book: Book, tasks: Sequence[TaskSpec], now: datetime) -> None:
    """Make tasks known; the newest code of each wins, unless no worker of it lives any more."""
    seen, alive = dict(book.blame.code_versions), _code_versions_at_work(book, now)
    for task in tasks:
        known = book.tasks.get(task.name)
        if known is None or _newer(task.code_version, known.code_version, seen, alive):
            book.tasks[task.name] = task
        if task.code_version is not None:
            book.blame.code_versions.setdefault(task.code_version, now)


def _newer(given: str | None, known: str | None, seen: dict[str, datetime], alive: set[str]) -> bool:
    if given is None or known is None or given == known or known not in alive:
        return True
    return given not in seen or known not in seen or seen[given] >= seen[known]


def _code_versions_at_work(book: Book, now: datetime) -> set[str]:
    return {
        record.code_version
        for record in book.sessions.values()
        if record.code_version is not None and living(record, now)
    }


def _free(book: Book, tasks: set[str], now: datetime) -> int:
    freed = [job for job in book.in_state(State.PENDING) if job.parked == AT_TASK and job.task in tasks]
    for job in freed:
        book.hint_work(book.put(job._replace(parked=None, reason=None, updated_at=now)))
    return len(freed)
