"""A stage for child processes: the app of `process_tasks`, which children import, on a store of the test's own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import process_tasks
from worker_stage import QUICK, Stage

from rota.config import Settings


class ProcessStage(Stage):
    """As `Stage`, but with the app that children know; they are told where the store is."""

    def __init__(self, store: Any, url: str = "memory://", **settings: Any) -> None:
        super().__init__(store)
        self.app = process_tasks.app
        self.app._store = store
        self.app._settings = Settings.load(url=url, **(QUICK | settings))
        for task in self.app.tasks.values():
            task.__dict__.pop("_limits", None)  # read from the settings of the test before

    async def close(self) -> None:
        await super().close()
        self.app._store = self.app._settings = None


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def gone(pid: int, within: float = 3.0) -> bool:
    """Whether a process ends in time."""
    end = time.monotonic() + within
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Environment variables of the worker, for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
