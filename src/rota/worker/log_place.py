"""Where the whole logs of jobs go, if anywhere: `ROTA_LOG_LOCATION=file:///var/log/rota`, or `s3://bucket/logs`.

A `LogPlace` is one method, and the scheme chooses it: `Files` here, `Objects` in `log_objects.py`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit
from uuid import UUID

from rota._core.job_log import LogLine
from rota.errors import ConfigError

log = logging.getLogger("rota.worker")

SIZE_LIMIT = 10_485_760
"""Bytes that the whole log of one attempt may have."""


class LogPlace(Protocol):
    """A place for whole logs. Called in a thread, one call at a time."""

    def add(self, job_id: UUID, version: int, lines: Sequence[LogLine], left_out: int) -> str | None:
        """Add lines to the log of one attempt; where that is, or None where it could not be written.

        `left_out` lines came before these and were lost: too many at once.
        """
        ...


class Files:
    """One file an attempt below a directory: `9f/0198c1a2-….2.log`, the number being the job's version at its claim."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._said = False

    def add(self, job_id: UUID, version: int, lines: Sequence[LogLine], left_out: int) -> str | None:
        path = self._root / job_id.hex[-2:] / f"{job_id}.{version}.log"
        text = f"… {left_out} lines were left out: too many at once\n" if left_out else ""
        text += "".join(f"{line}\n" for line in lines)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                room = SIZE_LIMIT - file.tell()
                if room > 0:
                    file.write(
                        text if len(text) < room else text[:room] + "\n… the log ends here: it is full\n"
                    )
        except OSError as error:
            if not self._said:
                self._said = True
                log.error(  # noqa: TRY400 - the reason is all there is to say
                    "the logs of jobs cannot be written below %s: %s. Jobs run on, and their newest lines are kept in "
                    "the store; correct ROTA_LOG_LOCATION or its permissions, and restart.",
                    self._root, error,
                )  # fmt: skip
            return None
        return path.as_uri()


def log_place(location: str | None) -> LogPlace | None:
    """The place that a setting names; ConfigError where it names none."""
    if location is None:
        return None
    parts = urlsplit(location)
    if parts.scheme == "s3":
        from rota.worker.log_objects import objects  # few need it

        return objects(location, os.environ, size_limit=SIZE_LIMIT)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        return Files(Path(unquote(parts.path)))
    raise ConfigError(
        f"the setting log_location is {location!r}, which is no place for logs. Write file:///var/log/rota, the "
        "absolute path of a directory, or s3://bucket/prefix."
    )
