"""What a child tells its worker: log records as they come, and how each job ended."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import traceback
from asyncio import CancelledError
from collections.abc import Iterator
from itertools import islice
from typing import Any

from rota._core.failure import MESSAGE_LIMIT, STACK_LIMIT, ErrorClass, Failure, clip, clip_head, storable
from rota._core.retry import Retry
from rota.current import RunningJob
from rota.errors import Cancel, Die, PayloadInvalid, RetryAfter, Snooze
from rota.worker.endings import failure_of, reason_of
from rota.worker.executors.process.wire import Header, frame

LOG_LIMIT = 8192
EXTRA_LIMIT = 50
"""Fields of a log record's own that are sent. A frame that is too large would end the child, and blame its job."""
PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
EXTRAS = (str, int, float, bool, type(None))


class Telling:
    """The child's half of the line, shared by its threads."""

    def __init__(self, line: socket.socket, pid: int) -> None:
        self.number = 0
        """The job that is spoken of."""
        self._line, self._pid = line, pid
        self._lock = threading.Lock()

    def say(self, header: Header, body: bytes = b"") -> None:
        """Send one frame; a copy that a handler forked keeps silent, and a worker that is gone hears nothing."""
        if os.getpid() != self._pid:
            return
        with contextlib.suppress(OSError), self._lock:
            self._line.sendall(frame(header, body))

    def line(self, _job: RunningJob, level: int, message: str) -> None:
        """Send a line of the job's own log."""
        self.say({"is": "line", "number": self.number, "level": level, "message": clip(message, LOG_LIMIT)})


class Pipe(logging.Handler):
    """Sends log records to the worker, which handles them as its own."""

    def __init__(self, telling: Telling) -> None:
        super().__init__()
        self._telling = telling

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._telling.say(
                {
                    "is": "log",
                    "number": self._telling.number,
                    "name": record.name,
                    "level": record.levelno,
                    "message": clip(record.getMessage(), LOG_LIMIT),
                    "created": record.created,
                    "where": [record.pathname, record.lineno, record.funcName],
                    "error": _trace(record),
                    "extra": dict(islice(_extras(record), EXTRA_LIMIT)),
                }
            )
        except Exception:
            self.handleError(record)


def hear_all(telling: Telling, level: int) -> None:
    """Send everything that is logged here to the worker, and nothing anywhere else: it would be written twice."""
    pipe = Pipe(telling)
    root = logging.getLogger()
    root.handlers[:] = [pipe]
    root.setLevel(level)
    for logger in list(root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers[:] = [] if logger.propagate else [pipe]


def raised(error: BaseException, retry: Retry) -> Header:
    """How a handler ended that raised."""
    match error:
        case Snooze():
            return {"how": "snooze", "delay": error.delay, "reason": reason_of(error)}
        case Cancel():
            return {"how": "cancel", "reason": reason_of(error)}
        case Die():
            return _failure("error", error, ErrorClass.NON_RETRYABLE)
        case RetryAfter():
            return _failure("error", error, ErrorClass.RATE_LIMITED) | {"retry_after": error.delay}
        case CancelledError() if not str(error):
            message = "the handler was cancelled from inside (a future or task that it awaited was cancelled)"
            return _failure("error", error, retry.class_of(error)) | {"message": message}
        case _:
            return _failure("error", error, retry.class_of(error)) | {"heavy": isinstance(error, MemoryError)}


def unfit(error: Exception) -> Header:
    """A job that could not begin: its arguments do not fit, or its task is not in this code."""
    if isinstance(error, PayloadInvalid):
        return _failure("error", error, ErrorClass.PAYLOAD_INVALID)
    return _failure("unknown", error, ErrorClass.UNKNOWN_TASK)


def untold(error: Exception) -> Header:
    """A job whose end could not be put into words: running it again would only do it twice."""
    return _failure("error", error, ErrorClass.NON_RETRYABLE)


def _failure(how: str, error: BaseException, error_class: ErrorClass) -> Header:
    failure: Failure = failure_of(error, error_class)
    return {
        "how": how,
        "class": failure.error_class.value,
        "type": failure.type,
        "message": clip(failure.message, MESSAGE_LIMIT),
        "stack": None if failure.stack is None else clip_head(failure.stack, STACK_LIMIT),
    }


def _extras(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    for name, value in record.__dict__.items():
        if name not in PLAIN and isinstance(value, EXTRAS):
            yield name[:200], clip(value, LOG_LIMIT) if isinstance(value, str) else value


def _trace(record: logging.LogRecord) -> str | None:
    info: Any = record.exc_info
    if not info or info[0] is None:
        return None
    return clip_head(storable("".join(traceback.format_exception(*info))), STACK_LIMIT)
