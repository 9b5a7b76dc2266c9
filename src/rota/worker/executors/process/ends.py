"""Ends: from what a child said of a job's end, or from its death, to the outcome that is recorded."""

from __future__ import annotations

import json
from typing import Any

from rota._core.durations import seconds
from rota._core.failure import MESSAGE_LIMIT, STACK_LIMIT, ErrorClass, Failure, clip, clip_head, storable
from rota._core.outcome import Cancelled, Crashed, HandedBack, Outcome, Raised, Returned, Snoozed
from rota._core.payload import problem
from rota._core.suspects import Death
from rota.worker.endings import RETURNED_NOTHING, abandoned, timed_out
from rota.worker.execution import Run, Stop
from rota.worker.executors.process.wire import Header

NOT_READY = 5.0
"""Seconds before a job is tried again whose task the child did not find."""


def said(run: Run, end: Header, body: bytes, limit: int) -> Outcome:
    """What it means that the child ended this run so. Nothing that a child says is taken on trust."""
    if run.stop is Stop.TIMEOUT:
        return _with_stack(timed_out(run), end.get("stack"))
    how = end.get("how")
    if how == "returned":
        return _returned(end, body, limit)
    if run.stop is Stop.CANCEL:
        return Cancelled(_text(end.get("reason")) if how == "cancel" else None)
    if how == "snooze":
        return Snoozed(_seconds(end.get("delay")), _text(end.get("reason")))
    failure = _failure(end)
    if run.stop is Stop.SHUTDOWN and failure.error_class not in (
        ErrorClass.NON_RETRYABLE,
        ErrorClass.RATE_LIMITED,
    ):
        return HandedBack()  # we interrupted it, so whatever it ended with is our doing
    if how == "cancel":
        return Cancelled(_text(end.get("reason")))
    if how == "unknown":
        return HandedBack(f"its child process did not know it: {failure.message}", NOT_READY)
    if how == "unstorable":
        message = f"the handler returned, but its result cannot be stored: {failure.message}"
        return Raised(failure._replace(error_class=ErrorClass.NON_RETRYABLE, message=message))
    return Raised(failure)


def died(run: Run, death: Death) -> Outcome:
    """What it means that the child died under this run. If we ended it, the reason is ours."""
    if run.stop is Stop.TIMEOUT:
        return _with_stack(timed_out(run), death.report())
    if run.stop is not None:
        return abandoned(run)
    return Crashed(death.failure(alone=True), alone=True)


def _returned(end: Header, body: bytes, limit: int) -> Outcome:
    if not end.get("result"):
        return RETURNED_NOTHING
    try:
        text = body.decode()
        json.loads(text)
        trouble = problem(text, limit=limit)
    except (ValueError, RecursionError):
        text, trouble = "", "it is no JSON"
    if trouble is None:
        return Returned(text)
    message = f"the handler returned, but its result cannot be stored: {trouble}"
    return Raised(Failure.because(ErrorClass.NON_RETRYABLE, message))


def _failure(end: Header) -> Failure:
    try:
        error_class = ErrorClass(str(end.get("class")))
    except ValueError:
        error_class = ErrorClass.RETRYABLE
    stack = _text(end.get("stack"))
    after = end.get("retry_after")
    return Failure(
        error_class,
        clip(_text(end.get("type")) or "Exception", 200),
        clip(_text(end.get("message")) or "", MESSAGE_LIMIT),
        None if stack is None else clip_head(stack, STACK_LIMIT),
        None if after is None else _seconds(after),
    )


def _with_stack(outcome: Outcome, stack: object) -> Outcome:
    assert isinstance(outcome, Raised)
    text = _text(stack)
    if text is None:
        return outcome
    return Raised(outcome.failure._replace(stack=clip_head(text, STACK_LIMIT)))


def _seconds(value: Any) -> float:
    try:
        return seconds(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _text(value: object) -> str | None:
    return storable(value) if isinstance(value, str) else None
