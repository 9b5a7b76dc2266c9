"""What a job's attempt logged: the newest lines of each attempt, bounded in number and size."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from rota._core.failure import clip, storable
from rota._core.redaction import redacted_text

KEPT = 50
"""Lines of an attempt that the store keeps: the newest."""
LINE_LIMIT = 2000
TAIL_LIMIT = 65_536
"""Characters that the kept lines of an attempt have together."""


class LogLine(NamedTuple):
    """One line."""

    at: datetime
    level: str
    message: str

    def __str__(self) -> str:
        return f"{self.at.isoformat(timespec='milliseconds')} {self.level} {self.message}"


class LogTail(NamedTuple):
    """The newest lines of one attempt, as its worker knows them; each later one replaces the one before."""

    job_id: UUID
    version: int
    """The job's version at the claim: no other attempt has it."""
    attempt: int
    lines: tuple[LogLine, ...] = ()
    written: int = 0
    """Lines that the attempt logged in all."""
    location: str | None = None
    """Where the whole log is, if anywhere."""


def kept_line(at: datetime, level: int, message: str) -> LogLine:
    """A line as it may be kept: without secrets, storable, bounded."""
    text = clip(storable(redacted_text(clip(message, 2 * LINE_LIMIT))), LINE_LIMIT)
    return LogLine(at, logging.getLevelName(level), text)


def newest(lines: Iterable[LogLine]) -> tuple[LogLine, ...]:
    """Those of the newest lines that fit into what is kept."""
    fitting: list[LogLine] = []
    room = TAIL_LIMIT
    for line in reversed(list(lines)[-KEPT:]):
        room -= len(line.message)
        if room < 0:
            break
        fitting.append(line)
    return tuple(reversed(fitting))
