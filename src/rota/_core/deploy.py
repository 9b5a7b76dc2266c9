"""What a deploy would meet: the code's registry beside what the store holds. Pure: values in, findings out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from rota._core.queue import Queue
from rota._core.schedule import ScheduleRecord, ScheduleSpec
from rota._core.task_spec import TaskSpec

SHOWN = 3
"""So many jobs are named as examples."""


class WaitingJob(NamedTuple):
    """An unfinished job's payload, to be read by the new code."""

    id: UUID
    payload_json: str


class Waiting(NamedTuple):
    """The unfinished jobs of one task and payload version."""

    task: str
    payload_version: str | None
    jobs: int
    sample: tuple[WaitingJob, ...] = ()


class Release(NamedTuple):
    """The code that is about to be deployed."""

    tasks: Mapping[str, TaskSpec]
    schedules: Sequence[ScheduleSpec]
    read: Callable[[str, str], str | None]
    """(task, payload) -> why the task's own reader refuses it, or None when it can be read."""
    code_version: str | None = None
    queues: Sequence[Queue] = ()
    ticking: bool = True
    """False: the settings say that this code's schedules are not run."""


class Known(NamedTuple):
    """What the store holds now. None: it could not be read, which is not the same as nothing."""

    pending_migrations: Sequence[str] | None = ()
    tasks: Sequence[TaskSpec] | None = ()
    waiting: Sequence[Waiting] | None = ()
    schedules: Sequence[ScheduleRecord] | None = ()
    why_not: str = ""
    """Why something could not be read."""


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class Finding(NamedTuple):
    """One line of `rota deploy check`."""

    level: Level
    kind: str
    """migration, task, payload, schedule or registry."""
    subject: str
    what: str
    fix: str = ""


def compare(release: Release, known: Known) -> list[Finding]:
    """Everything that the deploy of this code would break or change, the worst first."""
    found = [
        *_migrations(known),
        *_tasks(release, known),
        *_payloads(release, known),
        *_schedules(release, known),
    ]
    return sorted(found, key=lambda finding: _ORDER.index(finding.level))


_ORDER = (Level.BAD, Level.WARN, Level.OK)


def _migrations(known: Known) -> Iterator[Finding]:
    if known.pending_migrations is None:
        yield _unknown("migration", "schema", known.why_not)
        return
    for name in known.pending_migrations:
        yield Finding(
            Level.BAD,
            "migration",
            name,
            "is pending in this database",
            "Run `rota migrate` before the new code starts.",
        )
    if not known.pending_migrations:
        yield Finding(Level.OK, "migration", "schema", "is up to date")


def _tasks(release: Release, known: Known) -> Iterator[Finding]:
    if known.waiting is None or known.tasks is None:
        yield _unknown("task", "waiting jobs", known.why_not)
        return
    waiting: dict[str, int] = defaultdict(int)
    for group in known.waiting:
        waiting[group.task] += group.jobs
    gone = sorted(name for name in waiting if name not in release.tasks)
    for name in gone:
        yield Finding(
            Level.BAD,
            "task",
            name,
            f"is not in this code, and {_many(waiting[name], 'job')} of it {'waits' if waiting[name] == 1 else 'wait'}",
            f"Keep the task until they are done, or `rota jobs cancel --task {name}`.",
        )
    for before in known.tasks:
        now = release.tasks.get(before.name)
        if now is None:
            if before.name not in waiting:
                yield Finding(Level.OK, "task", before.name, "is not in this code, and no job of it waits")
        elif now.queue != before.queue and waiting.get(now.name):
            yield Finding(
                Level.WARN,
                "task",
                now.name,
                f"moves from queue {before.queue!r} to {now.queue!r}; jobs that wait already stay in {before.queue!r}",
                f"Let a worker serve {before.queue!r} until they are done.",
            )
    known_names = {spec.name for spec in known.tasks}
    for name in sorted(set(release.tasks) - known_names):
        yield Finding(Level.OK, "task", name, "is new")


def _payloads(release: Release, known: Known) -> Iterator[Finding]:
    """What waits, read by the new code's own readers: a sample of each task and payload version."""
    looked = 0
    refused = False
    for group in known.waiting or ():
        if group.task not in release.tasks:
            continue
        looked += len(group.sample)
        troubles = [
            (job.id, trouble)
            for job in group.sample
            if (trouble := release.read(group.task, job.payload_json)) is not None
        ]
        version = "" if group.payload_version is None else f" of version {group.payload_version}"
        if troubles:
            refused = True
            shown = ", ".join(str(job_id) for job_id, _ in troubles[:SHOWN])
            yield Finding(
                Level.BAD,
                "payload",
                group.task,
                f"cannot read {len(troubles)} of {len(group.sample)} waiting payloads{version} that were tried "
                f"({group.jobs:,} wait): {troubles[0][1]} (jobs {shown})",
                "Let the task read both forms (a default for a new parameter, both names of a renamed one), or let the "
                "old code finish these first.",
            )
        elif not group.sample:
            yield _unknown(
                "payload", group.task, f"{_many(group.jobs, 'payload')}{version} wait and none could be tried"
            )
    if looked and not refused:
        yield Finding(
            Level.OK, "payload", "payloads", f"{_many(looked, 'waiting payload')} tried; this code reads them"
        )


def _schedules(release: Release, known: Known) -> Iterator[Finding]:
    if known.schedules is None:
        yield _unknown("schedule", "schedules", known.why_not)
        return
    declared = {spec.name: spec for spec in release.schedules} if release.ticking else {}
    stored = {record.spec.name: record for record in known.schedules}
    for name in sorted(stored.keys() - declared.keys()):
        yield Finding(
            Level.WARN,
            "schedule",
            name,
            "is not in this code: it stops ticking when the old workers are gone",
            f"If that is meant, `rota schedules delete {name}` afterwards.",
        )
    for name in sorted(declared.keys() & stored.keys()):
        before, after = stored[name].spec, declared[name]
        changes = [field for field in _COMPARED if _value(before, field) != _value(after, field)]
        if not changes:
            continue
        told = ", ".join(_told(before, after, field) for field in changes)
        edited = [field for field in changes if getattr(stored[name].edits, field, None) is not None]
        kept = f"; an operator set its {', '.join(edited)}, which stays" if edited else ""
        yield Finding(
            Level.WARN,
            "schedule",
            name,
            f"changes {told}{kept}",
            f"`rota schedules reset {name}` lets the code decide again." if edited else "",
        )
    for name in sorted(declared.keys() - stored.keys()):
        yield Finding(Level.OK, "schedule", name, f"is new ({declared[name].timing}, {declared[name].tz})")


_COMPARED = (
    "task",
    "timing",
    "tz",
    "template_json",
    "jitter",
    "overlap",
    "misfire",
    "cap",
    "grace",
    "windows",
)


def _value(spec: ScheduleSpec, field: str) -> object:
    value = getattr(spec, field)
    return json.loads(value) if field == "template_json" else value


def _told(before: ScheduleSpec, after: ScheduleSpec, field: str) -> str:
    if field == "template_json":
        return "the job that it makes"
    if field == "windows":
        return "its windows"
    return f"{field} from {getattr(before, field)} to {getattr(after, field)}"


def _unknown(kind: str, subject: str, why: str) -> Finding:
    """What could not be read is a problem: nobody knows whether it is well."""
    return Finding(Level.BAD, kind, subject, f"unknown: {why}", "Repair that, and check again.")


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def worst(found: Iterable[Finding]) -> Level:
    """The level of the whole."""
    return min((finding.level for finding in found), key=_ORDER.index, default=Level.OK)
