"""The watch: looks at the children all the time, beats for those that cannot, and ends what nothing else can stop."""

from __future__ import annotations

import asyncio
import logging
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from uuid import UUID

from rota._core.job import State
from rota.errors import StoreError
from rota.stores.contract import Store
from rota.worker.supervisor.block import Entry, Sight
from rota.worker.supervisor.child import Child
from rota.worker.supervisor.judging import overrun, stuck, user_frames
from rota.worker.supervisor.report import Ending
from rota.worker.supervisor.shown import MEASURE_EVERY

log = logging.getLogger("rota.supervisor")

LATE = 1.5
"""Beats that a child may miss before the supervisor beats for it."""
ASLEEP, FAIR = 2.0, 2.0
"""After so long without a look of our own, children get so long to catch up."""
ASK = 2.0
"""Seconds that the store has to say whether a job really still runs."""
_PATHS = sysconfig.get_paths()
LIBRARIES = (
    *sorted({_PATHS[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")}),
    str(Path(__file__).parents[2]),
)


class Watch:
    """All children share one; what it remembers of each is kept with the child."""

    def __init__(self) -> None:
        self.store: Store | None = None
        """None until a child has said where its store is, or if nobody but the child can reach it."""
        self._looked = self._fair_from = monotonic()

    def wake(self, now: float) -> None:
        """A round of looks begins. If we stood still ourselves, so did the machine: nobody is judged by that time."""
        if now - self._looked > ASLEEP:
            self._fair_from = now + FAIR
        self._looked = now

    def look(self, child: Child) -> None:
        """One look. Whatever takes time is done beside, one thing at a time for each child."""
        if child.facts is None or child.ended_for is not None:
            return
        sight, now = child.look(), monotonic()
        if now - child.measured > MEASURE_EVERY:
            child.measured = now
            child.measure()
        self._keep_alive(child, sight, now)
        if not stuck(sight, now, child.facts.stall):
            self._is_well(child, sight)
            return
        if child.stuck_since is None:
            child.stuck_since = sight.ticked
        if now >= self._fair_from and (child.busy_with is None or child.busy_with.done()):
            self._see_to(child, sight, now)

    def _is_well(self, child: Child, sight: Sight) -> None:
        if child.said_stuck:
            log.warning(
                "child %d (pid %d) turns again, after %.1f s.",
                child.number, child.pid, sight.ticked - (child.stuck_since or sight.ticked),
            )  # fmt: skip
        child.stuck_since, child.said_stuck, child.frozen_since, child.fenced_at = None, False, None, None
        child.told.clear()
        child.cleared.clear()

    def _see_to(self, child: Child, sight: Sight, now: float) -> None:
        """Its loop stands still: what is to be done about it?"""
        assert child.facts is not None
        grace = child.facts.stop_grace
        if child.is_frozen():
            child.frozen_since = child.frozen_since or now
            if now - child.frozen_since > child.facts.lease:
                self._end(child, Ending.FROZEN, f"it was stopped as a whole for {child.facts.lease:g} s")
                return
        else:
            child.frozen_since = None
        if child.fenced_at is not None and now - child.fenced_at > grace:
            self._end(child, Ending.FENCED, "its session is over, and it could not be told to stop its jobs")
            return
        late = overrun(child.entries(), sight, now, grace, told=child.told, cleared=child.cleared)
        if late:
            child.busy_with = asyncio.create_task(self._condemn(child, late))
        elif not child.said_stuck and now - sight.looked > max(2.0, child.facts.stall):
            # Where only the loop stands still, the child itself says so, with the line that keeps it.
            self._say_stuck(child, now - sight.ticked)

    # Beats

    def _keep_alive(self, child: Child, sight: Sight, now: float) -> None:
        """Beat for a child whose own beats are late: a handler may hold the interpreter, and its heart with it."""
        assert child.facts is not None
        if (
            self.store is None
            or sight.session is None
            or (child.beating is not None and not child.beating.done())
        ):
            return
        last = max(sight.beaten, sight.kept if sight.kept_for == sight.session else 0.0)
        if now - last > LATE * child.facts.beat and child.fenced_at is None:
            child.beating = asyncio.create_task(self._beat(child, sight.session))

    async def _beat(self, child: Child, session: UUID) -> None:
        assert child.facts is not None
        assert self.store is not None
        held = {entry.job_id: entry.version for entry in child.entries()}
        sent = monotonic()
        try:
            async with asyncio.timeout(child.facts.beat):
                beat = await self.store.beat(session, lease=child.facts.lease, holding=held, memory=child.rss)
        except (StoreError, TimeoutError):
            await asyncio.sleep(min(1.0, child.facts.beat / 2))
            return
        if child.gone:
            return
        if beat.alive:
            child.block.keep(session, sent)
            for job_id in (*beat.cancel, *beat.lost):
                child.told.setdefault(job_id, sent)
            if beat.order is not None:
                child.order(beat.order)
        elif child.look().session == session:
            child.fenced_at = sent

    # Words and deeds

    def _say_stuck(self, child: Child, age: float) -> None:
        child.said_stuck = True
        if child.frozen_since is not None:
            what = "the whole process is stopped (SIGSTOP, or a debugger)"
        else:
            # Where it is could be asked for by a signal, but that might wake the very call that it sits in.
            what = f"something holds the interpreter, and {_running(child)}"
        log.warning(
            "child %d (pid %d) has stood still for %.1f s: %s. The supervisor keeps its session alive.",
            child.number, child.pid, age, what,
        )  # fmt: skip

    async def _condemn(self, child: Child, late: Sequence[Entry]) -> None:
        """End the child because of these jobs, unless the store knows that they have ended."""
        guilty = await self._still_running(late)
        child.cleared |= {entry.job_id for entry in late} - {entry.job_id for entry in guilty}
        if not guilty:
            return
        child.stack = await child.write_stack() or child.stack
        if child.gone:
            return  # it died by itself meanwhile
        names = ", ".join(f"job {entry.job_id} (task {child.task_of(entry)!r})" for entry in guilty)
        cancelled = all(entry.job_id in child.told for entry in guilty)
        if cancelled:
            why = f"{names} was cancelled, and could not be stopped"
        else:
            why = f"{names} is past its timeout and its grace, and could not be stopped"
        where = user_frames(child.stack, LIBRARIES)
        self._end(
            child,
            Ending.CANCEL if cancelled else Ending.OVERRUN,
            why + (f"; it is in {'; in '.join(where[:3])}" if where else ""),
            [entry.job_id for entry in guilty],
        )

    async def _still_running(self, late: Sequence[Entry]) -> list[Entry]:
        """Without the ones whose end was written just before the child got stuck. No answer: all of them."""
        if self.store is None:
            return list(late)
        try:
            async with asyncio.timeout(ASK):
                jobs = await self.store.get([entry.job_id for entry in late])
        except (StoreError, TimeoutError):
            return list(late)
        running = {(job.id, job.version) for job in jobs if job.state is State.RUNNING}
        return [entry for entry in late if (entry.job_id, entry.version) in running]

    def _end(self, child: Child, ending: Ending, why: str, culprits: Sequence[UUID] = ()) -> None:
        log.error("ending child %d (pid %d): %s.", child.number, child.pid, why)
        child.kill(ending, culprits)


def _running(child: Child) -> str:
    jobs = [f"task {child.task_of(entry)!r} (job {entry.job_id})" for entry in child.entries()]
    more = f" and {len(jobs) - 5} more" if len(jobs) > 5 else ""
    return f"these jobs run: {', '.join(jobs[:5])}{more}" if jobs else "no job runs"
