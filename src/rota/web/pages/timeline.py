"""The life of a job as stretches of time: waiting, running, backing off, set aside, until it ended or until now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rota._core.job import Job, State
from rota._core.lengths import span
from rota.stores.contract import Attempt
from rota.web.pages.drawing import Bar

DIED = ("die", "kill")
END_TONES = {State.COMPLETED: "ok", State.PARTIAL: "ok", State.DEAD: "bad", State.CANCELLED: "off"}
LATE = 0.5
"""Seconds between being due and being started that are told as a wait of their own."""


class Stretch(NamedTuple):
    """Some time of a job's life."""

    start: datetime
    end: datetime
    tone: str
    """wait, back-off, snoozed, run, ok, bad or off: what the strip is coloured by."""
    words: str

    @property
    def seconds(self) -> float:
        return max((self.end - self.start).total_seconds(), 0.0)


TONES = {
    "wait": "waiting",
    "back-off": "backing off",
    "snoozed": "scheduled or set aside",
    "run": "running",
    "ok": "done",
    "bad": "failed",
    "off": "ended, or cancelled",
}
"""The legend."""


class Gap(NamedTuple):
    """What the time before the next attempt was spent with."""

    tone: str
    words: str


FIRST = Gap("wait", "waited")
AGAIN = Gap("back-off", "backed off")
EARLIER = Gap("back-off", "earlier attempts, which are not shown")
ASIDE = {State.HELD: Gap("snoozed", "held"), State.BLOCKED: Gap("wait", "waits for other jobs")}
DEAD = Gap("off", "was dead, until somebody retried it")


def stretches(
    job: Job, attempts: Sequence[Attempt], now: datetime, *, earlier: bool = False
) -> list[Stretch]:
    """All of it, oldest first, from its making to its end or to now. `earlier`: there were attempts before these."""
    found: list[Stretch] = []
    at, gap = job.created_at, EARLIER if earlier else FIRST
    for seen in attempts:
        start = seen.started_at or seen.ended_at
        _add(found, at, start, gap)
        what = f"attempt {seen.attempt} failed: {seen.error_type or seen.error_class}"
        _add(found, start, seen.ended_at, Gap("bad", what), keep=seen.started_at is not None)
        at, gap = seen.ended_at, DEAD if seen.outcome in DIED else AGAIN
    if _counts(job, attempts[-1] if attempts else None):
        assert job.claimed_at is not None
        _before(found, at, job.claimed_at, job.run_at, gap)
        _add(found, job.claimed_at, *_end(job, now), keep=True)
    elif job.state in ASIDE:
        _add(found, at, now, ASIDE[job.state])
    elif not job.state.terminal:
        _before(found, at, now, job.run_at, gap)
    elif job.finished_at is not None and not (gap is DEAD and job.state is State.DEAD):
        _add(found, at, job.finished_at, gap._replace(words=f"waited, then was {job.state.value}"))
    return found


def _counts(job: Job, last: Attempt | None) -> bool:
    """Whether its latest claim is not among the attempts that failed."""
    if job.claimed_at is None or job.state in (State.PENDING, State.HELD, State.BLOCKED):
        return False
    return last is None or last.started_at is None or job.claimed_at > last.started_at


def _end(job: Job, now: datetime) -> tuple[datetime, Gap]:
    if job.state is State.RUNNING:
        return now, Gap("run", f"attempt {job.attempt} runs")
    until = job.finished_at or job.updated_at
    return until, Gap(END_TONES.get(job.state, "off"), f"attempt {job.attempt} {job.state.value}")


def _before(found: list[Stretch], at: datetime, until: datetime, due: datetime, gap: Gap) -> None:
    """What was before a claim, or is until now: first it was not due, then it was and waited."""
    first = min(max(due, at), until)
    _add(found, at, first, Gap("snoozed", "not yet due") if gap is FIRST else gap)
    if (until - first).total_seconds() >= LATE or not found:
        _add(found, first, until, Gap("wait", "waited for a worker"))
    elif found[-1].end == first:
        found[-1] = found[-1]._replace(end=until)


def _add(found: list[Stretch], start: datetime, end: datetime, what: Gap, *, keep: bool = False) -> None:
    if end > start or keep:
        found.append(Stretch(start, max(start, end), *what))


WIDTH, HEIGHT, LEAST = 1000.0, 28.0, 8.0


def bars(found: Sequence[Stretch]) -> list[Bar]:
    """The same as a strip: by its length, but nothing too thin to be seen."""
    whole = sum(one.seconds for one in found) or 1.0
    room = WIDTH - LEAST * len(found)
    laid, x = [], 0.0
    for one in found:
        wide = LEAST + one.seconds / whole * room if room > 0 else WIDTH / len(found)
        laid.append(
            Bar(round(x, 1), 0, round(wide, 1), HEIGHT, one.tone, f"{one.words} ({span(one.seconds)})")
        )
        x += wide
    return laid
