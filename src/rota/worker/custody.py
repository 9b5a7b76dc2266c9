"""Custody: what news about a held job means for the handler that runs it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from time import monotonic
from uuid import UUID

from rota._core.job import Job
from rota._core.outcome import HandedBack, decide
from rota._core.retry import Retry
from rota._core.worker_order import OrderVerb
from rota.stores.contract import Beat
from rota.worker.desk import Desk
from rota.worker.execution import Run, Stop
from rota.worker.runner import Runner
from rota.worker.session import Session

log = logging.getLogger("rota.worker")


class Custody:
    """Called on the event loop, with what the heartbeat's thread or a hint brought."""

    def __init__(
        self, desk: Desk, runner: Runner, obey: Callable[[OrderVerb], None] = lambda _: None
    ) -> None:
        self._desk, self._runner, self._obey = desk, runner, obey
        self._strays: dict[tuple[UUID, int], float] = {}
        """Jobs that the store says are ours and that we do not know, and since when."""

    def opened(self, session: Session) -> None:
        """A new session: claim under it from now on."""
        self._desk.session = session
        self._desk.wake()
        self._desk.ring_all()

    def fenced(self, session: Session, why: str) -> None:
        """Nothing that runs under this session is ours any more: stop its handlers, and write nothing of them.

        What had ended before is still written: if nobody took the job since, its
        version lets the end in, and else keeps it out.
        """
        if self._desk.session is not session:
            return
        self._desk.session = None
        held = [run for run in self._desk.held if not run.ended]
        self._desk.held.difference_update(held)
        self._strays.clear()
        log.warning(
            "session %s is no longer trusted (%s): stopped %d jobs here, others will run them. A new session begins "
            "when the store answers.", session.id, why, len(held),
        )  # fmt: skip
        self._lose(held)

    def heard(self, session: Session, beat: Beat, named: dict[UUID, Run]) -> None:
        """A beat was answered; `named` are the runs that it named as held."""
        if self._desk.session is not session:
            return
        for run in (named[job_id] for job_id in beat.cancel):
            self._runner.stop(run, Stop.CANCEL)
        # A run that has ended was most likely settled while the beat was on its way.
        gone = [run for run in (named[job_id] for job_id in beat.lost) if not run.ended]
        if gone:
            log.warning(
                "jobs %s are no longer ours; their handlers are stopped.",
                ", ".join(str(run.id) for run in gone),
            )
            self._desk.held.difference_update(gone)
            self._lose(gone)

    def cancel(self, job_id: UUID) -> None:
        """Somebody asked to cancel this job; if it runs here, stop it now."""
        for run in list(self._desk.held):
            if run.job.id == job_id:
                self._runner.stop(run, Stop.CANCEL)

    def strays(self, session: Session, jobs: Iterable[Job]) -> None:
        """Hand back jobs whose claim never reached us.

        Only what was seen twice, and only when every claim that could still
        bring it has come back: else it would be handed back and run.
        """
        if self._desk.session is not session:
            return
        now = monotonic()
        oldest_flight = min(self._desk.flights.values(), default=now)
        known = {(run.job.id, run.job.version) for run in self._desk.held}
        strange = {(job.id, job.version): job for job in jobs if (job.id, job.version) not in known}
        ripe = [job for key, job in strange.items() if self._strays.get(key, now) < oldest_flight]
        self._strays = {key: self._strays.get(key, now) for key in strange}
        for job in ripe:
            run = Run(job, None, now)
            run.ended = True
            outcome = HandedBack("the answer to its claim was lost")
            run.transition = decide(job, outcome, retry=Retry(), now=job.updated_at)
            self._desk.held.add(run)
            self._desk.settle(run)
        if ripe:
            log.info("handed back %d jobs whose claim was answered, but not heard.", len(ripe))

    def ordered(self, verb: OrderVerb) -> None:
        """Somebody asked this worker to go. Its session may have ended since: he meant the worker all the same."""
        self._obey(verb)

    def _lose(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self._runner.stop(run, Stop.LOST)
