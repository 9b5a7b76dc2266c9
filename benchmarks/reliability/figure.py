"""What a figure is: how it is measured, how large, what it should be, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reliability.system import System

Sizes = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One row of the table (or two, where one run gives two)."""

    name: str
    title: str
    goal: str
    """In words, for Rota."""
    sizes: Sizes
    """Of the usual run."""
    full: Sizes
    """What differs where `--full` is asked for: the sizes of the plan."""
    quick: Sizes
    """What differs where it only has to be tried."""
    measure: Callable[[System, Sizes], dict[str, Any]]
    holds: Callable[[str, dict[str, Any]], bool]
    """Whether the goal holds, by profile and figures."""
    shown: Callable[[dict[str, Any]], str]
    """One cell of the table."""
    profiles: tuple[str, ...] = ("defaults", "tuned")
    cannot: dict[str, str] = field(default_factory=dict)
    """Who cannot be measured, and why."""

    def sized(self, how: str) -> Sizes:
        return self.sizes | {"full": self.full, "quick": self.quick}.get(how, {})


def seconds(value: float | None, limit: float) -> str:
    """A duration, or that it did not come."""
    return (
        f"not within {limit:g} s" if value is None else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"
    )
