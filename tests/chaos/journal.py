"""The producer's journal: what was intended and what was acknowledged, on disk before the producer goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """What became of one enqueue, as its producer knows it."""

    key: str
    job: str | None
    """The id that the store acknowledged; None: never acknowledged, so there may be a job or none."""
    refusals: int = 0
    """How often an enqueue of it ended in an error."""

    withdrawn: bool = False
    """Its transaction was rolled back, or never committed: there must be no job."""

    @property
    def acked(self) -> bool:
        return self.job is not None


class Journal:
    """One producer's file. Each call is one write and one fsync, so a killed producer loses no line it acted on."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def intend(self, keys: Iterable[str]) -> None:
        """Written before the enqueue: a job may exist from now on."""
        self._write({"do": "intend", "key": key} for key in keys)

    def ack(self, jobs: Mapping[str, str]) -> None:
        """Written when the enqueue of these keys returned: these jobs must exist for ever."""
        self._write({"do": "ack", "key": key, "job": job} for key, job in jobs.items())

    def refuse(self, keys: Iterable[str], error: BaseException) -> None:
        """Written when the enqueue raised: there may be a job or none."""
        self._write({"do": "refuse", "key": key, "error": repr(error)} for key in keys)

    def withdraw(self, keys: Iterable[str]) -> None:
        """Written when the transaction around the enqueue is given up: no job may ever exist."""
        self._write({"do": "withdraw", "key": key} for key in keys)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, lines: Iterable[Mapping[str, str]]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        os.write(self._file, text.encode())
        os.fsync(self._file)


def read_journals(paths: Iterable[Path]) -> list[Entry]:
    """What all producers know together."""
    entries: dict[str, Entry] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            told = json.loads(line)
            key = told["key"]
            entry = entries.setdefault(key, Entry(key, None))
            if told["do"] == "ack":
                entries[key] = entry._replace(job=told["job"])
            elif told["do"] == "withdraw":
                entries[key] = entry._replace(withdrawn=True)
            elif told["do"] == "refuse":
                entries[key] = entry._replace(refusals=entry.refusals + 1)
    return list(entries.values())
