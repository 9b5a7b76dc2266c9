"""What became of the last ticks of a schedule, as a row of marks: each with a colour, a word, and its job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import NamedTuple
from uuid import UUID

from rota._core.job import State
from rota._core.lengths import span
from rota._core.schedule import Fate, Origin, ScheduleSpec, TickRecord
from rota._core.schedule_plan import Times, delay
from rota.errors import ScheduleError
from rota.schedule_times import times_of
from rota.web.pages.words import clock

SHOWN = 20
LOOKED_AT = 5_000
"""So many ticks are counted through at most to find the last ones."""
DOUBLINGS = 16
INSTANT = timedelta(microseconds=1)
ENDED = {
    State.COMPLETED: ("ok", "completed"),
    State.PARTIAL: ("ok", "completed in part"),
    State.DEAD: ("bad", "dead"),
    State.CANCELLED: ("off", "cancelled"),
    State.RUNNING: ("warn", "running"),
}


class Mark(NamedTuple):
    """One tick."""

    tick: datetime
    tone: str
    """hollow: no job came of it."""
    word: str
    job_id: UUID | None = None
    origin: Origin = Origin.TICK

    @property
    def when(self) -> str:
        return clock(self.tick)

    @property
    def title(self) -> str:
        return f"{self.when} UTC: {self.word}"


def marked(spec: ScheduleSpec, ticks: Sequence[TickRecord], now: datetime, most: int = SHOWN) -> list[Mark]:
    """The last ticks, oldest first: those that were taken, and those whose time passed without anybody."""
    seen = [_mark(spec, tick) for tick in ticks]
    found = seen + [
        Mark(tick, "hollow", "missed: nobody took it") for tick in _missed(spec, ticks, now, most)
    ]
    return sorted(found, key=lambda mark: mark.tick)[-most:]


def _mark(spec: ScheduleSpec, tick: TickRecord) -> Mark:
    if tick.job_id is None or tick.fate is Fate.OVERLAP:
        why = "the last one was unfinished" if tick.fate is Fate.OVERLAP else tick.fate.value
        return Mark(tick.tick, "hollow", f"skipped: {why}", None, tick.origin)
    if tick.state is None:
        return Mark(tick.tick, "off", "its job is no longer kept", tick.job_id, tick.origin)
    tone, word = ENDED.get(tick.state, ("warn", "waiting"))
    late = tick.at - tick.tick - delay(spec)
    if tick.origin is Origin.TICK and late > timedelta(seconds=spec.grace):
        tone, word = "warn" if tone == "ok" else tone, f"{word}, {span(late)} late"
    elif tick.origin is not Origin.TICK:
        word += ", by hand" if tick.origin is Origin.RUN else ", made good later"
    return Mark(tick.tick, tone, word, tick.job_id, tick.origin)


def _missed(spec: ScheduleSpec, ticks: Sequence[TickRecord], now: datetime, most: int) -> list[datetime]:
    """Ticks of the time since which the schedule ticks as it does now, that are not among those taken."""
    try:
        times = times_of(spec.timing, spec.tz)
    except ScheduleError:  # its zone is unknown here
        return []
    taken = sorted(tick.tick for tick in ticks if tick.origin is not Origin.RUN)
    if not taken:
        return []
    due = last_times(times, now - timedelta(seconds=spec.grace) - delay(spec), most, floor=taken[0] - INSTANT)
    # A tick that the present times do not have was taken by other ones: what was due before it is not known.
    strange = (tick for tick in taken if due and tick >= due[0] and tick not in due and not has(times, tick))
    foreign = max(strange, default=None)
    return [tick for tick in due if tick not in taken and (foreign is None or tick > foreign)]


def has(times: Times, tick: datetime) -> bool:
    """Whether this is one of these times."""
    return next(iter(times.after(tick - INSTANT)), None) == tick


def last_times(times: Times, until: datetime, most: int, floor: datetime) -> list[datetime]:
    """The last ticks up to a moment, oldest first, none before `floor`. Times are only counted forwards."""
    ahead = list(islice(times.after(until), 2))
    reach = (ahead[-1] - ahead[0] if len(ahead) == 2 else timedelta(days=1)) * (most + 1)
    found: list[datetime] = []
    for _ in range(DOUBLINGS):
        start = max(until - reach, floor) if until - floor > reach else floor
        found = list(islice(takewhile(lambda tick: tick <= until, times.after(start)), LOOKED_AT))
        if len(found) >= most or start == floor:
            break
        reach *= 2
    return found[-most:]
