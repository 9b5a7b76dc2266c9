"""The promises of a store about schedules. Conformance tests quote the docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from rota._core.actions import Audit
from rota._core.schedule import (
    Fired,
    Firing,
    Roster,
    ScheduleChange,
    ScheduleRecord,
    ScheduleSpec,
    TickDay,
    TickRecord,
)


class Schedules(Protocol):
    """What every store promises of schedules."""

    async def publish_schedules(self, specs: Sequence[ScheduleSpec]) -> None:
        """Make these schedules known; the newest publication wins, and what operators set stays.

        A new schedule, and one whose times changed, counts from now: no tick
        before this moment is ever made good.
        """
        ...

    async def roster(self, declared: Sequence[str] | None = None) -> Roster:
        """The schedules that a worker's code declares, or all of them, with the store's time.

        Naming them also says that they are: a schedule that nobody names any more is seen to be absent.
        """
        ...

    async def fire(self, firing: Firing, audit: Audit | None = None) -> list[Fired]:
        """Turn ticks into jobs, each (schedule, tick) into one at most, for ever; say what became of each, in order.

        Nothing is enqueued before it is due. Ticks of their own accord need the
        version they were computed from, a schedule that is not paused, and room
        by the overlap policy. The audit is recorded if anything became a job.
        """
        ...

    async def change_schedule(self, change: ScheduleChange, audit: Audit) -> ScheduleRecord | None:
        """Apply an operator's change if the version still holds, with its audit; None: it does not."""
        ...

    async def delete_schedule(self, name: str, version: int, audit: Audit) -> bool:
        """Remove a schedule and its ticks, if the version still holds and it is absent, with its audit; whether it did.

        Its jobs stay. Code that declares the name again makes a new schedule, which counts from then.
        """
        ...

    async def ticks(self, schedule: str, *, limit: int = 20) -> list[TickRecord]:
        """The ticks of a schedule that were taken, newest first."""
        ...

    async def tick_days(self, schedule: str, since: datetime, *, late: float, limit: int) -> list[TickDay]:
        """What became of the ticks since a moment, counted by day; those taken more than `late` seconds late apart.

        Of the newest `limit` ticks: the first day may not be whole.
        """
        ...
