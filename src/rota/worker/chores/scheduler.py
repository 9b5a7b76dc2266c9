"""The scheduler: turns the ticks of this code's schedules into jobs, when their time has come by the store's clock."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from rota._core.schedule import Fate, Fired, Firing, ScheduleRecord, TickJob, job_for
from rota._core.schedule_plan import delay, plan
from rota.errors import StoreUnavailable
from rota.new_ids import new_id
from rota.schedule_times import times_of, windows_of
from rota.stores.contract import Store
from rota.worker.desk import Desk
from rota.worker.service import Service

log = logging.getLogger("rota.worker")

LOOK_EVERY = 5.0
"""Seconds after which changes by operators are seen at the latest."""
SHORTEST_PAUSE = 0.005
LOOK_AGAIN = 0.2


class Scheduler(Service):
    """Reads its schedules, fires what is due, and sleeps until the next tick.

    Any number of them may run: the store makes each tick one job. Only the
    schedules of this code are ticked, so one that vanished from all running
    code rests; what is ticked is what the store says of it.
    """

    name = "scheduler"

    def __init__(self, store: Store, desk: Desk | None, names: Sequence[str]) -> None:
        super().__init__()
        self._store, self._desk, self._names = store, desk, sorted(names)
        self._deleted: set[str] = set()

    async def step(self) -> None:
        pause = await self.look()
        # A few milliseconds apart, so that many schedulers do not ask at once; never before the time.
        await asyncio.sleep(max(SHORTEST_PAUSE, pause) + random.uniform(0.0, 0.05))  # noqa: S311

    async def look(self) -> float:
        """One round over all schedules; seconds until the next tick, but no more than the pause between two looks."""
        roster = await self._store.roster(self._names)
        self._say_deleted({record.name for record in roster.schedules})
        pause = LOOK_EVERY
        for record in roster.schedules:
            if record.paused_at is not None:
                continue
            try:
                wait = await self._tick(record, roster.now)
            except StoreUnavailable:
                raise  # the others cannot be ticked either: the next round comes soon
            except Exception as error:  # one bad schedule must not keep the others from ticking
                self.trouble(error)
                wait = LOOK_EVERY
            pause = min(pause, wait)
        return max(0.0, pause)

    async def _tick(self, record: ScheduleRecord, now: datetime) -> float:
        spec = record.effective
        decided = plan(
            spec, record.cursor, now, times_of(spec.timing, spec.tz), windows_of(spec.windows, spec.tz)
        )
        if decided.cursor is not None:
            shift = delay(spec)
            ticks = tuple(
                TickJob(tick, tick + shift, job_for(spec, tick, new_id())) for tick in decided.ticks
            )
            fired = await self._store.fire(
                Firing(record.name, ticks, version=record.version, cursor=decided.cursor)
            )
            if any(one.fate is Fate.STALE for one in fired):
                return LOOK_AGAIN
            if decided.missed:
                self._say_missed(record, fired)
            self._say(record, fired)
        if decided.look_at is None:
            return LOOK_EVERY
        return (decided.look_at - now) / timedelta(seconds=1)

    def _say(self, record: ScheduleRecord, fired: Sequence[Fired]) -> None:
        for one in fired:
            if one.fate in (Fate.ENQUEUED, Fate.DUPLICATE):
                log.info("schedule %s: %s is job %s.", record.name, one.tick.isoformat(), one.job_id)
                if self._desk is not None:
                    self._desk.wake()
            elif one.fate is Fate.OVERLAP:
                log.warning(
                    "schedule %s: %s is left out, because the job of the tick before is unfinished.",
                    record.name,
                    one.tick.isoformat(),
                )

    def _say_deleted(self, known: set[str]) -> None:
        """Somebody deleted a schedule of this code while nobody could see that it is: say so, once."""
        gone = set(self._names) - known
        for name in sorted(gone - self._deleted):
            log.warning(
                "schedule %s was deleted from the store, so it does not tick. If it is still wanted, restart this "
                "worker: that makes it known again.",
                name,
            )
        self._deleted = gone

    def _say_missed(self, record: ScheduleRecord, fired: Sequence[Fired]) -> None:
        if fired and all(one.fate is Fate.ALREADY for one in fired):
            return  # another scheduler was faster, and says it
        log.warning(
            "schedule %s: ticks since %s were missed; misfire=%s runs %d now.",
            record.name,
            record.cursor.isoformat(),
            record.effective.misfire.value,
            sum(one.fate in (Fate.ENQUEUED, Fate.DUPLICATE) for one in fired),
        )
