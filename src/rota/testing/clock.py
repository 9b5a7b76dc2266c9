"""Time that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class StandingClock:
    """Stands still at the moment it was made, until it is moved."""

    def __init__(self) -> None:
        self._now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self._now

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class RunningClock:
    """Runs as time does, ahead by as much as it was moved."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def move(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)
