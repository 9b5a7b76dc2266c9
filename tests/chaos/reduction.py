"""The shortest history that still breaks a promise: whatever can be left out without mending it is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.checker import Violation
    from chaos.evidence import Evidence

PARTS = ("entries", "effects", "rows", "tried", "lives", "deaths", "freezes", "outages")
"""What a history is made of, in the order in which it is thinned out."""


def shortest(seen: Evidence, violation: Violation, check: Callable[[Evidence], list[Violation]]) -> Evidence:
    """The smallest part of the evidence in which `check` still finds this very violation.

    First what concerns other jobs goes, then each record alone, again and
    again until none can go. A history whose parts all matter stays whole.
    """

    def still(part: Evidence) -> bool:
        return violation in check(part)

    kept = about(seen, violation)
    if not still(kept):
        return seen
    thinner = True
    while thinner:
        thinner = False
        for without in _one_less(kept):
            if still(without):
                kept, thinner = without, True
                break
    return kept


def about(seen: Evidence, violation: Violation) -> Evidence:
    """All that is known of the violation's job, and of those that shared a group or a key with it."""
    keys = {violation.key}
    groups = {effect.group for effect in seen.effects if effect.key in keys and effect.group is not None}
    keys |= {effect.key for effect in seen.effects if effect.group in groups and effect.key in violation.what}
    jobs = {row.job for row in seen.tables.rows if row.key in keys}
    jobs |= {effect.job for effect in seen.effects if effect.key in keys}
    effects = [effect for effect in seen.effects if effect.job in jobs]
    tried = [one for one in seen.tables.tried if one.job in jobs]
    pids = {effect.pid for effect in effects}
    sessions = {one.session for one in tried}
    return seen.but(
        entries=[entry for entry in seen.entries if entry.key in keys],
        effects=effects,
        rows=[row for row in seen.tables.rows if row.job in jobs],
        tried=tried,
        lives=[life for life in seen.tables.lives if life.session in sessions],
        deaths=[death for death in seen.deaths if death.pid in pids],
        freezes=[freeze for freeze in seen.freezes if freeze.pid in pids],
        outages=seen.outages,
    )


def _one_less(seen: Evidence) -> Iterator[Evidence]:
    """The same evidence, each time without one record."""
    for name in PARTS:
        records: list[Any] = seen.part(name)
        for place in range(len(records)):
            yield seen.but(**{name: records[:place] + records[place + 1 :]})
