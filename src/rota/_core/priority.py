"""One priority convention (smallint, lower runs first, 100 is normal) and the edges to those of other systems."""

from __future__ import annotations

CRITICAL, HIGH, NORMAL, LOW = 0, 50, 100, 200
LOWEST = 32_767
DOC20 = {0: CRITICAL, 1: HIGH, 2: NORMAL, 3: LOW}


def checked(priority: int) -> int:
    """Refuse what a smallint cannot hold or what is below 0."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= LOWEST:
        raise ValueError(
            f"priority {priority!r} is not a whole number from 0 (first) to {LOWEST} (last); 100 is normal."
        )
    return priority


def from_delphi(priority: int) -> int:
    """Delphi: 0..100, 100 most urgent."""
    if not 0 <= priority <= 100:
        raise ValueError(f"a Delphi priority is 0..100 (100 most urgent), not {priority!r}.")
    return 200 - 2 * priority


def to_delphi(priority: int) -> int:
    return max(0, min(100, (200 - priority) // 2))


def from_doc20(priority: int) -> int:
    """DOC-20: 0 critical, 1 high, 2 normal, 3 low."""
    if priority not in DOC20:
        raise ValueError(f"a DOC-20 priority is 0, 1, 2 or 3, not {priority!r}.")
    return DOC20[priority]


def to_doc20(priority: int) -> int:
    return min(DOC20, key=lambda level: abs(DOC20[level] - priority))


def from_lipas(priority: int) -> int:
    """LIPAS: as here, default 100."""
    return checked(priority)


def from_datajoint(priority: int) -> int:
    """DataJoint 2.x: lower is sooner, default 5."""
    if priority < 0:
        raise ValueError(f"a DataJoint priority is 0 or more, not {priority!r}.")
    return min(20 * priority, LOWEST)


def to_datajoint(priority: int) -> int:
    return priority // 20


def from_docverse() -> int:
    """Docverse knows no priority: everything is normal."""
    return NORMAL
