"""What deserves an operator's eye, from one picture of the whole: the worst first, each with what to do next. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from rota._core.job import State
from rota._core.lengths import last, percent

if TYPE_CHECKING:
    from rota.admin.numbers import QueueView
    from rota.admin.picture import Picture

MANY_WAIT = 500
"""So many due jobs are a backlog once the oldest has waited `FIVE_MINUTES`."""
FIVE_MINUTES = timedelta(minutes=5)
TOO_OLD = timedelta(hours=1)
ERRORS = 0.1
ENOUGH = 10
"""Fewer attempts prove nothing about an error rate."""
FULL = 0.9
FLOOD = 0.8
"""A tenant with this share of what waits in a queue that is behind keeps the others waiting."""


class Alert(NamedTuple):
    """One thing that is not well."""

    bad: bool
    """False: a warning."""
    about: str
    """What it is about, as `queue:mail`, `task:charge`, `lane:fast`, `job:ID`, `workers` or `system`."""
    what: str
    do: str
    """What to look at or type next."""


def alerts(picture: Picture) -> list[Alert]:
    """All that is not well, the bad before the warnings. What could not be read raises no alert of its own."""
    found = [
        *_workers(picture),
        *_parked(picture),
        *_queues(picture),
        *_errors(picture),
        *_unserved(picture),
        *_lanes(picture),
        *_overdue(picture),
    ]
    return sorted(found, key=lambda alert: not alert.bad)


def _workers(picture: Picture) -> Iterator[Alert]:
    waiting = picture.seen.jobs(State.PENDING)
    if picture.seen.workers is not None and not picture.seen.workers and waiting:
        yield Alert(
            True,
            "workers",
            f"no worker is alive, and {_wait(waiting)}",
            "Start one: rota worker APP; `rota doctor` if it does not stay up",
        )


def _parked(picture: Picture) -> Iterator[Alert]:
    for row in picture.parked or ():
        yield Alert(
            True,
            f"task:{row.task}",
            f"task {row.task} is parked: {row.crashes} of its jobs killed their process ({row.what})",
            f"Deploy a repaired version, or let it run again: rota tasks release {shlex.quote(row.task)}",
        )


def _queues(picture: Picture) -> Iterator[Alert]:
    for view in picture.seen.queues():
        about, waited = f"queue:{view.queue}", view.oldest_wait
        if waited is None and not view.late:
            continue  # nothing is due
        if view.pending and view.slots == 0 and picture.seen.workers:
            yield Alert(
                True,
                about,
                f"queue {view.queue}: {_wait(view.pending or 0)}, and no living worker serves it",
                f"Start one that does: rota worker APP --queue {shlex.quote(view.queue)}",
            )
        elif view.late:
            yield _slow(picture, view, True, _late(view))
        elif waited is not None and waited > TOO_OLD:
            said = f"queue {view.queue}: the oldest due job waits {_coarse(waited)}"
            yield _slow(picture, view, False, said)
        elif waited is not None and waited > FIVE_MINUTES and (view.pending or 0) > MANY_WAIT:
            said = f"queue {view.queue}: {_wait(view.pending or 0)}, the oldest for {_coarse(waited)}"
            yield _slow(picture, view, False, said)


def _slow(picture: Picture, view: QueueView, bad: bool, what: str) -> Alert:
    """A queue that does not keep up: because one tenant floods it, or because its work is slow or its slots are few."""
    flood = _flood(picture, view)
    if flood is None:
        slots = f"rota worker APP --lane {shlex.quote(f'{view.queue}=20:{view.queue}')}"
        do = f"See what is slow: rota stats --by task; give it more slots: {slots}"
        return Alert(bad, f"queue:{view.queue}", what, do)
    tenant, share = flood
    if tenant is None:
        return Alert(
            bad, f"queue:{view.queue}", f"{what}; {percent(share)} of it has no tenant", "rota queues"
        )
    whose = f"--tenant {shlex.quote(tenant)} --queue {shlex.quote(view.queue)}"
    do = f"Set some of it aside: rota jobs hold {whose} --state pending --dry-run"
    return Alert(bad, f"queue:{view.queue}", f"{what}; {percent(share)} of it is tenant {tenant}'s", do)


def _late(view: QueueView) -> str:
    assert view.target is not None
    if view.oldest_wait is not None and view.oldest_wait.total_seconds() > view.target:
        waits = f"oldest waits {_coarse(view.oldest_wait)}"
    else:
        wait = view.done.wait(0.95) if view.done is not None else None
        waits = f"one in twenty waited {_coarse(timedelta(seconds=wait or 0))}"
    return f"queue {view.queue} is behind its target of {view.target:g}s: {waits}"


def _flood(picture: Picture, view: QueueView) -> tuple[str | None, float] | None:
    """The tenant whose jobs are nearly all that waits there, beside others'; and its share."""
    tenants: Mapping[str | None, int] = picture.tenants.get(view.queue, {})
    whole = sum(tenants.values())
    if len(tenants) < 2 or not whole:
        return None
    tenant, jobs = Counter(tenants).most_common(1)[0]
    return (tenant, jobs / whole) if jobs / whole >= FLOOD else None


