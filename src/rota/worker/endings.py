"""Endings: from how a handler ended to the outcome that is recorded."""

from __future__ import annotations

import logging
from asyncio import CancelledError

from rota._core.failure import MESSAGE_LIMIT, ErrorClass, Failure, clip, storable
from rota._core.job import State
from rota._core.outcome import Cancelled, HandedBack, Lost, Outcome, Raised, Returned, Snoozed
from rota.errors import Cancel, Die, RetryAfter, Snooze
from rota.worker.execution import Run, Stop

log = logging.getLogger("rota.worker")

RETURNED_NOTHING = Returned()


def raised(run: Run, error: BaseException) -> Outcome:
    """What it means that `run`'s handler ended with `error`."""
    if run.stop is Stop.TIMEOUT:
        return timed_out(run, error)
    if run.stop is Stop.CANCEL:
        return Cancelled(reason_of(error)) if isinstance(error, Cancel) else Cancelled()
    match error:
        case Snooze():
            return Snoozed(error.delay, reason_of(error))
        case Die():
            return Raised(failure_of(error, ErrorClass.NON_RETRYABLE))
        case RetryAfter():
            return Raised(failure_of(error, ErrorClass.RATE_LIMITED, retry_after=error.delay))
        case _ if run.stop is Stop.SHUTDOWN:
            # We interrupted it, so whatever it ended with is our doing; Cancel is what stop_if_cancelled() raises.
            return HandedBack()
        case Cancel():
            return Cancelled(reason_of(error))
        case CancelledError() if not str(error):
            message = "the handler was cancelled from inside (a future or task that it awaited was cancelled)"
            return Raised(failure_of(error, run.retry.class_of(error))._replace(message=message))
        case _:
            return Raised(failure_of(error, run.retry.class_of(error)))


def judged(run: Run, error: BaseException) -> Outcome:
    """The same; whatever goes wrong in judging an error, its job must end."""
    try:
        return raised(run, error)
    except Exception as ours:
        log.exception("the error of job %s (%s) could not be judged", run.job.id, run.job.task)
        return Raised(failure_of(ours, ErrorClass.NON_RETRYABLE))


def reason_of(error: Snooze | Cancel) -> str | None:
    """Why, as the handler put it: whatever it gave, made a text that can be stored."""
    return None if error.reason is None else clip(storable(str(error.reason)), MESSAGE_LIMIT)


def timed_out(run: Run, error: BaseException | None = None) -> Outcome:
    """It ran too long, whatever its handler made of being stopped."""
    limit = run.limit or 0.0
    failure = Failure.because(
        ErrorClass.TIMEOUT,
        f"it ran longer than its timeout of {limit:g} s. Give the task a longer one, or less to do.",
    )
    if error is None:
        return Raised(failure._replace(type="TimeoutError"))
    return Raised(failure._replace(type="TimeoutError", stack=failure_of(error, ErrorClass.TIMEOUT).stack))


def abandoned(run: Run) -> Outcome:
    """What is recorded of a run that was told to stop, did not, and is waited for no longer."""
    match run.stop:
        case Stop.TIMEOUT:
            return timed_out(run)
        case Stop.CANCEL:
            return Cancelled()
        case _ if not run.retry.lost:
            # It may still be doing its work, and it must not be done twice: as after a crash, it is not run again.
            return Lost("its worker stopped while it was still running")
        case _:
            return HandedBack()


def unstorable(error: BaseException) -> Outcome:
    """The work is done, but its result cannot be kept: running it again would only do it twice."""
    failure = failure_of(error, ErrorClass.NON_RETRYABLE)
    return Raised(
        failure._replace(message=f"the handler returned, but its result cannot be stored: {failure.message}")
    )


def failure_of(error: BaseException, error_class: ErrorClass, *, retry_after: float | None = None) -> Failure:
    """Record any exception, even one that cannot say what it is."""
    try:
        return Failure.of(error, error_class, retry_after=retry_after)
    except Exception:
        named = f"{type(error).__qualname__} (its text cannot be read: str() of it fails)"
        return Failure.because(error_class, named)._replace(
            type=type(error).__qualname__, retry_after=retry_after
        )


def tell(run: Run, to: State) -> None:
    """Log that an attempt failed, and what follows."""
    transition = run.transition
    assert transition is not None
    assert transition.failure is not None
    what = "died" if to is State.DEAD else "failed and is tried again"
    log.log(
        logging.ERROR if to is State.DEAD else logging.WARNING,
        "job %s (%s) %s, attempt %d of %d, %s: %s",
        run.job.id, run.job.task, what, run.job.attempt, run.job.max_attempts,
        transition.failure.error_class.value, _named(transition.failure),
    )  # fmt: skip


def _named(failure: Failure) -> str:
    """The exception as Python would name it: `'id'` alone does not say KeyError, and some have no text at all."""
    named = (
        failure.type if failure.type != failure.error_class.value else ""
    )  # then no exception stands for it
    return ": ".join(filter(None, (named, failure.message)))
