"""Durations as people write them: "5m", "1h30m", 90, or a timedelta."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TypeAlias

Duration: TypeAlias = "str | float | timedelta"

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")


def seconds(duration: Duration, what: str = "duration") -> float:
    """A duration in seconds; numbers are seconds already. `what` names the option in the error."""
    if isinstance(duration, timedelta):
        value = duration.total_seconds()
    elif isinstance(duration, str):
        value = _read(duration, what)
    elif isinstance(duration, (int, float)) and not isinstance(duration, bool):
        value = float(duration)
    else:
        raise TypeError(f'{what} must be seconds, a text such as "5m" or a timedelta, not {duration!r}.')
    if not 0 <= value < 1e10:
        raise ValueError(f"{what} must be 0 or more and below 300 years, not {duration!r}.")
    return value


def _read(text: str, what: str) -> float:
    compact = text.strip().lower()
    parts = _PART.findall(compact)
    if not parts or _PART.sub("", compact).strip():
        raise ValueError(
            f'{what} {text!r} is not understood; write it like "30s", "5m", "1h30m", "2d" or a number of seconds.'
        )
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
