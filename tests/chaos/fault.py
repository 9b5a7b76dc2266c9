"""What a fault of the table is: one way in which the world goes wrong, and the tests that show what holds."""

from __future__ import annotations

from typing import NamedTuple

EVERY, SMALL, LONG = "every", "small", "long"


class Fault(NamedTuple):
    """One way in which the world goes wrong."""

    number: int
    what: str
    holds: str
    """What must be so all the same."""
    tests: tuple[tuple[str, str], ...]
    """Tier and test, `tests/place/test_file.py::test_name`. A test that is both small and long stands as long."""


def fault(number: int, what: str, holds: str, **tests: str | list[str]) -> Fault:
    listed = [
        (tier, one)
        for tier in (EVERY, SMALL, LONG)
        for one in ([tests[tier]] if isinstance(tests.get(tier), str) else tests.get(tier, []))
    ]
    return Fault(number, what, holds, tuple(listed))
