"""The verdict: what becomes of each job that a dead child leaves behind. Pure."""

from __future__ import annotations

from rota._core.failure import STACK_LIMIT, ErrorClass, Failure, clip_head, storable
from rota._core.job import Job
from rota._core.outcome import Cancelled, Crashed, HandedBack, Lost, Outcome, Raised
from rota._core.retry import Retry
from rota._core.suspects import Death
from rota.worker.supervisor.report import CrashReport, Ending


def verdict(report: CrashReport, job: Job, retry: Retry, limit: float | None) -> Outcome:
    """How this attempt of `job` ended, which the dead child still owned; `limit` is its timeout.

    What never began goes back as if nothing had happened. Where the supervisor
    ended the child, it knows whose fault that was, and nobody else pays for it.
    Where nobody did, everything that had begun is a suspect.
    """
    if not report.had_begun(job.id, job.version):
        return HandedBack(f"its worker process {report.how} before it began")
    if job.id in report.culprits and report.ended_for is Ending.OVERRUN:
        return _timed_out(report, limit)
    if job.id in report.culprits and report.ended_for is Ending.CANCEL:
        return Cancelled(job.reason)
    if report.ended_for is None:
        return Crashed(_death(report, job).failure(alone=False), alone=False)
    if not retry.lost:
        # It may have done its work, and it must not be done twice.
        return Lost(f"its worker process was ended ({report.ended_for.value}) while it was still running")
    return HandedBack(_why_not_guilty(report.ended_for))


def _timed_out(report: CrashReport, limit: float | None) -> Outcome:
    failure = Failure.because(
        ErrorClass.TIMEOUT,
        f"it ran longer than its timeout of {limit or 0.0:g} s and could not be stopped, so its worker process was "
        "ended. Give the task a longer timeout, less to do, or an await now and then.",
    )
    stack = clip_head(storable(report.stack), STACK_LIMIT) if report.stack else None
    return Raised(failure._replace(type="TimeoutError", stack=stack))


def _death(report: CrashReport, job: Job) -> Death:
    seconds = next((run.seconds for run in report.running if run.job_id == job.id), None)
    return Death(
        report.pid,
        exit_code=report.exit_code,
        signal=report.signal,
        seconds=seconds,
        memory=report.rss,
        tick_age=report.tick_age,
        log=report.last_lines[-20:],
        stack=report.stack,
    )


def _why_not_guilty(ended_for: Ending) -> str:
    return {
        Ending.OVERRUN: "its worker process was ended because of another job, which ran past its timeout",
        Ending.CANCEL: "its worker process was ended because of another job, which was cancelled and did not stop",
        Ending.FENCED: "its worker process was ended, because it had lost its session",
        Ending.FROZEN: "its worker process stood still for too long and was ended",
        Ending.STOP: "its worker process did not stop in time and was ended",
    }[ended_for]
