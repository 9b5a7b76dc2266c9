"""Lengths of time and moments as they stand in addresses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Strict, WithJsonSchema

from rota._core.durations import seconds

LONGEST = 90 * 86_400.0


def seconds_of(given: object) -> float:
    """A length of time as it was written."""
    text = str(given)
    try:
        length = float(text)
    except ValueError:
        length = seconds(text)
    if not 1.0 <= length <= LONGEST:
        raise ValueError("give a length from a second to 90 days, such as 15m, 1h or 7d")
    return length


def _zoned(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


Since = Annotated[
    float,
    BeforeValidator(seconds_of),
    WithJsonSchema({"type": "string", "examples": ["15m", "1h", "7d"]}),
    Query(description="How far back: 15m, 1h, 7d, or seconds; at most 90 days."),
]


def written(given: object) -> object:
    """Only text says which moment is meant."""
    if not isinstance(given, str | datetime):
        raise ValueError("write a moment as text, such as 2026-03-01T12:00Z")  # noqa: TRY004 - pydantic's word
    return given


Moment = Annotated[datetime, Strict(strict=False), AfterValidator(_zoned), BeforeValidator(written)]
"""A moment; without a zone it is in UTC. It comes as text, and never as a number that would be guessed at."""

Zoned = Annotated[AwareDatetime, Strict(strict=False), BeforeValidator(written)]
"""A moment that must name its zone."""
