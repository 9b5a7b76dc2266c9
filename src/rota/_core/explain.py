"""Why a job is not running, in words, and what would unblock it. Pure: facts in, an explanation out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from rota._core.actions import Verb
from rota._core.explanation import Cause, Explanation, Facts, Obstacle
from rota._core.job import Job, State
from rota._core.review import Review
from rota._core.suspects import ParkedTask, suspect
from rota._core.task_spec import TaskSpec

NAMED = 3
"""So many workers, queues or tasks are named; the rest are counted."""


def explain(facts: Facts) -> Explanation:
    """Say what keeps a job, the first thing first."""
    first, *others = list(_obstacles(facts))
    return Explanation(facts.job.id, facts.job.state, *first, also=tuple(others))


def _obstacles(facts: Facts) -> Iterator[Obstacle]:
    job = facts.job
    match job.state:
        case State.RUNNING:
            yield _running(facts)
        case State.HELD:
            yield _held(facts)
        case State.BLOCKED:
            yield Obstacle(
                Cause.BLOCKED,
                "It waits for other jobs" + (f" ({job.reason})." if job.reason else "."),
                "It goes on the list by itself when they have completed.",
                f"rota jobs show {job.id}",
            )
        case State.PENDING:
            waits = list(_waits(facts))
            yield from waits or [_due(facts)]
        case _:
            yield _ended(facts)


# While it waits


def _waits(facts: Facts) -> Iterator[Obstacle]:
    """Everything between a pending job and its run, in the order in which it must be overcome."""
    job, now = facts.job, facts.now
    if job.deadline is not None and job.deadline <= now:
        yield Obstacle(
            Cause.EXPIRED,
            f"It had to begin by {_moment(job.deadline)}, and that is past.",
            "The next worker that takes it cancels it. Enqueue it again if it is still wanted.",
            f"rota jobs show {job.id}",
        )
    if job.parked is not None or facts.inside is not None:
        yield _parked(facts)
    elif facts.parked:
        yield _task_parked(facts.parked[-1])
    if job.run_at > now:
        yield _later(facts)
    yield from _nobody(facts)
    if _too_new(job, facts.task):
        assert facts.task is not None
        yield Obstacle(
            Cause.PAYLOAD_TOO_NEW,
            f"Its payload has version {job.payload_version}, and the newest published code of {job.task} reads version "
            f"{facts.task.payload_version}.",
            "Deploy the code that made it, and start workers of it.",
            "rota deploy check",
        )
    if suspect(job):
        yield Obstacle(
            Cause.SUSPECT,
            f"It is a suspect: a worker process died {job.losses} times with it"
            + (f" (last: {job.error_message})" if job.error_message else "")
            + ". So it runs next alone in a child process.",
            "That costs it nothing if it is innocent. If it is known to be harmful, take it off the list:",
            f"rota jobs cancel {job.id}",
        )
    if job.run_at <= now and facts.standing.ahead:
        yield _behind(facts)


def _later(facts: Facts) -> Obstacle:
    job, now = facts.job, facts.now
    when = f"{_moment(job.run_at)} (in {_span(job.run_at - now)})"
    now_please = f"rota jobs retry {job.id}"
    fix = "It runs by itself then; to run it at once:"
    if job.attempt > 0 and job.error_message is not None:
        why = (
            f"Attempt {job.attempt} of {job.max_attempts} failed ({_short(job.error_message)}). "
            f"The next one is due at {when}."
        )
        return Obstacle(Cause.RETRYING, why, fix, now_please)
    if job.snoozes:
        because = f" ({job.reason})" if job.reason else ""
        return Obstacle(
            Cause.SNOOZED, f"Its own code put it off{because}; it is due at {when}.", fix, now_please
        )
    return Obstacle(Cause.SCHEDULED, f"It is scheduled for {when}.", fix, now_please)


def _held(facts: Facts) -> Obstacle:
    job = facts.job
    held = next((done for done in facts.audit if done.action == Verb.HOLD), None)
    if held is None:
        why = "It was stored as held, to wait for somebody's release"
    else:
        why = f"{held.actor} held it" + (f" at {_moment(held.at)}" if held.at else "")
    reason = job.reason or (held.reason if held else None)
    return Obstacle(
        Cause.HELD,
        why + (f": {reason}." if reason else "."),
        "Somebody must release it:",
        f"rota jobs release {job.id}",
    )


def _parked(facts: Facts) -> Obstacle:
    job, inside = facts.job, facts.inside
    if inside is not None:
        since = f" since {_moment(inside.claimed_at)}" if inside.claimed_at else ""
        return Obstacle(
            Cause.GATE,
            f"It may not run at the same time as job {inside.id} ({inside.task}), which is running{since}. "
            f"Both have the serial key {_serial(job)!r}.",
            "It runs when that one has ended. To stop that one:",
            f"rota jobs cancel {inside.id}",
        )
    if job.parked == "gate":
        return Obstacle(
            Cause.GATE,
            f"It waits behind the serial key {_serial(job)!r}, and no job runs with it any more.",
            "A worker puts it back on the list within seconds. If none does, see whether any lives:",
            "rota doctor",
        )
    if job.parked == "task":
        if facts.parked:
            return _task_parked(facts.parked[-1])
        return Obstacle(
            Cause.TASK_PARKED,
            f"It was set aside while its task {job.task} was parked, which it is no longer.",
            "A worker puts it back on the list within seconds. If none does, see whether any lives:",
            "rota doctor",
        )
    return Obstacle(
        Cause.PARKED,
        f"It is parked ({job.parked})" + (f": {_short(job.reason)}." if job.reason else "."),
        "It goes back on the list by itself when that is over; to try it at once:",
        f"rota jobs retry {job.id}",
    )


def _task_parked(parked: ParkedTask) -> Obstacle:
    return Obstacle(
        Cause.TASK_PARKED,
        f"The whole task {parked.task} is parked since {_moment(parked.parked_at)}: {parked.crashes} of its jobs "
        f"killed their process under code version {parked.code_version}, the last one so: {_short(parked.what)}.",
        "Deploy a repaired version, or let its jobs run again:",
        f"rota tasks release {shlex.quote(parked.task)}",
    )


def _nobody(facts: Facts) -> Iterator[Obstacle]:
    """Why no living worker would take it, if none would."""
    job = facts.job
    workers = [worker for worker in facts.workers if not worker.leaving]
    if any(worker.serves(job) for worker in workers):
        return
    if not workers:
        what = "No worker is alive."
        if facts.workers:
            what = f"Every living worker ({_listed(facts.workers)}) was asked to go, and takes no more jobs."
        yield Obstacle(Cause.NO_WORKER, what, "Start one:", "rota worker APP")
        return
    knowing = [worker for worker in workers if job.task in worker.tasks]
    if not knowing:
        known = "was never published" if facts.task is None else f"was published by {_code(facts.task)}"
        yield Obstacle(
            Cause.TASK_UNKNOWN,
            f"None of the {_many(len(workers), 'living worker')} ({_listed(workers)}) knows the task {job.task}; it "
            f"{known}.",
            "Start a worker of the code that has it, and without --tasks or with it named there:",
            "rota worker APP",
        )
        return
    serving = [worker for worker in knowing if worker.queues is None or job.queue in worker.queues]
    if not serving:
        served = sorted({queue for worker in knowing for queue in worker.queues or ()})
        yield Obstacle(
            Cause.QUEUE_UNSERVED,
            f"No living worker that knows {job.task} serves the queue {job.queue!r}; they serve {_listed(served)}.",
            "Start a worker with a lane for it:",
            f"rota worker APP --queue {job.queue}",
        )
        return
    others = sorted({worker.tenant for worker in serving if worker.tenant is not None})
    whose = "no tenant" if job.tenant is None else f"the tenant {job.tenant!r}"
    yield Obstacle(
        Cause.TENANT_UNSERVED,
        f"It belongs to {whose}, and the workers that could run it work only for {_listed(others)}.",
        "Start a worker for it:" if job.tenant is not None else "Start a worker without --tenant:",
        "rota worker APP" + (f" --tenant {job.tenant}" if job.tenant is not None else ""),
    )


def _behind(facts: Facts) -> Obstacle:
    job, standing = facts.job, facts.standing
    number = f"{standing.ahead:,}" + ("+" if standing.capped else "")
    before = f"{number} due {'job is' if number == '1' else 'jobs are'} before it in the queue {job.queue!r}"
    since = f"It waits since {_moment(job.run_at)}{_late(facts)}."
    if not any(worker.serves(job) for worker in facts.workers if not worker.leaving):
        # Its turn never comes so: what was said of workers must be done first.
        return Obstacle(
            Cause.BEHIND, f"{before}. {since}", "Its turn comes after them, once a worker may run it."
        )
    slots = sum(worker.slots_for(job.queue) for worker in facts.workers if worker.serves(job))
    return Obstacle(
        Cause.BEHIND,
        f"{before}, and {_many(slots, 'slot')} of living workers may run them. {since}",
        "It runs in its turn; more workers or slots make that sooner:",
        f"rota worker APP --queue {job.queue}",
    )


def _due(facts: Facts) -> Obstacle:
    job = facts.job
    return Obstacle(
        Cause.DUE,
        f"Nothing is in its way: it is due since {_moment(job.run_at)}{_late(facts)} and is the next of its queue "
        f"{job.queue!r}.",
        "A worker takes it as soon as a slot is free.",
    )


def _late(facts: Facts) -> str:
    """That it waits longer than its queue should let it."""
    waited = (facts.now - facts.job.run_at).total_seconds()
    if facts.target is None or waited <= facts.target:
        return ""
    over = _span(timedelta(seconds=waited - facts.target))
    return f" ({over} over the target of {_span(timedelta(seconds=facts.target))} of its queue)"


def _too_new(job: Job, task: TaskSpec | None) -> bool:
    if task is None or job.payload_version is None:
        return False
    try:
        return _version(job.payload_version) > _version(task.payload_version)
    except ValueError:  # versions that are names have no order
        return False


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


# While it runs, and afterwards


def _running(facts: Facts) -> Obstacle:
    job, owner = facts.job, facts.owner
    since = _moment(job.claimed_at or job.updated_at)
    if owner is None:
        return Obstacle(
            Cause.LOST,
            f"It began at {since}, but its worker is gone.",
            "Another worker restarts it within seconds of its lease's end. If none does, see whether any lives:",
            "rota doctor",
        )
    where = f"It is running on {owner} since {since}, attempt {job.attempt} of {job.max_attempts}"
    if job.cancel_requested_at is not None:
        return Obstacle(
            Cause.CANCELLING,
            f"{where}; its worker was asked to stop it at {_moment(job.cancel_requested_at)} and has not confirmed it.",
            "To end it without its worker:",
            f"rota jobs cancel {job.id} --force",
        )
    return Obstacle(Cause.RUNNING, f"{where}.", "")


def _after_death(job: Job, died: str, again: str) -> tuple[str, str, str]:
    """What is to be said of a dead job, by where its review stands: work that is done again needs no second retry."""
    match job.review:
        case Review.REPROCESSING:
            return f"{died} A new job does its work again.", "See that one:", f"rota dlq show {job.id}"
        case Review.RESOLVED:
            return f"{died} A new job has done its work since.", "See that one:", f"rota dlq show {job.id}"
        case Review.DISCARDED:
            given_up = f"{died} Its work was given up."
            return given_up, "Who said so, and why:", f"rota dlq show {job.id}"
        case _:
            known = f"{died} Somebody knows of it." if job.review == Review.ACKNOWLEDGED else died
            return known, "When the cause is repaired, run it again from its first attempt:", again


def _ended(facts: Facts) -> Obstacle:
    job = facts.job
    at = "" if job.finished_at is None else f" at {_moment(job.finished_at)}"
    again = f"rota jobs retry {job.id}"
    match job.state:
        case State.DEAD:
            message = f" ({job.error_class}: {_short(job.error_message)})" if job.error_message else ""
            died = f"It died{at}, after {_many(job.attempt, 'attempt')}{message}."
            return Obstacle(Cause.ENDED, *_after_death(job, died, again))
        case State.CANCELLED if job.superseded_by is not None:
            return Obstacle(
                Cause.ENDED,
                f"It gave way{at} to job {job.superseded_by}, which has the same unique key.",
                "See that one:",
                f"rota jobs why {job.superseded_by}",
            )
        case State.CANCELLED:
            done = next((done for done in facts.audit if done.action == Verb.CANCEL), None)
            by = "" if done is None else f" by {done.actor}"
            return Obstacle(
                Cause.ENDED,
                f"It was cancelled{by}{at}" + (f": {_short(job.reason)}." if job.reason else "."),
                "To run it after all:",
                again,
            )
        case State.PARTIAL:
            return Obstacle(
                Cause.ENDED,
                f"It completed{at}, and some of its items failed.",
                "See its result:",
                f"rota jobs show {job.id}",
            )
        case _:
            return Obstacle(Cause.ENDED, f"It completed{at}.", "")


# Words


def _serial(job: Job) -> str:
    """The key as the user wrote it: `serial:TENANT:KEY` without what was put before it."""
    gate = job.gate or ""
    return gate.removeprefix(f"serial:{job.tenant or ''}:")


def _code(task: TaskSpec) -> str:
    return "code without a version" if task.code_version is None else f"code version {task.code_version}"


def _moment(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}".strip()


def _span(length: timedelta) -> str:
    seconds = max(0, round(length.total_seconds()))
    for size, unit, smaller, lesser in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size}{unit}" + (f" {rest}{lesser}" if rest else "")
    return f"{seconds}s"


def _short(text: str | None, most: int = 200) -> str:
    line = " ".join((text or "").split()).rstrip(".")
    return line if len(line) <= most else line[: most - 1] + "…"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _listed(things: Iterable[object]) -> str:
    names = [str(thing) for thing in things]
    shown = ", ".join(names[:NAMED]) or "nothing"
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