def _errors(picture: Picture) -> Iterator[Alert]:
    if picture.seen.figures is None:
        return
    for task, summary in picture.seen.figures.by_task().items():
        rate, named = summary.error_rate, shlex.quote(task)
        if rate is not None and rate > ERRORS and summary.attempts >= ENOUGH:
            yield Alert(
                True,
                f"task:{task}",
                f"task {task}: {percent(rate)} of {summary.attempts:,} attempts failed in the last "
                f"{last(picture.seen.since)}",
                # All of them: these may be acknowledged by now, and a list that is empty explains nothing.
                f"See why: rota failures list --task {named} --all; watch it: rota tail --task {named}",
            )


def _unserved(picture: Picture) -> Iterator[Alert]:
    if not picture.seen.workers or picture.seen.counts is None:
        return
    known = {task for worker in picture.seen.workers if not worker.leaving for task in worker.tasks}
    waiting: Counter[str] = Counter()
    for count in picture.seen.counts:
        due = count.oldest is not None and count.oldest <= picture.seen.now
        if count.state is State.PENDING and due and count.task not in known:
            waiting[count.task] += count.jobs
    for task, jobs in sorted(waiting.items()):
        yield Alert(
            False,
            f"task:{task}",
            f"task {task}: {_wait(jobs)}, and no living worker knows it",
            f"Deploy the code that has it, or take them off: rota jobs cancel --task {shlex.quote(task)} --dry-run",
        )


def _lanes(picture: Picture) -> Iterator[Alert]:
    for lane in picture.seen.lanes or ():
        if lane.used is not None and lane.used > FULL:
            yield Alert(
                False,
                f"lane:{lane.lane}",
                f"lane {lane.lane} is {percent(lane.used)} full",
                "Give it more slots, or start another worker; what fills it: rota jobs list state:running",
            )


def _overdue(picture: Picture) -> Iterator[Alert]:
    for work in picture.running or ():
        ran = (picture.seen.now - work.claimed_at).total_seconds()
        if work.timeout is not None and ran > work.timeout + 60.0:
            yield Alert(
                False,
                f"job:{work.id}",
                f"job {work.id} ({work.task}) runs for {_coarse(timedelta(seconds=ran))}, "
                f"and its timeout is {work.timeout:g} s",
                f"Its worker should have ended it: rota jobs why {work.id}",
            )


def _wait(jobs: int) -> str:
    return "1 job waits" if jobs == 1 else f"{jobs:,} jobs wait"


def _coarse(length: timedelta) -> str:
    """A length of time in one unit, as people say it."""
    seconds = round(length.total_seconds())
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
