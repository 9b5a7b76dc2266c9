"""The effect log: what handlers really did, written by them to a file that knows nothing of the store."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rota import current_job


class Effect(NamedTuple):
    """One execution of one job, from its first line to its last."""

    key: str
    job: str
    fence: int
    """The job's version at its claim: no two executions of a job share it."""
    attempt: int
    pid: int
    start: float
    """Time of day as this machine's server sees it, whatever the handler's own process believes."""
    end: float | None = None
    """None: the last line is missing, so the process died in between."""
    how: str | None = None
    """returned, cancelled, or the name of what it raised."""
    group: str | None = None
    """The serial text that it ran under."""
    child: int | None = None
    """The process of its own that it ran in, where that is not its worker's."""


class Effects:
    """Appends lines; one write a line with O_APPEND, so lines of many processes never mix."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self) -> None:
        os.close(self._file)

    @contextmanager
    def recorded(self, key: str, group: str | None = None) -> Iterator[None]:
        """Around a handler's whole body."""
        self._write("start", key, group=group)
        how = "returned"
        try:
            yield
        except asyncio.CancelledError:
            how = "cancelled"
            raise
        except BaseException as error:
            how = type(error).__name__
            raise
        finally:
            self._write("end", key, how=how)

    def _write(self, what: str, key: str, **more: str | None) -> None:
        job = current_job()
        line = {
            "what": what,
            "key": key,
            "job": str(job.id),
            "fence": job.fence,
            "attempt": job.attempt,
            "pid": (worker := _worker()),
            "child": None if worker == os.getpid() else os.getpid(),
            "monotonic": time.monotonic(),
            **more,
        }
        os.write(self._file, (json.dumps(line) + "\n").encode())


def _worker() -> int:
    """The worker that runs this: a suspect is in a child process of its own, which dies with its worker."""
    mark = os.environ.get("ROTA_CHILD")
    return os.getpid() if mark is None else int(mark.split(":")[1])


def read_effects(path: Path) -> list[Effect]:
    """Every execution, in the order of their beginning. A second start of one claim is a record of its own.

    Handlers write monotonic time, which all processes of a machine share even
    where their wall clocks are wrong by plan; it is told as time of day here.
    """
    if not path.exists():
        return []
    ahead = time.time() - time.monotonic()
    found: list[Effect] = []
    running: dict[tuple[str, int, int], int] = {}
    whole, _, _ = path.read_text().rpartition("\n")  # the last line may still be being written
    for text in whole.splitlines():
        # A process that was killed while it wrote leaves a part of a line, and another one goes on behind it.
        line = json.loads(text[text.rindex('{"what"') :])
        claim = line["job"], line["fence"], line["pid"]
        if line["what"] == "start":
            running[claim] = len(found)
            found.append(
                Effect(
                    *(line[name] for name in ("key", "job", "fence", "attempt", "pid")),
                    start=line["monotonic"] + ahead,
                    group=line["group"],
                    child=line.get("child"),
                )
            )
        else:
            place = running.pop(claim)
            found[place] = found[place]._replace(end=line["monotonic"] + ahead, how=line["how"])
    return found
