"""Capturing what handlers log by `logging`: whatever logger they use, whoever handles its records.

A record is heard when it is made, so no handler is added anywhere: an app's own
logging stays as it is, and what its levels keep silent is not heard here either.
"""

from __future__ import annotations

import logging
import threading
import traceback
from typing import Any

from rota.current import keeper, own, running

_lock = threading.Lock()
_users = 0
_before: Any = None


def start() -> None:
    """Hear records of handlers in this process, until as many `stop()`s."""
    global _users, _before  # noqa: PLW0603 - logging has one factory a process
    with _lock:
        _users += 1
        if _before is None:
            _before = logging.getLogRecordFactory()
            logging.setLogRecordFactory(_heard)


def stop() -> None:
    """The other way round. If somebody has put a factory over ours, ours stays under it and hears nothing."""
    global _users, _before  # noqa: PLW0603
    with _lock:
        _users -= 1
        if _users == 0 and logging.getLogRecordFactory() is _heard:
            logging.setLogRecordFactory(_before)
            _before = None


def _heard(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record: logging.LogRecord = (_before or logging.LogRecord)(*args, **kwargs)
    job, keep = running.get(), keeper.get()
    if job is not None and keep is not None and record.levelno >= logging.INFO and _of_handler(record):
        try:
            keep(job, record.levelno, f"{record.name}: {record.getMessage()}{_stack(record)}")
        except Exception:  # a message that does not fit its arguments: whoever handles the record says so
            keep(job, record.levelno, f"{record.name}: {record.msg}")
    return record


def _of_handler(record: logging.LogRecord) -> bool:
    """Whether a handler may have said it: what Rota itself says of jobs is not theirs."""
    name = record.name or ""
    return bool(name) and name not in (own.name, "rota") and not name.startswith("rota.")


def _stack(record: logging.LogRecord) -> str:
    info: Any = record.exc_info
    if not isinstance(info, tuple) or info[0] is None:
        return ""
    return "\n" + "".join(traceback.format_exception(*info)).rstrip()
