"""Lengths of time and moments as they stand in addresses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from rota._core.durations import seconds

LONGEST = 14 * 86_400.0


def _seconds(given: object) -> float:
    text = str(given)
    try:
        length = float(text)
    except ValueError:
        length = seconds(text)
    if not 1.0 <= length <= LONGEST:
        raise ValueError("give a length from a second to 14 days, such as 15m, 1h or 7d")
    return length


def _zoned(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


Since = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema({"type": "string", "examples": ["15m", "1h", "7d"]}),
    Query(description="How far back: 15m, 1h, 7d, or seconds; at most 14 days."),
]

Moment = Annotated[datetime, AfterValidator(_zoned)]
"""A moment; without a zone it is in UTC."""
