"""The farewell: what is written when a child is gone. Its session ends at once, and its jobs wait for no lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from rota._core.job import Job, State
from rota._core.outcome import decide
from rota._core.retry import Retry
from rota._core.task_spec import TaskSpec
from rota.stores.contract import Answer, JobFilter, Store
from rota.worker.service import Service
from rota.worker.supervisor.report import CrashReport
from rota.worker.supervisor.verdict import verdict

log = logging.getLogger("rota.supervisor")

PAGE = 500


class Farewell(Service):
    """Decides every job of one dead child, and ends its session. Repeated until the store answers; the fence rules."""

    name = "farewell"
    longest_pause = 2.0

    def __init__(self, store: Store, report: CrashReport) -> None:
        super().__init__()
        self._store, self._report = store, report
        self._written = 0

    async def step(self) -> None:
        """All of it, once. Jobs first: while the session lives, nobody else judges them with less knowledge."""
        session = self._report.session
        if session is None:
            return
        await self._settle_all()
        await self._store.end_session(session)
        await self._settle_all()  # a claim may have been on its way when the child died
        if self._written:
            log.warning(
                "child %d (pid %d) %s; its %d jobs were taken back at once.",
                self._report.number, self._report.pid, self._report.how, self._written,
            )  # fmt: skip

    async def _settle_all(self) -> None:
        wanted = JobFilter(states=(State.RUNNING,), session_id=self._report.session, limit=PAGE)
        while True:
            jobs = await self._store.find(wanted)
            if jobs and not await self._settle(jobs):
                return
            if len(jobs) < PAGE:
                return

    async def _settle(self, jobs: list[Job]) -> int:
        now = await self._store.now()
        specs = {spec.name: spec for spec in await self._store.tasks()}
        transitions = [
            decide(
                job,
                verdict(self._report, job, _retry(specs, job), _limit(specs, job)),
                retry=_retry(specs, job),
                now=now,
            )
            for job in jobs
        ]
        settled = await self._store.settle(transitions)
        applied = sum(answer.answer is Answer.APPLIED for answer in settled)
        self._written += applied
        return applied


async def say_farewell(store: Store, report: CrashReport, within: float) -> None:
    """Do it, for up to so many seconds: after its lease the session is over anyway, and others take its jobs."""
    try:
        async with asyncio.timeout(within):
            await Farewell(store, report).once()
    except TimeoutError:
        log.warning(
            "the session of child %d (pid %d) could not be ended: the store did not answer. Its jobs are rescued when "
            "its lease is over.", report.number, report.pid,
        )  # fmt: skip


def _retry(specs: Mapping[str, TaskSpec], job: Job) -> Retry:
    spec = specs.get(job.task)
    return Retry() if spec is None else spec.retry


def _limit(specs: Mapping[str, TaskSpec], job: Job) -> float | None:
    if job.timeout is not None:
        return job.timeout
    spec = specs.get(job.task)
    return None if spec is None else spec.timeout
