"""The log of a worker process: words for people, JSON lines for machines, each with the job it belongs to.

Secrets that a handler logs are hidden here as they are in the log of its job.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rota._core.redaction import redacted, redacted_text
from rota.current import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.config import Settings

PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def configure(settings: Settings, *, verbose: bool) -> None:
    """Log to stderr, unless the app has set up logging itself."""
    root = logging.getLogger()
    if root.handlers:
        return
    chosen = settings.log_format
    if chosen == "auto":
        chosen = "json" if settings.production is not None and not sys.stderr.isatty() else "text"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if chosen == "json" else Words())
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    if not verbose:
        # It warns of every try to connect, several a second in an outage, which Rota says itself.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class Words(logging.Formatter):
    """`12:30:01 warning rota.worker: …`, and the job where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()} "
        job = _job()
        where = f" [{job['task']} {job['job_id']}]" if job else ""
        said = redacted_text(record.getMessage())
        text = f"{at:%H:%M:%S} {level}{record.name}{where}: {said}"
        return f"{text}\n{redacted_text(self.formatException(record.exc_info))}" if record.exc_info else text


class JsonLines(logging.Formatter):
    """One JSON object a line; what a caller passed as `extra` is in it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted_text(record.getMessage()),
            **_job(),
            **{
                name: redacted(value, name=name)
                for name, value in record.__dict__.items()
                if name not in PLAIN
            },
        }
        if record.exc_info:
            line["error"] = redacted_text(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def _job() -> dict[str, str]:
    """The job whose handler is speaking."""
    job = running.get(None)
    if job is None:
        return {}
    return {"job_id": str(job.job.id), "task": job.job.task, "correlation_id": job.job.correlation}


def silence() -> None:
    """Keep what libraries log (a lost connection, say) from between the lines of a command that tells it itself."""
    logging.getLogger().addHandler(logging.NullHandler())


@contextmanager
def hushed() -> Iterator[None]:
    """Keep Rota's own log from between the lines of a command whose jobs are a show, and give it its level back."""
    log = logging.getLogger("rota")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
