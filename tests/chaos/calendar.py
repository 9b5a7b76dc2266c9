"""What schedules made: which tick became which job. And which ticks there should have been, told by the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import NamedTuple

TICKS = """
SELECT headers ->> 'rota.schedule', (headers ->> 'rota.tick')::timestamptz, id::text, created_at
FROM rota.all_jobs WHERE headers ? 'rota.schedule'
"""

Due = tuple[str, datetime]
"""A schedule, and a time at which it ticks."""


class Fired(NamedTuple):
    """A job that a schedule made."""

    schedule: str
    tick: datetime
    job: str
    made: datetime


def wrong_ticks(fired: Collection[Fired], due: Collection[Due]) -> Iterator[str]:
    """Each tick that was due has one job, and no other tick has any. Misfires are in `due` as their policy says."""
    made = Counter((one.schedule, one.tick) for one in fired)
    for (schedule, tick), jobs in sorted(made.items()):
        if jobs > 1:
            yield f"{schedule} at {tick} became {jobs} jobs"
    for schedule, tick in sorted(set(due) - made.keys()):
        yield f"{schedule} at {tick} became no job"
    for schedule, tick in sorted(made.keys() - set(due)):
        yield f"{schedule} at {tick} became a job, and was not due"
    for one in fired:
        if one.made < one.tick:
            yield f"{one.schedule} at {one.tick} became a job before its time, at {one.made}"
