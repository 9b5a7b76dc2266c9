"""Judging: what a child's block means. Pure: what was seen and the time in, an opinion out."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Mapping
from math import inf
from uuid import UUID

from rota.worker.supervisor.block import Entry, Phase, Sight

QUIET = 1.0
"""Seconds without a tick before a loop counts as stuck; `stall` may be longer."""
SLACK = 0.5
"""The child's own timers come first."""
STEADY = 30.0
"""A child that worked for so long has shown that it can start and live."""
LONGEST_PAUSE = 30.0
LONGEST_PAUSE_OF_ABLE = 2.0
"""The same for children that did begin to work: what killed them was a job, and the others must not wait for it."""

_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$')


def stuck(sight: Sight, now: float, stall: float) -> bool:
    """Whether the event loop of a working child has stopped turning."""
    return sight.phase is Phase.WORKING and now - sight.ticked > max(QUIET, stall)


def overrun(
    entries: Iterable[Entry],
    sight: Sight,
    now: float,
    grace: float,
    *,
    told: Mapping[UUID, float],
    cleared: Collection[UUID],
) -> list[Entry]:
    """The jobs that should have ended by now, in a child that had no chance to see to it itself.

    `told` are jobs that somebody asked to stop while the child could not hear
    it, and when. `cleared` have ended; only their traces are left.
    """
    found = []
    for entry in entries:
        limit = entry.due + (0.0 if entry.stop else grace)
        limit = min(limit, told.get(entry.job_id, inf) + grace)
        if entry.job_id not in cleared and now > limit + SLACK and sight.ticked < limit:
            found.append(entry)
    return found


def pause_before_restart(deaths: int, *, able: bool) -> float:
    """Seconds before a dead child is replaced, after so many early deaths in a row. `able`: it had begun to work."""
    if deaths <= 1 and able:
        return 0.0
    longest = LONGEST_PAUSE_OF_ABLE if able else LONGEST_PAUSE
    return min(longest, 0.25 * 2.0 ** min(deaths, 20)) * random.uniform(0.75, 1.0)  # noqa: S311 - not all at once


def user_frames(stack: str, libraries: tuple[str, ...]) -> list[str]:
    """Of each thread of a written stack, the innermost line that is neither Python's, nor a library's, nor ours."""
    found: list[str] = []
    seen = False
    for text in stack.splitlines():
        frame = _FRAME.match(text)
        if frame is None:
            seen = False  # another thread begins
        elif not seen and not frame["file"].startswith((*libraries, "<")):
            seen = True
            found.append(f"{frame['file']}, line {frame['line']}, {frame['name']}()")
    return list(dict.fromkeys(found))
