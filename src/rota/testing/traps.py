"""Traps: where the crash that a test asked for happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rota._core.job import Job
from rota.testing.crash import Point
from rota.testing.patching import around, name_of

STATIONS = ("begun", "returned", "settled")


class CrashAt:
    """Crashes at a named point, so many times."""

    def __init__(
        self, point: str | Callable[..., Any], *, when: str = "after", task: str | None = None, times: int = 1
    ) -> None:
        if when not in {"before", "after"}:
            raise ValueError(f"when is {when!r}; a worker dies 'before' the call or 'after' it.")
        if times < 1:
            raise ValueError(f"times is {times}; give at least 1.")
        self._station = point in STATIONS
        if isinstance(point, str) and not self._station and "." not in point:
            raise ValueError(
                f"{point!r} is no crash point. Use one of {', '.join(STATIONS)}, a function, or its name as "
                "package.module.function."
            )
        self._point, self._task, self._times = point, task, times
        self.wanted = Point(str(point)) if self._station else Point(when, name_of(point))
        self.crashes = 0
        """How often a worker has died here."""

    @property
    def gave_up(self) -> bool:
        """Whether it has crashed as often as it was told to."""
        return self.crashes >= self._times

    def about(self, job: Job) -> bool:
        return self._task is None or job.task == self._task

    def reach(self, point: Point) -> bool:
        if self.gave_up or (point.kind, point.what) != (self.wanted.kind, self.wanted.what):
            return False
        self.crashes += 1
        return True

    @contextmanager
    def set(self) -> Iterator[None]:
        """Have what it waits for tell of itself."""
        with around(() if self._station else [self._point]):
            yield

    def check(self) -> None:
        """Fail if nothing came by."""
        if not self.crashes:
            who = f"no job of {self._task}" if self._task else "no job"
            raise AssertionError(
                f"crash_at: {who} came to this point: {self.wanted}. Did you run the jobs inside the block?"
            )
