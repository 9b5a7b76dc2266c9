"""The ranges of time that pages with numbers offer."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from rota.web.problems import Problem

RANGES = {"15m": 900.0, "1h": 3600.0, "6h": 21_600.0, "24h": 86_400.0, "7d": 604_800.0, "30d": 2_592_000.0}

UNITS = {"m": "minute", "h": "hour", "d": "day"}


class Range:
    """The range that was chosen."""

    def __init__(
        self, word: Annotated[str, Query(alias="range", max_length=8, description="15m to 30d.")] = "1h"
    ) -> None:
        if word not in RANGES:
            raise Problem(422, "bad-range", f"There is no range {word!r}. Choose one of {', '.join(RANGES)}.")
        self.word, self.seconds = word, RANGES[word]

    @property
    def words(self) -> str:
        """`the last 6 hours`, for captions."""
        number, unit = int(self.word[:-1]), UNITS[self.word[-1]]
        return f"the last {unit}" if number == 1 else f"the last {number} {unit}s"


Ranged = Annotated[Range, Depends()]
